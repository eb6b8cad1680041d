"""When new rows are profiled and searched for classes: rarely enough not to be noticed.

What a search takes is known from its size, and what probing takes from what it counts. So the pace
is set in comparisons, and the same rows are always treated the same.
"""

from __future__ import annotations

from dataclasses import dataclass

PROFILED_ROWS = 128
#: Comparisons between two profiles of so many rows, and before a search.
PROFILE_WORK = 1 << 17
SEARCH_WORK = 1 << 19
FACTOR_MAX = 64


@dataclass
class SearchPace:
    """Counts comparisons, and says what may be done about classes.

    Parameters
    ----------
    factor
        What the pace is slowed down by: four times as much after each search.

    Examples
    --------
    >>> pace = SearchPace()
    >>> pace.add_work(PROFILE_WORK)
    >>> pace.may_profile, pace.may_search
    (True, False)
    >>> pace.begin_profile()
    >>> pace.add_work(SEARCH_WORK - PROFILE_WORK)
    >>> pace.may_search
    True
    >>> pace.slow_down()
    >>> pace.may_profile, pace.may_search
    (False, False)

    """

    factor: int = 1
    _since_profile: int = 0
    _since_search: int = 0

    def add_work(self, comparisons: int) -> None:
        """Add probes and stored rows compared."""
        self._since_profile += comparisons
        self._since_search += comparisons

    @property
    def may_profile(self) -> bool:
        """Whether some rows may ask every SteM."""
        return self._since_profile >= self.factor * PROFILE_WORK

    @property
    def may_search(self) -> bool:
        """Whether the profiled rows may be searched."""
        return self._since_search >= self.factor * SEARCH_WORK

    def begin_profile(self) -> None:
        """Count from here to the next profile."""
        self._since_profile = 0

    def begin_search(self) -> None:
        """Count from here to the next search."""
        self._since_search = 0

    def slow_down(self) -> None:
        """Make the intervals four times as long, after a search and the trial of its result."""
        self.factor = min(4 * self.factor, FACTOR_MAX)
