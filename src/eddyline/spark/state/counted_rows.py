"""Sequence numbers of the rows of a stream, from the ids that Spark gave them before any filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eddyline.arrays import IntArray
from eddyline.joins.arrivals import ArrivalClock


@dataclass(frozen=True)
class CountedRows:
    """The rows of a stream in a micro-batch, as counted in each partition of its source.

    Parameters
    ----------
    clock
        Counts all rows of the stream.
    firsts
        Smallest id in each partition, ascending; the ids of a partition have no gaps.
    offsets
        Rows of the stream in the partitions before each.

    Examples
    --------
    >>> rows = CountedRows(ArrivalClock(before=10, first=0, count=5), (0, 1 << 33), (0, 3))
    >>> rows.sequence(np.array([0, 2, 1 << 33])).tolist()
    [10, 12, 13]

    """

    clock: ArrivalClock
    firsts: tuple[int, ...]
    offsets: tuple[int, ...]

    def sequence(self, ids: IntArray) -> IntArray:
        """Return the sequence numbers of rows."""
        firsts = np.array(self.firsts, dtype=np.int64)
        partition = np.searchsorted(firsts, ids, side="right") - 1
        offsets = np.array(self.offsets, dtype=np.int64)[partition]
        sequence: IntArray = self.clock.before + offsets + ids - firsts[partition]
        return sequence
