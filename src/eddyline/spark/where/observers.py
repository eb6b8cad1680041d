"""How notes get from a finished action, or from a running stream, into the driver's memory.

Batch: one `Observation` for each DataFrame that a `where` was applied to. It tells about the first
action only, and in a classic session asking it waits until there is one, so it is asked in a thread
of its own. Streaming: a named observation, read from the progress of the query.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from eddyline.spark.common.notes import decode
from eddyline.spark.where.collector import Learnt

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession

METRIC = "notes"
IN_FLIGHT_S = 5.0
PROGRESS_REMEMBERED = 10_000  # many more than the recent progress of all queries has


class BatchObserver:
    """Reads the `Observation` of one DataFrame, once, when its first action is over."""

    def __init__(self, observation: Observation, learnt: Learnt) -> None:
        self._observation = observation
        self._learnt = learnt
        self._thread: threading.Thread | None = None
        self.done = False

    def poll(self, timeout_s: float) -> bool:
        """Take the notes in if the action is over; wait for that at most so long."""
        if self.done:
            return True
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._read, name="eddyline-observation", daemon=True
            )
            self._thread.start()
        self._thread.join(timeout_s)
        return self.done

    def _read(self) -> None:
        # The session may be stopped while this waits: then there is nothing left to be read.
        with contextlib.suppress(Exception):
            row = self._observation.get  # waits in a classic session, is empty at once in Connect
            if row and not self.done:
                self._learnt.add(decode(row[METRIC] or ()))
                self.done = True


class StreamObserver:
    """Reads the progress of streaming queries that run DataFrames of one `where`.

    Parameters
    ----------
    spark
        The session the streams run in.
    learnt
        Where the notes go.

    """

    def __init__(self, spark: SparkSession, learnt: Learnt) -> None:
        self._spark = spark
        self._learnt = learnt
        self._names: set[str] = set()
        self._taken: OrderedDict[tuple[str, int, str], None] = OrderedDict()
        self._started: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._listen()

    def watch(self, name: str) -> None:
        """Take in the notes of observations of this name from now on."""
        self._names.add(name)

    def poll(self) -> None:
        """Take in what running queries have reported, and what is still on its way here."""
        active = set()
        for query in self._spark.streams.active:
            active.add(str(query.runId))
            for progress in query.recentProgress:
                self._take(progress)
        # A query that has ended is read from its events, and the last of those says so.
        deadline = time.monotonic() + IN_FLIGHT_S
        with self._ended:
            while self._started - active and time.monotonic() < deadline:
                self._ended.wait(deadline - time.monotonic())

    def _note_start(self, run_id: str) -> None:
        with self._ended:
            self._started.add(run_id)

    def _note_end(self, run_id: str) -> None:
        with self._ended:
            self._started.discard(run_id)
            self._ended.notify_all()

    def _take(self, progress: Any) -> None:
        for name, row in (progress.observedMetrics or {}).items():
            key = (str(progress.runId), int(progress.batchId), name)
            with self._lock:
                if name not in self._names or key in self._taken:
                    continue
                self._taken[key] = None
                if len(self._taken) > PROGRESS_REMEMBERED:
                    self._taken.popitem(last=False)
            self._learnt.add(decode(_notes_in(row)))

    def _listen(self) -> None:
        from pyspark.sql.streaming import StreamingQueryListener

        # The session keeps its listeners for ever: this one must not keep the `where` alive.
        find = weakref.ref(self)

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None:
                if observer := find():
                    observer._note_start(str(event.runId))

            def onQueryProgress(self, event: Any) -> None:
                if observer := find():
                    observer._take(event.progress)

            def onQueryIdle(self, event: Any) -> None:
                pass

            def onQueryTerminated(self, event: Any) -> None:
                if observer := find():
                    observer._note_end(str(event.runId))

        self._spark.streams.addListener(Listener())


def _notes_in(row: Any) -> Iterable[Any]:
    """Return the collected notes of an observed row: named in classic, positional in Connect."""
    try:
        return row[METRIC] or ()
    except (KeyError, ValueError, TypeError):
        values = row[0]
        return (values[0] if isinstance(values, list | tuple) else values) or ()
