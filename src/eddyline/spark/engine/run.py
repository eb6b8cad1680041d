"""A running engine: every micro-batch is read once, and all queries are run on it."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from eddyline.errors import EngineError
from eddyline.journal import Journal
from eddyline.journal.events import EngineStopped, QueryPaused
from eddyline.spark.engine.batch_log import BatchRecord
from eddyline.spark.engine.planner import CompiledQuery, FlowPlanner, Planned
from eddyline.spark.engine.result_store import QUERIES
from eddyline.spark.engine.run_report import MicroBatch, RunReport
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from eddyline.spark.engine.engine import Engine

AVAILABLE_NOW = "available now"
BATCHES_KEPT = 10_000


class Run:
    """Made by `Engine.start`; `streaming_query` is Spark's own handle."""

    def __init__(
        self,
        engine: Engine,
        planner: FlowPlanner,
        streams: Sequence[StreamInfo],
        frames: Sequence[DataFrame],
        trigger: str,
    ) -> None:
        self._engine = engine
        self._planner = planner
        self._streams = list(streams)
        self._failure: EngineError | None = None
        self._is_stopping = False
        self._batches: deque[MicroBatch] = deque(maxlen=BATCHES_KEPT)
        self._newest_us = dict(engine.log.newest_us)
        writer = (
            _union(streams, frames)
            .writeStream.foreachBatch(self._run_batch)
            .option("checkpointLocation", str(engine.path / "checkpoint"))
            .queryName(f"eddyline {engine.path.name}")
        )
        self._is_once = trigger == AVAILABLE_NOW
        when = {"availableNow": True} if self._is_once else {"processingTime": trigger}
        try:
            self.streaming_query = writer.trigger(**when).start()
        except Exception as error:
            raise EngineError(f"cannot start: {str(error).splitlines()[0]}") from error

    @property
    def is_active(self) -> bool:
        """Whether micro-batches are being run."""
        return bool(self.streaming_query.isActive)

    def results(self, name: str) -> DataFrame:
        """Return what a query has produced so far."""
        return self._engine.results(name)

    def process_all_available(self) -> None:
        """Wait until all that the streams have now is processed."""
        with self._explained():
            if self._is_once:
                self.streaming_query.awaitTermination()
            else:
                self.streaming_query.processAllAvailable()

    def await_termination(self, timeout: float | None = None) -> None:
        """Wait until the run ends, or so many seconds."""
        with self._explained():
            self.streaming_query.awaitTermination(timeout)

    def stop(self) -> None:
        """Stop; a micro-batch that this interrupts is run again at the next `Engine.start`."""
        if self.is_active:
            self._is_stopping = True
            self.streaming_query.stop()
            self._engine.note(EngineStopped(), sum(batch.rows for batch in self._batches))

    def report(self) -> RunReport:
        """Return what this run did so far."""
        return RunReport(self.batches(), self._engine.queries())

    def batches(self) -> list[MicroBatch]:
        """Return what each micro-batch of this run came to."""
        return list(self._batches)

    def journal(self) -> Journal:
        """Return every decision since the engine was opened."""
        return self._engine.journal()

    @contextlib.contextmanager
    def _explained(self) -> Any:
        """Raise what went wrong in a micro-batch instead of Spark's account of it."""
        try:
            yield
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise

    # --- one micro-batch ---------------------------------------------------------------------

    def _run_batch(self, df: DataFrame, batch: int) -> None:
        try:
            if not self._engine.log.is_finished(batch):
                self._run_unfinished(df, batch)
        except EngineError as error:
            self._failure = error
            raise
        except Exception as error:
            self._failure = EngineError(
                f"micro-batch {batch} failed and will be run again at the next start; nothing is "
                f"lost. {type(error).__name__}: {_first_cause(error)}"
            )
            raise self._failure from error

    def _run_unfinished(self, df: DataFrame, batch: int) -> None:
        engine, began = self._engine, time.perf_counter()
        record = engine.log.begin(batch, engine.catalogue.version, engine.table_versions())
        failures: dict[int, str] = {}
        planned = self._plan(record, failures)
        about: dict[str, Any] = {}
        if planned.queries:
            try:
                about = self._match(df, batch, planned, record)
            except Exception as error:
                self._raise_if_stopping(error)
                # One of Spark's own conditions may have failed: without it the others go on.
                failures |= self._at_fault(df, planned)
                if not failures:
                    raise error
                planned = self._plan(record, failures)
                about = self._match(df, batch, planned, record)
        failures |= about.pop("failures", {})
        record.counts = {
            number: count for number, count in record.counts.items() if number not in failures
        }
        failures |= self._hand_over(batch, planned, record)
        if failures:
            self._pause(failures, batch)
        record.newest_us = dict(self._newest_us)
        engine.log.finish(batch, record)
        seconds = time.perf_counter() - began
        self._batches.append(
            MicroBatch(batch, record.rows, sum(record.counts.values()), seconds, **about)
        )
        self._planner.routes.learn(df, record.rows, seconds, planned.groups)

    def _plan(self, record: BatchRecord, without: Mapping[int, str]) -> Planned:
        """Return the plan of a version of the catalogue, without some of its queries."""
        queries = [
            self._engine.compiled(entry)
            for entry in self._engine.catalogue.running_at(record.version)
            if entry.number not in without and entry.error is None
        ]
        return self._planner.plan(queries, record.tables)

    def _match(
        self, df: DataFrame, batch: int, planned: Planned, record: BatchRecord
    ) -> dict[str, Any]:
        """Find the matches of all queries in one pass; store the rows that some query wants."""
        from pyspark.sql import Observation

        seen, times = Observation(), Observation()
        metrics = self._time_metrics()
        if metrics:
            df = df.observe(times, *metrics)
        matched = (
            df.withColumn("_matched", planned.matches)
            .filter("_matched IS NOT NULL")
            .observe(seen, F.collect_list("_matched.note").alias("notes"))
        )
        stored = {n: columns for n, columns in planned.stored.items() if columns}
        if stored:
            structs = [
                F.when(
                    F.col(SOURCE) == n,
                    F.struct(*[F.col(f"s{n}.`{column}`") for column in columns]),
                ).alias(f"s{n}")
                for n, columns in stored.items()
            ]
            matched.filter("size(_matched.queries) > 0").select(
                SOURCE, *structs, F.col("_matched.queries").alias(QUERIES)
            ).write.mode("overwrite").option("partitionOverwriteMode", "static").partitionBy(
                SOURCE
            ).parquet(self._engine.stored.folder_of(batch))
        else:
            matched.write.format("noop").mode("overwrite").save()
        late = self._count_late(times.get) if metrics else 0
        about = _summed(seen.get["notes"], record, late)
        display = self._engine.compiler.display_text
        about["tickets"] = {display(name): share for name, share in about["tickets"].items()}
        return about

    def _time_metrics(self) -> list[Column]:
        metrics = []
        for stream in self._streams:
            if stream.time is not None:
                # Microseconds, whatever the kind of timestamp and the zone of the session.
                moment = F.unix_micros(stream.column(stream.time).cast("timestamp"))
                oldest = self._newest_us.get(stream.name, -(2**62)) - stream.delay_us
                metrics.append(F.max(moment).alias(f"newest_{stream.number}"))
                metrics.append(F.count(F.when(moment < oldest, 1)).alias(f"late_{stream.number}"))
        return metrics

    def _count_late(self, seen: Mapping[str, Any]) -> int:
        late = 0
        for stream in self._streams:
            newest = seen.get(f"newest_{stream.number}")
            if newest is not None:
                before = self._newest_us.get(stream.name, newest)
                self._newest_us[stream.name] = max(before, newest)
                late += seen[f"late_{stream.number}"]
        return late

    def _at_fault(self, df: DataFrame, planned: Planned) -> dict[int, str]:
        """Return the queries that have an expression which fails on these rows, and how."""
        failures: dict[int, str] = {}

        def evaluate(number: int, column: Column) -> None:
            own = df.filter(F.col(SOURCE) == number)
            own.select(column).write.format("noop").mode("overwrite").save()

        for (number, text), queries in planned.evaluated.items():
            try:
                evaluate(number, self._streams[number].expression(text))
            except Exception as error:
                self._raise_if_stopping(error)
                evaluate(number, F.lit(1))  # the rows themselves cannot be read: nobody's fault
                failures |= dict.fromkeys(
                    queries, self._engine.compiler.display_text(_first_cause(error))
                )
        return failures

    def _raise_if_stopping(self, error: Exception) -> None:
        """Blame nobody for what a stop has interrupted; the micro-batch will be run again."""
        query = getattr(self, "streaming_query", None)
        if self._is_stopping or (query is not None and not query.isActive):
            raise error

    def _hand_over(self, batch: int, planned: Planned, record: BatchRecord) -> dict[int, str]:
        """Call the sinks of queries that have results and a function to give them to."""
        failures: dict[int, str] = {}
        for number in record.counts:
            compiled, sink = planned.queries[number], self._engine.sinks.get(number)
            if sink is None or compiled.sink not in ("function", "callback"):
                continue
            try:
                sink(self._results_in(compiled, batch, record), batch)
            except Exception as error:
                self._raise_if_stopping(error)
                failures[number] = f"its sink failed: {type(error).__name__}: {_first_cause(error)}"
        return failures

    def _results_in(self, compiled: CompiledQuery, batch: int, record: BatchRecord) -> DataFrame:
        stream = self._engine.stream_of(compiled)
        return self._engine.stored.results(compiled, stream, {batch: record})

    def _pause(self, failures: Mapping[int, str], batch: int) -> None:
        self._engine.catalogue.pause(failures)
        for number, error in failures.items():
            name = self._engine.catalogue.queries[number].name
            self._engine.note(QueryPaused(query=name, error=error, batch=batch))


def _union(streams: Sequence[StreamInfo], frames: Sequence[DataFrame]) -> DataFrame:
    """Return all streams as one: which one a row is of, and a struct for each of them."""
    parts = []
    for own, frame in zip(streams, frames, strict=True):
        structs = [
            (
                F.struct(*[F.col(f"`{c.name}`") for c in stream.schema])
                if stream is own
                else F.lit(None).cast(stream.schema)
            ).alias(stream.field)
            for stream in streams
        ]
        parts.append(frame.select(F.lit(own.number).alias(SOURCE), *structs))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    return whole


def _summed(notes: Sequence[Any], record: BatchRecord, late: int) -> dict[str, Any]:
    """Add up what the tasks of a micro-batch have noted."""
    failures: dict[int, str] = {}
    operators: dict[str, float] = {}
    visits, busy_s = 0, 0.0
    for note in (json.loads(bytes(note)) for note in notes):
        for number, count in note["counts"].items():
            record.counts[int(number)] = record.counts.get(int(number), 0) + count
        failures |= {int(number): error for number, error in note["failures"].items()}
        busy_s += note["busy_s"]
        for flow in note["flows"]:
            record.rows += flow["rows"]
            visits += flow["visits"]
            operators |= dict(zip(flow["operators"], flow["tickets"], strict=True))
    return {
        "failures": failures,
        "visits": visits,
        "tickets": operators,
        "busy_s": busy_s,
        "late": late,
    }


def _first_cause(error: BaseException) -> str:
    """Return the line of an error that says what happened, out of what Spark makes of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for sign in ("No space left", "Permission denied", "Error: ", "Exception: "):
        for line in lines:
            if sign in line and "py4j" not in line and "Driver stacktrace" not in line:
                return line[:300]
    return (lines or [type(error).__name__])[0][:300]
