"""No index at all: every row is a candidate for every probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern, Ranges


class Scan(Index):
    """Compares every probe with every row. The control in tests and benchmarks.

    Parameters
    ----------
    columns
        The join columns.

    Examples
    --------
    >>> codes = np.array([7, 9, 7], dtype=np.uint64)
    >>> index = Scan(Columns([codes], [None]))
    >>> probes, positions = index.ranges((0,), [codes[:1]]).expand()
    >>> positions.tolist()
    [0, 1, 2]
    >>> rows, is_equal = index.confirm((0,), positions, [codes[:1][probes]])
    >>> rows[is_equal].tolist()
    [0, 2]

    """

    name: ClassVar[str] = "scan"

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @property
    def bytes(self) -> int:
        """Nothing is kept beyond the rows."""
        return 0

    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return a range over all rows for each probe."""
        return all_rows(len(codes[0]), len(self._columns))

    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        return positions, self._columns.equal(pattern, positions, codes)


def all_rows(probes: int, rows: int) -> Ranges:
    """Return a range over all rows for each probe; no ranges if there are no rows.

    Examples
    --------
    >>> all_rows(2, 10)
    Ranges(probes=array([0, 1]), starts=array([0, 0]), counts=array([10, 10]))

    """
    probes = probes if rows else 0
    return Ranges(
        np.arange(probes), np.zeros(probes, dtype=np.int64), np.full(probes, rows, dtype=np.int64)
    )
