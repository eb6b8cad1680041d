"""Bit positions: which bit of a bitmap stands for which query or clause."""

from __future__ import annotations

import heapq


class Slots:
    """Hands out bit positions. Positions that were given back are reused, lowest first.

    Reusing the lowest keeps bitmaps narrow while queries come and go.

    Examples
    --------
    >>> slots = Slots()
    >>> [slots.take() for _ in range(3)]
    [0, 1, 2]
    >>> slots.give_back(2)
    >>> slots.give_back(0)
    >>> slots.take(), slots.take(), slots.take(), slots.width
    (0, 2, 3, 4)

    References
    ----------
    Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section
    3.2.2: the bit of a query that was removed serves a new query.

    """

    def __init__(self) -> None:
        self._free: list[int] = []  # a heap
        #: Number of bits that a bitmap of these positions needs.
        self.width = 0

    @property
    def free(self) -> frozenset[int]:
        """Positions below the width that are not in use."""
        return frozenset(self._free)

    def take(self) -> int:
        """Return a position that is not in use."""
        if self._free:
            return heapq.heappop(self._free)
        self.width += 1
        return self.width - 1

    def give_back(self, slot: int) -> None:
        """Make a position available again."""
        heapq.heappush(self._free, slot)
