"""Keeps the folder of an engine small however long it runs (`docs/decisions/0020`)."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.errors import EngineError
from eddyline.journal import Event
from eddyline.journal.events import TidyingFailed
from eddyline.spark.engine.batch_log import BatchLog

#: A snapshot takes the place of so many records of micro-batches.
SNAPSHOT_EVERY = 16


class Housekeeping:
    """What is done between micro-batches so that files do not pile up.

    Parameters
    ----------
    log
        The micro-batches of the engine.
    note
        Writes a decision into the journal.

    """

    def __init__(self, log: BatchLog, note: Callable[[Event], None]) -> None:
        self._log = log
        self._note = note
        self._is_failing = False

    def after_batch(self) -> None:
        """Tidy up if enough micro-batches were finished since the last time.

        What fails is tried again after the next micro-batch; it must not stop the run.
        """
        if self._log.records < SNAPSHOT_EVERY:
            return
        try:
            self._log.save(self._log.state)
        except (EngineError, OSError) as error:
            if not self._is_failing:
                self._note(TidyingFailed(reason=str(error)))
            self._is_failing = True
        else:
            self._is_failing = False
