"""From matched rows to join tasks: keys are computed and hashed in the JVM, then rows exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampNTZType,
    TimestampType,
)

from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.state.join_worker import PARTS, STEM, TASK, TIME, stem_field
from eddyline.sql.placeholders import display_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Rows are hashed into so many buckets, and buckets are dealt out to tasks.
BUCKETS = 64
_OWN_CODE = (
    BooleanType,
    IntegralType,
    FloatType,
    DoubleType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


@dataclass(frozen=True)
class JoinKey:
    """A key of a stream.

    Parameters
    ----------
    text
        An expression over the stream, as Spark SQL.
    compared_as
        Type in which it is compared with the columns of other streams.

    """

    text: str
    compared_as: DataType

    @property
    def name(self) -> str:
        """Identifies the key in files."""
        return f"{display_text(self.text)}:{self.compared_as.simpleString()}"

    @property
    def is_hashed(self) -> bool:
        """Whether values are too large to be their own code."""
        return not isinstance(self.compared_as, _OWN_CODE)


@dataclass(frozen=True)
class StemExchange:
    """How rows travel to one SteM.

    Parameters
    ----------
    number
        Of the SteM.
    stream
        The stream whose rows it holds.
    keys
        Its key columns.
    partition
        Position of the key column whose value decides the task; None sends every row to task 0.
    payload
        The columns that results are made of.

    """

    number: int
    stream: StreamInfo
    keys: tuple[JoinKey, ...]
    partition: int | None
    payload: tuple[str, ...]

    @property
    def name(self) -> str:
        """Identifies the SteM in files and from plan to plan."""
        key = "*" if self.partition is None else self.keys[self.partition].name
        return f"{self.stream.name}/{key}"

    def key(self, position: int) -> Column:
        """Return a key as it is compared: 0.0 for -0.0."""
        key = self.keys[position]
        column = self.stream.expression(key.text).cast(key.compared_as)
        is_floating = isinstance(key.compared_as, FloatType | DoubleType)
        return column + F.lit(0.0) if is_floating else column

    def task(self, tasks: int) -> Column:
        """Return the task that joins a row."""
        if self.partition is None or tasks == 1:
            return F.lit(0)
        bucket = F.pmod(F.xxhash64(self.key(self.partition)), F.lit(BUCKETS))
        return F.floor(bucket * tasks / BUCKETS).cast("int")

    def struct(self) -> Column:
        """Return keys, hashes and stored columns as one struct."""
        fields = []
        for position, key in enumerate(self.keys):
            fields.append(self.key(position).alias(f"k{position}"))
            if key.is_hashed:
                fields.append(F.xxhash64(self.key(position)).alias(f"h{position}"))
        stored = [self.stream.column(name).alias(name) for name in self.payload]
        return F.struct(*fields, F.struct(*stored).alias("row"))

    def time_us(self) -> Column:
        """Return the event time in microseconds."""
        assert self.stream.time is not None
        return F.unix_micros(self.stream.column(self.stream.time).cast("timestamp"))


def exchange(
    df: DataFrame, stems: Sequence[StemExchange], parts: Sequence[Column], tasks: int
) -> DataFrame:
    """Send matched rows to the tasks that join them.

    Parameters
    ----------
    df
        `SOURCE`, and a struct for each stream.
    stems
        How rows travel to each SteM.
    parts
        For each SteM, the numbers of the query roles that want a row there; a row with none is not
        sent.
    tasks
        Number of tasks.

    """
    stem = F.col(STEM)

    def of_stem(make: Callable[[StemExchange], Column]) -> Column:
        column = F.lit(None)
        for own in stems:
            column = F.when(stem == own.number, make(own)).otherwise(column)
        return column

    if _is_one_stem_per_stream(stems):
        of_source = F.lit(None)
        for own in stems:
            of_source = F.when(F.col(SOURCE) == own.stream.number, F.lit(own.number)).otherwise(
                of_source
            )
        numbered = df.withColumn(STEM, of_source)
    else:
        numbers = F.filter(
            F.array(
                *[F.when(F.col(SOURCE) == own.stream.number, F.lit(own.number)) for own in stems]
            ),
            lambda number: number.isNotNull(),
        )
        numbered = df.withColumn(STEM, F.explode(numbers))
    by_number = dict(zip([own.number for own in stems], parts, strict=True))
    sent = numbered.withColumn(PARTS, of_stem(lambda own: by_number[own.number]))
    sent = sent.filter(F.size(PARTS) > 0)
    return sent.select(
        of_stem(lambda own: own.task(tasks)).alias(TASK),
        STEM,
        of_stem(StemExchange.time_us).alias(TIME),
        PARTS,
        *[F.when(stem == own.number, own.struct()).alias(stem_field(own.number)) for own in stems],
    ).repartitionById(tasks, F.col(TASK))


def _is_one_stem_per_stream(stems: Sequence[StemExchange]) -> bool:
    return len({own.stream.number for own in stems}) == len(stems)
