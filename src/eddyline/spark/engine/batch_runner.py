"""Runs micro-batches: every row is read once, and all queries are run on it."""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.errors import EngineError
from eddyline.journal.events import QueryPaused
from eddyline.report.run import MicroBatch
from eddyline.spark.common.side_channel import METRIC, collected, unpack
from eddyline.spark.engine.batch_log import BatchRecord
from eddyline.spark.engine.causes import first_cause
from eddyline.spark.engine.event_times import EventTimes
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.planner import BatchPlan, EddyPlanner
from eddyline.spark.engine.queries import EngineQueries
from eddyline.spark.engine.registry import Registry
from eddyline.spark.engine.result_store import QUERIES
from eddyline.spark.engine.stream_info import SOURCE
from eddyline.spark.engine.task_note import TaskNote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BATCHES_KEPT = 10_000
_MATCHED = "_matched"


@dataclass(frozen=True)
class MatchOutcome:
    """What matching a micro-batch came to.

    Parameters
    ----------
    note
        The merged notes of its tasks.
    late
        Rows that came later than the delay of their stream allows.
    files
        The files that matching rows were stored in, with their sizes in bytes.

    """

    note: TaskNote = field(default_factory=TaskNote)
    late: int = 0
    files: dict[str, int] = field(default_factory=dict)


class BatchRunner:
    """Plans a micro-batch, matches its rows, hands results to sinks and records it.

    Parameters
    ----------
    folder
        The folder of the engine.
    registry, queries
        Streams and tables, and the queries over them.
    planner
        Turns queries into a plan.
    is_stopping
        Returns True once the run is being stopped.

    """

    def __init__(
        self,
        folder: EngineFolder,
        registry: Registry,
        queries: EngineQueries,
        planner: EddyPlanner,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._folder = folder
        self._registry = registry
        self._queries = queries
        self._planner = planner
        self._is_stopping = is_stopping
        self._streams = registry.streams()
        self._event_times = EventTimes(self._streams, folder.log.newest_us)
        #: What the last micro-batches were, oldest first.
        self.batches: deque[MicroBatch] = deque(maxlen=BATCHES_KEPT)
        #: Why a micro-batch failed; None if none did.
        self.failure: EngineError | None = None

    def run(self, df: DataFrame, batch: int) -> None:
        """Run one micro-batch, unless it is finished; for `foreachBatch`."""
        try:
            self._registry.settings.check(df.sparkSession)
            offsets = self._folder.checkpoint.fingerprint(batch)
            finished = self._folder.log.record(batch)
            if finished is None:
                self._run_unfinished(df, batch, offsets)
            else:
                self._check_same_rows(batch, finished, offsets)
        except EngineError as error:
            self.failure = error
            raise
        except Exception as error:
            self.failure = EngineError(
                f"micro-batch {batch} failed and will be run again at the next start; nothing is "
                f"lost. {type(error).__name__}: {first_cause(error)}"
            )
            raise self.failure from error

    def _check_same_rows(self, batch: int, record: BatchRecord, offsets: str) -> None:
        """Raise if Spark's checkpoint plans other rows for a micro-batch than the record has."""
        if record.offsets and record.offsets != offsets:
            raise EngineError(
                f"micro-batch {batch} was run before with other rows than Spark plans for it now: "
                f"{self._folder.checkpoint.path} was deleted, or is older than the results. "
                f"Restore the checkpoint that belongs to this folder, or open a new engine in "
                f"another folder"
            )

    def _run_unfinished(self, df: DataFrame, batch: int, offsets: str) -> None:
        folder, began = self._folder, time.perf_counter()
        versions = folder.catalogue.version, self._registry.table_versions()
        record = folder.log.begin(batch, *versions, offsets)
        self._check_same_rows(batch, record, offsets)
        plan, outcome, failures = self._match_without_failing(df, batch, record)
        note = outcome.note
        failures |= note.failures
        record.rows, record.files = note.eddy.rows, outcome.files
        record.counts = {n: count for n, count in note.counts.items() if n not in failures}
        failures |= self._count_results(batch, plan, record)
        failures |= self._hand_over(batch, plan, record)
        if failures:
            self._pause(failures, batch)
        record.newest_us = dict(self._event_times.newest_us)
        folder.log.finish(batch, record)
        seconds = time.perf_counter() - began
        self.batches.append(
            MicroBatch(
                batch,
                record.rows,
                sum(record.counts.values()),
                seconds,
                note.eddy.visits,
                {
                    self._queries.display_text(name): share
                    for name, share in note.eddy.tickets.items()
                },
                note.busy_s,
                outcome.late,
            )
        )
        self._planner.routes.learn(df, record.rows, seconds, plan.groups)

    # --- matching ----------------------------------------------------------------------------

    def _match_without_failing(
        self, df: DataFrame, batch: int, record: BatchRecord
    ) -> tuple[BatchPlan, MatchOutcome, dict[int, str]]:
        """Match all queries; if the job fails, again without those at fault.

        Returns
        -------
        The plan that was run, what came of it, and the errors of the queries at fault, by number.

        """
        plan = self._plan(record, without={})
        if not plan.queries:
            return plan, MatchOutcome(), {}
        try:
            return plan, self._match(df, batch, plan), {}
        except Exception as error:
            self._raise_if_stopping(error)
            # A native expression of some query may have failed: the others go on without it.
            failures = self._find_faults(df, plan)
            if not failures:
                raise error
        plan = self._plan(record, without=failures)
        return plan, self._match(df, batch, plan), failures

    def _plan(self, record: BatchRecord, without: Mapping[int, str]) -> BatchPlan:
        """Return the plan of a version of the catalogue, without some of its queries."""
        running = self._queries.running_at(record.version)
        queries = [compiled for compiled in running if compiled.number not in without]
        return self._planner.plan(queries, record.tables)

    def _match(self, df: DataFrame, batch: int, plan: BatchPlan) -> MatchOutcome:
        """Find the matches of all queries in one pass; store the rows that some query wants."""
        from pyspark.sql import Observation

        notes, times = Observation(), Observation()
        metrics = self._event_times.metrics()
        if metrics:
            df = df.observe(times, *metrics)
        matched = (
            df.withColumn(_MATCHED, plan.matches)
            .filter(f"{_MATCHED} IS NOT NULL")
            .observe(notes, collected(f"{_MATCHED}.note"))
        )
        files: dict[str, int] = {}
        if any(plan.stored_columns.values()):
            matches = matched.withColumn(QUERIES, F.col(f"{_MATCHED}.queries"))
            matches = matches.filter(F.size(QUERIES) > 0)
            files = self._folder.results.write_matches(batch, matches, plan.stored_columns)
        else:
            matched.write.format("noop").mode("overwrite").save()
        late = self._event_times.advance(times.get) if metrics else 0
        return MatchOutcome(
            TaskNote.merge(map(TaskNote.from_dict, unpack(notes.get[METRIC]))), late, files
        )

    def _find_faults(self, df: DataFrame, plan: BatchPlan) -> dict[int, str]:
        """Return the errors of queries with an expression that fails on these rows, by number."""
        failures: dict[int, str] = {}

        def evaluate(stream: int, column: Column) -> None:
            rows = df.filter(F.col(SOURCE) == stream)
            rows.select(column).write.format("noop").mode("overwrite").save()

        for (stream, text), numbers in plan.evaluated.items():
            try:
                evaluate(stream, self._streams[stream].expression(text))
            except Exception as error:
                self._raise_if_stopping(error)
                evaluate(stream, F.lit(1))  # raises if the rows themselves cannot be read
                failures |= dict.fromkeys(numbers, self._queries.display_text(first_cause(error)))
        return failures

    def _raise_if_stopping(self, error: BaseException) -> None:
        """Blame no query for what a stop interrupted; the micro-batch will be run again."""
        if self._is_stopping():
            raise error

    # --- results -----------------------------------------------------------------------------

    def _count_results(self, batch: int, plan: BatchPlan, record: BatchRecord) -> dict[int, str]:
        """Count the results of queries in which a matching row is not exactly one result.

        Changes the counts of the record; returns the errors of queries that cannot be counted.
        """
        numbers = [n for n in record.counts if not plan.queries[n].query.is_row_for_row]
        if not numbers:
            return {}
        results = {
            number: self._queries.results_of(plan.queries[number], {batch: record})
            for number in numbers
        }
        try:
            counts, failures = _count_all(results), dict[int, str]()
        except Exception as error:
            self._raise_if_stopping(error)
            counts, failures = _count_each(results)
        for number in numbers:
            record.counts[number] = counts.get(number, 0)
            if not record.counts[number]:
                del record.counts[number]
        return failures

    def _hand_over(self, batch: int, plan: BatchPlan, record: BatchRecord) -> dict[int, str]:
        """Call the sinks of queries that have results; return the errors of those that failed."""
        failures: dict[int, str] = {}
        for number in record.counts:
            compiled = plan.queries[number]
            sink = self._queries.sink_of(compiled)
            if sink is None:
                continue
            try:
                sink(self._queries.results_of(compiled, {batch: record}), batch)
            except (Exception, SystemExit) as error:
                self._raise_if_stopping(error)
                failures[number] = f"its sink failed: {type(error).__name__}: {first_cause(error)}"
        return failures

    def _pause(self, failures: Mapping[int, str], batch: int) -> None:
        catalogue = self._folder.catalogue
        catalogue.pause(failures)
        for number, error in failures.items():
            name = catalogue.queries[number].name
            self._folder.note(QueryPaused(query=name, error=error, batch=batch))


def _count_all(results: Mapping[int, DataFrame]) -> dict[int, int]:
    """Count the rows of several results in one job."""
    numbered = [frame.select(F.lit(number).alias("number")) for number, frame in results.items()]
    union = functools.reduce(lambda one, other: one.unionAll(other), numbered)
    return {row["number"]: row["count"] for row in union.groupBy("number").count().collect()}


def _count_each(results: Mapping[int, DataFrame]) -> tuple[dict[int, int], dict[int, str]]:
    """Count the rows of each result by itself; return counts, and the errors of those that fail."""
    counts: dict[int, int] = {}
    failures: dict[int, str] = {}
    for number, frame in results.items():
        try:
            counts |= _count_all({number: frame})
        except Exception as error:
            failures[number] = f"its result cannot be computed: {first_cause(error)}"
    return counts, failures
