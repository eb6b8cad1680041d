"""Which rows of a batch an operator should visit, and what not to ask to find out.

To visit a row that no interested query needs is a waste but no mistake. So where nearly all rows
were needed so far, all are taken, and only now and then is it checked whether that still holds.
"""

from __future__ import annotations

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray
from eddyline.operators.bitmaps import overlap

SHARE_MIN = 0.9
CHECK_EVERY = 8


class Mostly:
    """Remembers, for one operator, whether nearly all rows need it, and go on after it.

    Examples
    --------
    >>> mostly, rows = Mostly(), np.arange(2)
    >>> interested = np.array([[0b01], [0b10]], dtype=np.uint64)
    >>> mostly.wanted(rows, interested, np.array([0b10], dtype=np.uint64))
    array([1])

    """

    def __init__(self) -> None:
        self._trusts = [0, 0]  # how often yet not to check: before a visit, after it

    def wanted(self, open_: IntArray, interested: Bitmaps, users: Bitmap) -> IntArray:
        """Return the rows that some interested query needs the operator for, or a few more."""
        return self._overlapping(0, open_, interested, users)

    def needed(self, open_: IntArray, interested: Bitmaps, users: Bitmap) -> IntArray:
        """Return the rows that some interested query needs a later operator for, or more."""
        return self._overlapping(1, open_, interested, users)

    def _overlapping(
        self, which: int, open_: IntArray, interested: Bitmaps, users: Bitmap
    ) -> IntArray:
        if self._trusts[which]:
            self._trusts[which] -= 1
            return open_
        own = interested if len(open_) == len(interested) else interested[open_]
        found: IntArray = open_[overlap(own, users)]
        if len(found) >= SHARE_MIN * len(open_):
            self._trusts[which] = CHECK_EVERY
        return found


def is_in(rows: IntArray, others: IntArray, count: int) -> BoolArray:
    """Say of each row, all below `count`, whether it is among the others."""
    present = np.zeros(count, dtype=bool)
    present[others] = True
    answers: BoolArray = present[rows]
    return answers
