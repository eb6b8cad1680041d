"""From the values of a column to the bits it has in a bucket id.

By default the bits are the high ones of a value's code, which a hash has spread. Where some values
have many more rows than others, or a column has few values, that fills buckets unevenly; then the
codes are cut into stretches with about the same number of rows each.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, section 4.1, end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eddyline.arrays import Codes, IntArray

#: Rows from which a map is made.
SAMPLE_ROWS = 4_096
#: Cutting codes costs a search for each row and probe: it must compare so many times fewer rows.
GAIN_MIN = 1.25


@dataclass(frozen=True)
class BitMap:
    """Maps codes to cells, numbered from 0.

    Parameters
    ----------
    bits
        There are two to the power of this many cells.
    cuts
        Ascending codes at which a new cell begins, at most one less than there are cells; None to
        take the high bits of codes.

    Examples
    --------
    >>> high = np.array([0, 1 << 62, 3 << 62], dtype=np.uint64)
    >>> BitMap(1).cells(high).tolist(), BitMap(2).cells(high).tolist()
    ([0, 0, 1], [0, 1, 3])
    >>> BitMap(1, (5,)).cells(np.array([4, 5], dtype=np.uint64)).tolist()
    [0, 1]

    """

    bits: int
    cuts: tuple[int, ...] | None = None

    def cells(self, codes: Codes) -> IntArray:
        """Return the cell of each code."""
        if not self.bits:
            return np.zeros(len(codes), dtype=np.int64)
        if self.cuts is None:
            return (codes >> np.uint64(64 - self.bits)).view(np.int64)
        cuts = np.array(self.cuts, dtype=np.uint64)
        return np.searchsorted(cuts, codes, side="right")


def balanced(codes: Codes, bits: int) -> BitMap:
    """Return a map that fills cells evenly: high bits, unless cutting codes does much better.

    Parameters
    ----------
    codes
        Codes of rows; a sample of them is used.
    bits
        Number of bits.

    Examples
    --------
    High bits would put these four values into two of the four cells.

    >>> codes = np.array([1, 2, 3, 1 << 63], dtype=np.uint64)
    >>> BitMap(2).cells(codes).tolist(), balanced(codes, 2).cells(codes).tolist()
    ([0, 0, 0, 2], [0, 1, 2, 3])

    """
    step = max(1, len(codes) // SAMPLE_ROWS)
    values, counts = np.unique(codes[::step], return_counts=True)
    if not bits or len(values) < 2:
        return BitMap(bits)
    hashed = BitMap(bits)
    cut = BitMap(bits, tuple(map(int, _cuts(values, counts, 1 << bits))))
    if _candidates(hashed, values, counts) > GAIN_MIN * _candidates(cut, values, counts):
        return cut
    return hashed


def _cuts(values: Codes, counts: IntArray, cells: int) -> Codes:
    """Return where new cells begin: each takes an equal share of the rows that are left."""
    if len(values) <= cells:
        return values[1:]
    ends = np.cumsum(counts)
    begins: list[int] = []
    first = 0
    for cells_left in range(cells, 1, -1):
        before = ends[first - 1] if first else 0
        share = (ends[-1] - before) / cells_left
        last = int(np.searchsorted(ends, before + share))  # the value with which the share is full
        if last > first and ends[last] - before - share > share - (ends[last - 1] - before):
            last -= 1  # nearer to the share without it
        first = last + 1
        if first >= len(values):
            break
        begins.append(first)
    return values[begins]


def _candidates(bit_map: BitMap, values: Codes, counts: IntArray) -> float:
    """Return the rows that share a cell with a row, on average."""
    filled = np.bincount(bit_map.cells(values), weights=counts)
    return float((filled**2).sum() / counts.sum())
