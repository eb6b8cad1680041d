"""A stream as the queries of an engine see it, and all streams of an engine as one DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eddyline.operators.domain import Domain
from eddyline.spark.common.columns import quoted
from eddyline.sql.comparison import ColumnTypes
from eddyline.sql.placeholders import STREAM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Column with the number of the stream that a row is from.
SOURCE = "_source"


@dataclass(frozen=True)
class StreamInfo:
    """A stream as its queries see it.

    Parameters
    ----------
    number
        Its place among the engine's streams.
    name, schema
        As registered.
    timezone
        Time zone of the session.
    time, delay_us
        The event-time column, and how late a row may be.
    idle_us
        After which time without rows joins no longer wait for it; None for never.

    """

    number: int
    name: str
    schema: StructType
    timezone: str
    time: str | None = None
    delay_us: int = 0
    idle_us: int | None = None

    @property
    def field(self) -> str:
        """The struct column that holds its rows."""
        return f"s{self.number}"

    @property
    def types(self) -> dict[str, str]:
        """Names and types of its columns."""
        return {column.name: column.dataType.simpleString() for column in self.schema}

    def domains(self) -> dict[str, Domain]:
        """Return the domains of the columns that can be compared with constants."""
        columns = ColumnTypes(self.types, self.timezone)
        domains = {name: columns.domain(name) for name in self.types}
        return {name: domain for name, domain in domains.items() if domain is not None}

    def column(self, name: str) -> Column:
        """Return one of its columns."""
        return F.col(f"{self.field}.{quoted(name)}")

    def localised(self, text: str) -> str:
        """Return an expression over the stream as one over its struct column."""
        return text.replace(f"`{STREAM}`", f"`{self.field}`")

    def expression(self, text: str) -> Column:
        """Return an expression over its columns."""
        return F.expr(self.localised(text))


def union_streams(streams: Sequence[StreamInfo], frames: Sequence[DataFrame]) -> DataFrame:
    """Return all streams as one DataFrame: `SOURCE`, and a struct column for each stream."""
    parts = []
    for own, frame in zip(streams, frames, strict=True):
        structs = [
            (
                F.struct(*[F.col(quoted(column.name)) for column in stream.schema])
                if stream is own
                else F.lit(None).cast(stream.schema)
            ).alias(stream.field)
            for stream in streams
        ]
        parts.append(frame.select(F.lit(own.number).alias(SOURCE), *structs))
    union = parts[0]
    for part in parts[1:]:
        union = union.unionAll(part)
    return union
