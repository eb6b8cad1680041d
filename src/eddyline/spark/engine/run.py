"""The handle of a running engine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eddyline.errors import EngineError
from eddyline.journal import Journal
from eddyline.journal.events import EngineStopped
from eddyline.report.run import MicroBatch, RunReport
from eddyline.spark.engine.batch_runner import BatchRunner
from eddyline.spark.engine.causes import first_cause
from eddyline.spark.engine.checkpoint import await_sources, short_history
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.planner import EddyPlanner
from eddyline.spark.engine.queries import EngineQueries
from eddyline.spark.engine.registry import Registry
from eddyline.spark.engine.stream_info import union_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AVAILABLE_NOW = "available now"


class Run:
    """A running engine; made by `Engine.start`. `streaming_query` is Spark's own handle.

    Parameters
    ----------
    folder
        The folder of the engine.
    registry, queries
        Streams and tables, and the queries over them.
    planner
        Plans micro-batches.
    trigger
        When to read the streams: an interval, or "available now".

    """

    def __init__(
        self,
        folder: EngineFolder,
        registry: Registry,
        queries: EngineQueries,
        planner: EddyPlanner,
        trigger: str,
    ) -> None:
        self._folder = folder
        self._queries = queries
        self._stop_requested = False
        self._stop_lock = threading.Lock()
        self._batch_thread: int | None = None
        frames = registry.frames()
        tasks = frames[0].sparkSession.sparkContext.defaultParallelism
        self._runner = BatchRunner(folder, registry, queries, planner, self._is_stopping, tasks)
        self._is_once = trigger == AVAILABLE_NOW
        writer = (
            union_streams(registry.streams(), frames)
            .writeStream.foreachBatch(self._run_batch)
            .option("checkpointLocation", str(folder.checkpoint.path))
            .queryName(f"eddyline {folder.path.name}")
        )
        when = {"availableNow": True} if self._is_once else {"processingTime": trigger}
        try:
            with short_history(frames[0].sparkSession):
                self.streaming_query = writer.trigger(**when).start()
                await_sources(self.streaming_query)
        except Exception as error:
            if "INVALID_INTERVAL_FORMAT" in str(error):
                raise EngineError(
                    f"trigger={trigger!r} is not an interval; write for example "
                    f'"1 second" or "5 minutes", or "{AVAILABLE_NOW}"'
                ) from error
            raise EngineError(
                f"cannot start: {first_cause(error)}. If {folder.checkpoint.path} was damaged, "
                f"restore it from a backup"
            ) from error

    @property
    def is_active(self) -> bool:
        """Whether micro-batches are being run."""
        return bool(self.streaming_query.isActive)

    @property
    def may_be_active(self) -> bool:
        """Whether micro-batches may be running; False if Spark itself is gone."""
        try:
            return self.is_active
        except Exception:  # the session was stopped, or its process has ended
            return False

    def results(self, name: str) -> DataFrame:
        """Return the results of a query so far."""
        return self._queries.results(name)

    def late(self, stream: str) -> DataFrame:
        """Return the rows of a stream that were too late for every join that wanted them.

        They have the columns that joins read and the event time; other columns are NULL.
        """
        return self._queries.late(stream)

    def process_all_available(self) -> None:
        """Wait until everything that the streams have now is processed."""
        with self._explained():
            if self._is_once:
                self.streaming_query.awaitTermination()
            else:
                self.streaming_query.processAllAvailable()

    def await_termination(self, timeout: float | None = None) -> None:
        """Wait until the run ends, at most for the given number of seconds."""
        with self._explained():
            self.streaming_query.awaitTermination(timeout)

    def stop(self) -> None:
        """Stop; a micro-batch that this interrupts is run again at the next `Engine.start`."""
        if threading.get_ident() == self._batch_thread:
            raise EngineError(
                "a sink cannot stop the run that waits for it; let another thread call stop()"
            )
        with self._stop_lock:
            if self.is_active:
                self._stop_requested = True
                self.streaming_query.stop()
                self._folder.note(EngineStopped(), sum(batch.rows for batch in self.batches()))

    def report(self, full: bool = False) -> RunReport:
        """Return what this run did so far.

        It shows the 20 queries with the most matches and the 20 that cost most; `to_dict` has all
        of them, as has the report if it is to be `full`.
        """
        batches = self.batches()
        costs = self._queries.costs([batch.operators for batch in batches])
        return RunReport(batches, self._queries.states(), costs, full)

    def batches(self) -> list[MicroBatch]:
        """Return the micro-batches of this run so far."""
        return list(self._runner.batches)

    def journal(self) -> Journal:
        """Return every decision since the engine was opened."""
        return self._folder.journal

    def _run_batch(self, df: DataFrame, batch: int) -> None:
        self._batch_thread = threading.get_ident()
        try:
            self._runner.run(df, batch)
        finally:
            self._batch_thread = None

    def _is_stopping(self) -> bool:
        # The first micro-batch may run before Spark has returned its handle.
        query = getattr(self, "streaming_query", None)
        return self._stop_requested or (query is not None and not query.isActive)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise the error of a micro-batch in place of the one that Spark makes of it."""
        try:
            yield
        except Exception as error:
            if self._runner.failure is not None:
                raise self._runner.failure from error
            if "STREAM_FAILED" not in str(error):
                raise
            # Spark failed outside of a micro-batch: reading the sources or its checkpoint.
            raise EngineError(
                f"Spark cannot read the streams or its checkpoint: {first_cause(error)}. If "
                f"{self._folder.checkpoint.path} was damaged, restore it from a backup; nothing "
                f"that was stored is lost"
            ) from error
