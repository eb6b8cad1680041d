"""From matched rows to join tasks: keys are computed and hashed in the JVM, then rows exchanged."""

from __future__ import annotations

from collections.abc import Sequence
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
from eddyline.spark.state.join_worker import PARTS, STREAM, TASK, TIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Rows are hashed into so many buckets, and buckets are dealt out to tasks.
BUCKETS = 64
_OWN_CODE = (BooleanType, IntegralType, DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class JoinKey:
    """A key column of a stream.

    Parameters
    ----------
    column
        Name of the column.
    compared_as
        Type in which it is compared with the columns of other streams.

    """

    column: str
    compared_as: DataType

    @property
    def is_hashed(self) -> bool:
        """Whether values are too large to be their own code."""
        return not isinstance(self.compared_as, (*_OWN_CODE, FloatType, DoubleType))


@dataclass(frozen=True)
class StreamExchange:
    """How rows of one stream travel to the join tasks.

    Parameters
    ----------
    stream
        The stream.
    keys
        Its key columns.
    partition
        Position of the key column whose value decides the task.
    payload
        The columns that results are made of.

    """

    stream: StreamInfo
    keys: tuple[JoinKey, ...]
    partition: int
    payload: tuple[str, ...]

    def key(self, position: int) -> Column:
        """Return a key as it is compared: 0.0 for -0.0."""
        key = self.keys[position]
        column = self.stream.column(key.column).cast(key.compared_as)
        return column + F.lit(0.0) if isinstance(key.compared_as, DoubleType) else column

    def struct(self) -> Column:
        """Return keys, hashes and stored columns as one struct; NULL for rows of other streams."""
        fields = []
        for position, key in enumerate(self.keys):
            fields.append(self.key(position).alias(f"k{position}"))
            if key.is_hashed:
                fields.append(F.xxhash64(self.key(position)).alias(f"h{position}"))
        stored = [self.stream.column(name).alias(name) for name in self.payload]
        fields.append(F.struct(*stored).alias("row"))
        is_own = F.col(SOURCE) == self.stream.number
        return F.when(is_own, F.struct(*fields)).alias(f"s{self.stream.number}")

    def time_us(self) -> Column:
        """Return the event time in microseconds."""
        assert self.stream.time is not None
        return F.unix_micros(self.stream.column(self.stream.time).cast("timestamp"))


def exchange(df: DataFrame, parts: Column, streams: Sequence[StreamExchange], tasks: int) -> DataFrame:
    """Send matched rows to the tasks that join them.

    Parameters
    ----------
    df
        `SOURCE`, and a struct for each stream.
    parts
        The numbers of the query roles that want each row.
    streams
        How rows of each stream travel.
    tasks
        Number of tasks.

    """
    bucket = _by_stream(streams, lambda own: F.pmod(F.xxhash64(own.key(own.partition)), F.lit(BUCKETS)))
    task = (bucket * F.lit(tasks) / F.lit(BUCKETS)).cast("int") if tasks > 1 else F.lit(0)
    columns = [
        task.alias(TASK),
        F.col(SOURCE).alias(STREAM),
        _by_stream(streams, StreamExchange.time_us).alias(TIME),
        parts.alias(PARTS),
        *[own.struct() for own in streams],
    ]
    return df.select(*columns).repartitionById(tasks, F.col(TASK))


def _by_stream(streams, make) -> Column:
    column = F.lit(None)
    for own in streams:
        column = F.when(F.col(SOURCE) == own.stream.number, make(own)).otherwise(column)
    return column
