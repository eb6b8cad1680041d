"""From matched rows to join tasks: keys are computed and hashed in the JVM, then rows exchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    DoubleType,
    FloatType,
    StructField,
    StructType,
)

from eddyline.spark.common.session_settings import session_settings
from eddyline.spark.engine.compared_key import ComparedKey
from eddyline.spark.engine.dealing import Axes, Axis, axes_name, copies
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.engine.wanted_parts import WantedParts
from eddyline.spark.state.arrived_rows import ARRIVAL, PARTS, STEM, TASK, TIME, stem_field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Rows are hashed into so many buckets, and buckets are dealt out to tasks.
BUCKETS = 64
#: What tasks return; given as text, Spark would parse it for each micro-batch.
_NOTE = StructType([StructField("note", BinaryType())])
#: The plan has one exchange with a given number of tasks, so there is nothing to adapt; planning
#: again after each stage would be for nothing.
_JOB_SETTINGS = {"spark.sql.adaptive.enabled": "false"}

TaskFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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
    axes
        How its rows are dealt out to tasks.
    payload
        The columns that results are made of.
    compared
        What comparisons across streams use.

    """

    number: int
    stream: StreamInfo
    keys: tuple[JoinKey, ...]
    axes: Axes
    payload: tuple[str, ...]
    compared: tuple[ComparedKey, ...] = ()

    @property
    def name(self) -> str:
        """Identifies the SteM in files and from plan to plan."""
        return f"{self.stream.name}/{axes_name(self.axes)}"

    @functools.cached_property
    def copies(self) -> list[int]:
        """What to add to the smallest task of a row to get all of its tasks."""
        return copies(self.axes)

    def key(self, position: int) -> Column:
        """Return a key as it is compared: 0.0 for -0.0."""
        key = self.keys[position]
        column = self.stream.expression(key.text).cast(key.compared_as)
        is_floating = isinstance(key.compared_as, FloatType | DoubleType)
        return column + F.lit(0.0) if is_floating else column

    def task(self) -> Column:
        """Return the smallest task that joins a row."""
        task = F.lit(0)
        for axis in self.axes:
            task = task * axis.share + self._place(axis) if axis.share > 1 else task
        return task

    def _place(self, axis: Axis) -> Column:
        """Return the place of a row on an axis."""
        if axis.is_copied:
            return F.lit(0)
        hashed = [self.key(self.keys.index(axis.key))] if axis.key else self._hashed_columns()
        # Small numbers of the same hash, as rows of one task are stored in buckets.
        bucket = F.pmod(F.xxhash64(*hashed), F.lit(BUCKETS))
        return F.floor(bucket * axis.share / BUCKETS).cast("int")

    def _hashed_columns(self) -> list[Column]:
        """Return columns that say where a row goes that may go anywhere; Spark hashes no maps."""
        fields = [field for field in self.stream.schema if isinstance(field.dataType, AtomicType)]
        return [self.stream.column(field.name) for field in fields] or [F.lit(0)]

    def struct(self) -> Column:
        """Return keys, hashes and stored columns as one struct."""
        fields = []
        for position, key in enumerate(self.keys):
            fields.append(self.key(position).alias(f"k{position}"))
            if key.is_hashed:
                fields.append(F.xxhash64(self.key(position)).alias(f"h{position}"))
        for position, compared in enumerate(self.compared):
            fields.append(compared.column(self.stream).alias(f"o{position}"))
        stored = [self.stream.column(name).alias(name) for name in self.payload]
        return F.struct(*fields, F.struct(*stored).alias("row"))

    def time_us(self) -> Column:
        """Return the event time in microseconds."""
        if self.stream.time is None:
            return F.lit(None).cast("bigint")
        return F.unix_micros(self.stream.column(self.stream.time).cast("timestamp"))


@dataclass(frozen=True)
class Exchange:
    """How matched rows travel to the tasks that join them; made once for many micro-batches.

    Parameters
    ----------
    stems
        How rows travel to each SteM.
    wanted
        Says which roles want a row.
    parts
        For each SteM, the numbers of the roles that it serves.
    tasks
        Number of tasks.
    is_counted
        Whether rows have an `ARRIVAL`.

    """

    stems: tuple[StemExchange, ...]
    wanted: WantedParts
    parts: tuple[tuple[int, ...], ...]
    tasks: int
    is_counted: bool = False

    @functools.cached_property
    def identity(self) -> object:
        """Equal for two that make the same columns."""
        return (self.stems, self.wanted.identity, self.parts, self.tasks, self.is_counted)

    @functools.cached_property
    def _is_one_stem_per_stream(self) -> bool:
        return len({own.stream.number for own in self.stems}) == len(self.stems)

    @functools.cached_property
    def _stem(self) -> Column:
        """Number of the SteM that a row goes to: a row for each SteM of its stream."""
        numbers = [F.when(F.col(SOURCE) == s.stream.number, F.lit(s.number)) for s in self.stems]
        return F.explode(F.filter(F.array(*numbers), lambda number: number.isNotNull()))

    def _is_of(self, own: StemExchange) -> Column:
        """Return whether a row goes to a SteM; decided by its stream if that has only one."""
        if self._is_one_stem_per_stream:
            return F.col(SOURCE) == own.stream.number
        return F.col(STEM) == own.number

    def _of_stem(self, make: Callable[[StemExchange], Column]) -> Column:
        """Return what belongs to the SteM that a row goes to."""
        column = F.lit(None)
        for own in self.stems:
            column = F.when(self._is_of(own), make(own)).otherwise(column)
        return column

    @functools.cached_property
    def _columns(self) -> list[Column]:
        """The columns that rows travel with, and `TASK`."""
        return [
            self._of_stem(self._task_of).alias(TASK),
            self._of_stem(lambda own: F.lit(own.number)).alias(STEM),
            self._of_stem(StemExchange.time_us).alias(TIME),
            self._of_stem(lambda own: self.wanted.of_stream(own.stream.number)).alias(PARTS),
            *([F.col(ARRIVAL)] if self.is_counted else []),
            *[F.when(self._is_of(s), s.struct()).alias(stem_field(s.number)) for s in self.stems],
        ]

    @functools.cached_property
    def _is_copied(self) -> bool:
        return any(len(own.copies) > 1 for own in self.stems)

    def _task_of(self, own: StemExchange) -> Column:
        """Return the task of a row, or an array of all its tasks if some rows have several."""
        if not self._is_copied:
            return own.task()
        return F.array(*[own.task() + F.lit(copy) for copy in own.copies])

    @functools.cached_property
    def _is_wanted(self) -> Column:
        """Whether a role of the SteM that a row goes to wants it."""

        def is_wanted(own: StemExchange) -> Column:
            parts = None if self._is_one_stem_per_stream else self.parts[own.number]
            return self.wanted.is_wanted(own.stream.number, parts)

        return self._of_stem(is_wanted)

    @functools.cached_property
    def _task(self) -> Column:
        return F.col(TASK)

    def send(self, df: DataFrame) -> DataFrame:
        """Send rows to the tasks that join them; rows that no role wants are not sent.

        Parameters
        ----------
        df
            `SOURCE`, a struct for each stream, whatever `wanted` reads, and `ARRIVAL`.

        """
        # Each step has Spark analyse the plan again.
        if not self._is_one_stem_per_stream:
            df = df.withColumn(STEM, self._stem)
        sent = df.filter(self._is_wanted).select(*self._columns)
        if self._is_copied:
            sent = sent.withColumn(TASK, F.explode(self._task))
        return sent.repartitionById(self.tasks, self._task)

    def run_tasks(self, df: DataFrame, function: TaskFunction) -> list[bytes]:
        """Send rows to the tasks that join them, run the tasks, and return their notes.

        Parameters
        ----------
        df
            As for `send`.
        function
            What a task does with its rows; it yields batches with one column, the notes.

        """
        tasks = self.send(df).mapInArrow(function, _NOTE)
        with session_settings(df.sparkSession, _JOB_SETTINGS):
            return [row[0] for row in tasks.collect()]
