"""Which rows of a chunk an operator visits.

Visiting a row that no interested query needs the operator for wastes time but is not an error. So
where nearly all rows needed the operator, all rows are taken without a check for some chunks
(`docs/decisions/0011`).
"""

from __future__ import annotations

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray
from eddyline.operators.bitmaps import overlap

SHARE_MIN = 0.9
UNCHECKED_CHUNKS = 8


class VisitFilter:
    """Selects rows by the queries that are interested in them, for one operator.

    After a check that kept at least `SHARE_MIN` of the rows, the next `UNCHECKED_CHUNKS` chunks
    are passed on whole.

    Examples
    --------
    >>> visit_filter, rows = VisitFilter(), np.arange(2)
    >>> interested = np.array([[0b01], [0b10]], dtype=np.uint64)
    >>> visit_filter.before(rows, interested, np.array([0b10], dtype=np.uint64))
    array([1])

    """

    def __init__(self) -> None:
        self._unchecked_before = 0
        self._unchecked_after = 0

    @property
    def is_checking(self) -> bool:
        """Whether the next rows are checked, both before and after the visit."""
        return not (self._unchecked_before or self._unchecked_after)

    def check_again(self) -> None:
        """Check the next rows: they come by another way, so what was seen before does not count."""
        self._unchecked_before = self._unchecked_after = 0

    def before(self, rows: IntArray, interested: Bitmaps, users: Bitmap) -> IntArray:
        """Return the rows to visit: all that an interested query needs the operator for."""
        if self._unchecked_before:
            self._unchecked_before -= 1
            return rows
        kept = _overlapping(rows, interested, users)
        if len(kept) >= SHARE_MIN * len(rows):
            self._unchecked_before = UNCHECKED_CHUNKS
        return kept

    def after(self, rows: IntArray, interested: Bitmaps, incomplete: Bitmap) -> IntArray:
        """Return the rows to route on: all that interest a query which is not complete yet."""
        if self._unchecked_after:
            self._unchecked_after -= 1
            return rows
        kept = _overlapping(rows, interested, incomplete)
        if len(kept) >= SHARE_MIN * len(rows):
            self._unchecked_after = UNCHECKED_CHUNKS
        return kept


def _overlapping(rows: IntArray, interested: Bitmaps, queries: Bitmap) -> IntArray:
    chosen = interested if len(rows) == len(interested) else interested[rows]
    kept: IntArray = rows[overlap(chosen, queries)]
    return kept


def is_in(rows: IntArray, others: IntArray, count: int) -> BoolArray:
    """Return for each row, all below `count`, whether it is among the others."""
    present = np.zeros(count, dtype=bool)
    present[others] = True
    answers: BoolArray = present[rows]
    return answers
