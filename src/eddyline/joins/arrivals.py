"""Windows of rows: how many rows of a stream arrived after one, when another one arrives.

All rows of an engine have an arrival number: micro-batch by micro-batch, in one of them stream by
stream, and in a stream in the order in which its source gave them. The rows of one stream are also
counted by themselves, wanted or not: that is a row's *sequence number*. The youngest row of a new
result is always one of the current micro-batch, so its arrival number says how many rows of each
stream had arrived by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eddyline.arrays import IntArray

#: Sequence number of rows that were stored when nothing counted them; older than any window.
UNCOUNTED = -(2**62)
#: Arrival number of all rows of earlier micro-batches.
BEFORE = -1


@dataclass(frozen=True)
class ArrivalClock:
    """How many rows of a stream have arrived, at any time of the current micro-batch.

    Parameters
    ----------
    before
        Rows of the stream in earlier micro-batches.
    first
        Arrival number of its first row in this one, counted from the begin of the micro-batch.
    count
        Its rows in this one.

    Examples
    --------
    Ten rows of the stream are older. Of this micro-batch, rows 5, 6 and 7 are its own.

    >>> clock = ArrivalClock(before=10, first=5, count=3)
    >>> clock.arrivals(np.array([9, 10, 12])).tolist()
    [-1, 5, 7]
    >>> clock.rows_until(np.array([4, 5, 7, 100])).tolist()
    [10, 11, 13, 13]

    """

    before: int
    first: int
    count: int

    def arrivals(self, sequence: IntArray) -> IntArray:
        """Return the arrival numbers of rows, given their sequence numbers."""
        return np.where(sequence < self.before, BEFORE, sequence - self.before + self.first)

    def rows_until(self, arrivals: IntArray) -> IntArray:
        """Return how many rows of the stream had arrived when others did, these included."""
        rows: IntArray = self.before + np.clip(arrivals - self.first + 1, 0, self.count)
        return rows
