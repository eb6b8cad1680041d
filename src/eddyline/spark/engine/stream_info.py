"""A stream as the queries of an engine see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eddyline.operators.domain import Domain
from eddyline.spark.common.columns import quoted
from eddyline.sql.comparison import ColumnTypes
from eddyline.sql.placeholders import STREAM

if TYPE_CHECKING:
    from pyspark.sql import Column

SOURCE = "_source"  # which stream a row is of


@dataclass
class StreamInfo:
    """A stream as its queries see it.

    Parameters
    ----------
    number
        Its place among the engine's streams.
    name, schema
        As registered.
    timezone
        Of the session.
    time, delay_us
        The column that says when a row happened, and how late a row may be.

    """

    number: int
    name: str
    schema: StructType
    timezone: str
    time: str | None = None
    delay_us: int = 0

    @property
    def field(self) -> str:
        """The struct column that holds its rows."""
        return f"s{self.number}"

    @property
    def types(self) -> dict[str, str]:
        """Names and types of its columns."""
        return {column.name: column.dataType.simpleString() for column in self.schema}

    def domains(self) -> dict[str, Domain]:
        """Return what the columns hold that can be compared with constants."""
        columns = ColumnTypes(self.types, self.timezone)
        known = {name: columns.domain(name) for name in self.types}
        return {name: domain for name, domain in known.items() if domain is not None}

    def column(self, name: str) -> Column:
        """Return one of its columns."""
        return F.col(f"{self.field}.{quoted(name)}")

    def expression(self, text: str) -> Column:
        """Return an expression over its columns."""
        return F.expr(text.replace(f"`{STREAM}`", f"`{self.field}`"))
