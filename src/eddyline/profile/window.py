"""The profile window of A-Greedy: a sliding window over the newest profile tuples."""

from __future__ import annotations

import numpy as np

from eddyline.arrays import BoolArray


class ProfileWindow:
    """A ring buffer of profile tuples.

    A profile tuple has one boolean per filter: whether the filter drops the row. Only rows that
    some filter drops are profiled, so every tuple has at least one True.

    Parameters
    ----------
    filters
        Number of filters.
    tuples_max
        Number of tuples that the window holds. When it is full, the oldest tuples expire.

    Examples
    --------
    >>> window = ProfileWindow(filters=2, tuples_max=2)
    >>> window.insert([[True, False], [False, True]]).tolist()
    []
    >>> window.insert([[True, True]]).tolist()  # what expired to make room
    [[True, False]]
    >>> window.tuples().tolist()
    [[False, True], [True, True]]

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 4.1.1.

    """

    def __init__(self, filters: int, tuples_max: int) -> None:
        if tuples_max < 1:
            raise ValueError(f"tuples_max must be at least 1, not {tuples_max}")
        self.tuples_max = tuples_max
        self._ring = np.zeros((tuples_max, filters), dtype=bool)
        self._oldest = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def insert(self, tuples: BoolArray | list[list[bool]]) -> BoolArray:
        """Insert tuples, oldest first; return those that expired, in the order they came."""
        tuples = np.asarray(tuples, dtype=bool).reshape(-1, self._ring.shape[1])
        inserted = len(tuples)
        surplus = max(0, inserted - self.tuples_max)  # these expire at once
        kept = tuples[surplus:]
        overflow = max(0, self._count + len(kept) - self.tuples_max)
        expired = self._ring[(self._oldest + np.arange(overflow)) % self.tuples_max]
        slots = (self._oldest + self._count + np.arange(len(kept))) % self.tuples_max
        self._ring[slots] = kept
        self._oldest = (self._oldest + overflow) % self.tuples_max
        self._count += len(kept) - overflow
        return np.concatenate([expired, tuples[:surplus]]) if surplus else expired

    def tuples(self) -> BoolArray:
        """Return the tuples in the window, oldest first."""
        return self._ring[(self._oldest + np.arange(self._count)) % self.tuples_max]
