"""How notes get from a finished action, or from a running stream, to the driver's collector.

Batch: one `Observation` for each DataFrame that a `where` was applied to. It covers the first
action only, and in a classic session reading it blocks until that action ends, so it is read in a
thread. Streaming: a named observation, read from the progress of the query.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from eddyline.errors import EddylineError
from eddyline.spark.common.side_channel import METRIC
from eddyline.spark.where.collector import NoteCollector
from eddyline.spark.where.verdict import decode_notes

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession

IN_FLIGHT_S = 5.0
AT_EXIT_S = 0.5
PROGRESS_REMEMBERED = 10_000  # many more than the recent progress of all queries has


class BatchObserver:
    """Reads the `Observation` of one DataFrame, once, when its first action is over.

    Parameters
    ----------
    observation
        Attached to the DataFrame.
    collector
        Where the notes go.
    action
        What is observed, in words.

    """

    def __init__(self, observation: Observation, collector: NoteCollector, action: str) -> None:
        self._observation = observation
        self._collector = collector
        self._action = action
        self._thread: threading.Thread | None = None
        self._made_at = time.monotonic()
        #: Whether the notes have been read.
        self.done = False

    @property
    def age_s(self) -> float:
        """Seconds since the DataFrame was made; its action cannot have ended sooner."""
        return time.monotonic() - self._made_at

    def poll(self, timeout_s: float) -> bool:
        """Read the notes if the action is over; wait for that at most so long."""
        if self.done:
            return True
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._read, name="eddyline-observation", daemon=True
            )
            self._thread.start()
        self._thread.join(timeout_s)
        return self.done

    def wait_at_exit(self) -> None:
        """Start to wait for the action now, and let the program end only when it was read."""
        self.poll(0.0)
        if self._thread is not None:
            weakref.finalize(self, _join_at_exit, self._thread)

    def read_at_once(self) -> None:
        """Read the notes without a thread where that does not block: in Connect.

        In a classic session a thread waits for them (`wait_at_exit`). Whoever waited here, while a
        filter is deleted, could keep the action itself from starting.
        """
        from pyspark.sql.utils import is_remote

        if not self.done and is_remote():
            self._read()

    def _read(self) -> None:
        row: Any = None
        # The session may be stopped while this waits: then there is nothing left to be read.
        with contextlib.suppress(Exception):
            row = self._observation.get  # blocks in a classic session, is empty at once in Connect
        if row and not self.done:
            self.done = True
            try:
                self._collector.add(decode_notes(row[METRIC]), self._action)
            except EddylineError as error:
                warnings.warn(str(error), stacklevel=1)


def _join_at_exit(thread: threading.Thread) -> None:
    """Give a thread that still reads notes a moment; one whose action never ran would never end."""
    if thread is not threading.current_thread():  # it may hold the last reference itself
        thread.join(AT_EXIT_S)


class StreamObserver:
    """Reads the progress of streaming queries that run DataFrames of one `where`.

    Parameters
    ----------
    spark
        The session the streams run in.
    collector
        Where the notes go.

    """

    def __init__(self, spark: SparkSession, collector: NoteCollector) -> None:
        self._spark = spark
        self._collector = collector
        self._names: dict[str, str] = {}
        self._read: OrderedDict[tuple[str, int, str], None] = OrderedDict()
        self._started: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._listen()

    def watch(self, name: str, action: str) -> None:
        """Read the notes of observations of this name from now on; `action` says what they are."""
        self._names[name] = action

    def poll(self) -> None:
        """Read what running queries have reported, and what is still on its way here."""
        active = set()
        for query in self._spark.streams.active:
            active.add(str(query.runId))
            for progress in query.recentProgress:
                self._read_progress(progress)
        # A query that has ended is read from its events, and the last of those says so.
        deadline = time.monotonic() + IN_FLIGHT_S
        with self._ended:
            while self._started - active and time.monotonic() < deadline:
                self._ended.wait(deadline - time.monotonic())

    def _mark_started(self, run_id: str) -> None:
        with self._ended:
            self._started.add(run_id)

    def _mark_ended(self, run_id: str) -> None:
        with self._ended:
            self._started.discard(run_id)
            self._ended.notify_all()

    def _read_progress(self, progress: Any) -> None:
        for name, row in (progress.observedMetrics or {}).items():
            key = (str(progress.runId), int(progress.batchId), name)
            with self._lock:
                if name not in self._names or key in self._read:
                    continue
                self._read[key] = None
                if len(self._read) > PROGRESS_REMEMBERED:
                    self._read.popitem(last=False)
            try:
                self._collector.add(decode_notes(_notes_in(row)), self._names[name])
            except EddylineError as error:
                warnings.warn(str(error), stacklevel=1)

    def _listen(self) -> None:
        from pyspark.sql.streaming import StreamingQueryListener

        # The session keeps its listeners permanently: this one must not keep the `where` alive.
        find = weakref.ref(self)

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None:
                if observer := find():
                    observer._mark_started(str(event.runId))

            def onQueryProgress(self, event: Any) -> None:
                if observer := find():
                    observer._read_progress(event.progress)

            def onQueryIdle(self, event: Any) -> None:
                pass

            def onQueryTerminated(self, event: Any) -> None:
                if observer := find():
                    observer._mark_ended(str(event.runId))

        # In Connect a thread of the client calls listeners until the program ends. One that is
        # started by a daemon is a daemon, too, and so does not keep the program from ending.
        adding = threading.Thread(
            target=self._spark.streams.addListener, args=(Listener(),), daemon=True
        )
        adding.start()
        adding.join()


def _notes_in(row: Any) -> Iterable[Any]:
    """Return the collected notes of an observed row: named in classic, positional in Connect."""
    try:
        return row[METRIC] or ()
    except (KeyError, ValueError, TypeError):
        values = row[0]
        return (values[0] if isinstance(values, list | tuple) else values) or ()
