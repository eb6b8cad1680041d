"""Runs micro-batches: every row is read once, and all queries are run on it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from eddyline.errors import EngineError
from eddyline.journal.events import QueryPaused, StreamIdle
from eddyline.ordering import Tickets
from eddyline.report.run import MicroBatch, OperatorNumbers
from eddyline.spark.engine.arbiter import Arbiter
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.causes import first_cause
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.event_times import EventTimes
from eddyline.spark.engine.fault_search import FaultSearch
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.join_runner import JoinRunner
from eddyline.spark.engine.matching import Matcher
from eddyline.spark.engine.planner import EddyPlanner
from eddyline.spark.engine.queries import EngineQueries
from eddyline.spark.engine.registry import Registry
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.result_trial import ResultTrial
from eddyline.spark.engine.row_counts import RowCounts
from eddyline.spark.engine.task_note import EddyCounts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES_KEPT = 10_000

#: Spark takes an error with these words for the end of a micro-batch that it interrupted. The
#: whole error of the job has them too, but Spark's search overflows the stack on long ones.
_INTERRUPTED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling a micro-batch that is being "
    "stopped: java.lang.InterruptedException"
)


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
    tasks
        Number of tasks that join streams.

    """

    def __init__(
        self,
        folder: EngineFolder,
        registry: Registry,
        queries: EngineQueries,
        planner: EddyPlanner,
        is_stopping: Callable[[], bool],
        tasks: int,
    ) -> None:
        self._folder = folder
        self._registry = registry
        self._queries = queries
        self._planner = planner
        self._is_stopping = is_stopping
        streams, stop = registry.streams(), self._raise_if_stopping
        self._event_times = EventTimes(streams, folder.log.state.newest_us)
        self._row_counts = RowCounts(streams, folder.log.state.counted)
        containers = folder.log.state.containers.values()
        # Joins have tickets of their own, which forget faster.
        policy = None if isinstance(planner.policy, Tickets) else planner.policy
        self._joins = JoinRunner(
            streams, folder.path, containers, tasks, folder.note, policy, planner.seed
        )
        self._matcher = Matcher(
            queries,
            planner,
            folder.results,
            self._event_times,
            self._row_counts,
            FaultSearch(streams, queries.display_text, stop),
            Arbiter(
                folder.results, registry.stream_named, registry.functions, queries.name_for_spark
            ),
            self._joins,
            stop,
        )
        self._trial = ResultTrial(folder.results, registry.stream_named, queries.display_text, stop)
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
        except BaseException as error:  # one that is no Exception would leave Spark waiting
            if self._is_stopping():
                raise RuntimeError(_INTERRUPTED) from None
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
        record = folder.log.begin(batch, *versions, offsets, self._event_times.idle())
        self._check_same_rows(batch, record, offsets)
        self._skip_idle(record)
        outcome = self._matcher.match(df, batch, record)
        note, failures = outcome.note, dict(outcome.failures)
        record.rows, record.files = note.eddy.rows, outcome.files
        record.alone = {n: dict(rows.files) for n, rows in outcome.alone.items() if rows.files}
        record.join_files = dict(outcome.joins.results)
        record.state_added = [file.to_dict() for file in outcome.joins.added]
        record.state_removed = [*outcome.joins.removed, *outcome.expired]
        record.counts, record.late = outcome.counts(), dict(outcome.joins.late)
        failures |= self._trial.run(batch, outcome.queries, record)
        failures |= self._hand_over(batch, outcome.queries, record)
        if failures:
            self._pause(failures, batch)
        record.newest_us = dict(self._event_times.newest_us)
        record.counted = dict(outcome.counted)
        folder.log.finish(batch, record)
        self._joins.keep(record)
        self._row_counts.keep(record.counted)
        folder.housekeeping.after_batch()
        seconds = time.perf_counter() - began
        self.batches.append(
            MicroBatch(
                batch,
                record.rows,
                sum(record.counts.values()),
                seconds,
                note.eddy.visits,
                self._operators(note.eddy),
                note.busy_s,
                outcome.late,
                self._joins.numbers(outcome.joins) if outcome.joins.rows else None,
            )
        )
        self._planner.learn(note.eddy)
        self._planner.routes.learn(df, record.rows, seconds, outcome.groups)

    def _operators(self, eddy: EddyCounts) -> dict[str, dict[str, OperatorNumbers]]:
        """Return what the operators of each stream did, by the names that users know."""
        names = {stream.number: stream.name for stream in self._registry.streams()}
        return {
            names[stream]: {
                self._queries.display_text(name): OperatorNumbers(*work[:3])
                for name, work in by_name.items()
            }
            for stream, by_name in eddy.operators.items()
        }

    def _skip_idle(self, record: BatchRecord) -> None:
        """Let joins go on without streams that stand still."""
        if record.idle:
            running = self._queries.running_at(record.version)
            joined = [compiled.outline.streams for compiled in running]
            for stream in self._event_times.skip_ahead(record.idle, joined):
                newest_us = self._event_times.newest_us[stream]
                self._folder.note(StreamIdle(stream=stream, newest_us=newest_us))

    def _raise_if_stopping(self, error: BaseException) -> None:
        """Blame no query for what a stop interrupted; the micro-batch will be run again."""
        if self._is_stopping():
            raise error

    # --- results -----------------------------------------------------------------------------

    def _hand_over(
        self, batch: int, queries: Mapping[int, CompiledQuery], record: BatchRecord
    ) -> dict[int, str]:
        """Call the sinks of queries that have results; return the errors of those that failed."""
        failures: dict[int, str] = {}
        for number in record.counts:
            compiled = queries[number]
            sink = self._queries.sink_of(compiled)
            if sink is None:
                continue
            try:
                sink(self._queries.results_of(compiled, [ResultPart.of(batch, record)]), batch)
            except BaseException as error:  # a sink is code of a user: it may raise anything
                self._raise_if_stopping(error)
                failures[number] = f"its sink failed: {type(error).__name__}: {first_cause(error)}"
        return failures

    def _pause(self, failures: Mapping[int, str], batch: int) -> None:
        catalogue = self._folder.catalogue
        catalogue.pause(failures)
        for number, error in failures.items():
            name = catalogue.queries[number].name
            self._folder.note(QueryPaused(query=name, error=error, batch=batch))
