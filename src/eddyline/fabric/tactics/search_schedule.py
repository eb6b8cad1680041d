"""When to search for classes of rows, and who pays for it."""

from __future__ import annotations

import time

import numpy as np

from eddyline.fabric.tactics.class_search import ClassSearch
from eddyline.fabric.tactics.tactic import SegmentContext

SEARCH_US = 20_000.0  # expected duration of a search until one was timed
PAUSE_ROWS = 16_384
PAID_ROWS = 10_240  # in use, before classes have paid for the trial that brought them in


class SearchSchedule:
    """Decides whether there is budget for a search, and books the time of each.

    The first search is always allowed. The next few, and those after drift, need a loan of the
    budget. All others can wait: they may take a share of the useful work since the last search.
    Each is a debt that is repaid slowly, because paying for it at once would leave the order
    unwatched (docs/decisions/0006). After a trial that was reverted, and after classes that were
    dropped before they had paid for theirs, searches pause for twice as many rows as the time
    before.

    Parameters
    ----------
    context
        Shared with the driver of the segment.

    """

    def __init__(self, context: SegmentContext) -> None:
        #: Whether the rows have changed since the last search.
        self.is_urgent = False
        self._array = context.array
        self._ledger = context.ledger
        self._search_us = SEARCH_US
        self._useful_us = 0.0
        self._reverted_trials = 0
        self._short_uses = 0
        self._kept_at_rows = 0
        self._paused_until_rows = 0
        self._began = 0.0

    def note_drift(self) -> None:
        """Ask for a search soon; trials of what was found among other rows say nothing any more."""
        self.is_urgent = True
        self._paused_until_rows = 0

    def add_useful(self, useful_us: float) -> None:
        """Add useful work, which deferrable searches are measured against."""
        self._useful_us += useful_us

    def allows(self, class_search: ClassSearch) -> bool:
        """Whether there are enough new rows to search, and budget for it."""
        if not class_search.is_due or self._ledger.rows < self._paused_until_rows:
            return False
        if class_search.searches == 0:
            return True
        budget = self._ledger.budget
        if self.is_urgent or class_search.is_early:
            return budget.allows_loan(self._booked_us, self._useful_us)
        return budget.allows_deferrable(self._booked_us, self._useful_us)

    def begin(self) -> None:
        """Start to time a search."""
        self.is_urgent = False
        self._useful_us = 0.0
        self._began = time.perf_counter()

    def end(self) -> None:
        """Book the time of a search."""
        self._search_us = (time.perf_counter() - self._began) * 1e6
        self._ledger.book_profiling(self._search_us)
        self._ledger.budget.owe(self._booked_us)

    def note_trial(self, is_kept: bool) -> None:
        """Pause searches after a trial that was reverted."""
        if is_kept:
            self._kept_at_rows = self._ledger.rows
            self._reverted_trials = 0
            return
        self._reverted_trials += 1
        self._pause(self._reverted_trials)

    def note_dropped(self) -> None:
        """Pause searches where rows change faster than classes pay for their trials."""
        if self._ledger.rows - self._kept_at_rows >= PAID_ROWS:
            self._short_uses = 0
            return
        self._short_uses += 1
        self._pause(self._short_uses)

    def _pause(self, times: int) -> None:
        self._paused_until_rows = self._ledger.rows + PAUSE_ROWS * 2 ** min(times, 16)

    @property
    def _booked_us(self) -> float:
        nothing = np.zeros(len(self._array), dtype=np.int64)
        return self._array.booked_us(self._search_us, nothing)
