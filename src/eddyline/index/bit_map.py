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
    sample, rows, hashed = codes[::step], len(codes), BitMap(bits)
    if not bits or _candidates(hashed, sample, rows) <= GAIN_MIN * max(rows / (1 << bits), 1.0):
        return hashed  # no map fills cells much more evenly
    values, counts = np.unique(sample, return_counts=True)
    if len(values) < 2:
        return hashed
    if step == 1:
        tried, seen = _cut(values, counts, bits), sample
    else:
        # Cuts fit the rows that they are made from, so other rows have to say how good they are.
        tried, seen = _cut(*np.unique(sample[::2], return_counts=True), bits), sample[1::2]
    if _candidates(hashed, seen, rows) > GAIN_MIN * _candidates(tried, seen, rows):
        return _cut(values, counts, bits)
    return hashed


def _cut(values: Codes, counts: IntArray, bits: int) -> BitMap:
    """Return a map that cuts codes into stretches with about the same number of rows each."""
    return BitMap(bits, tuple(map(int, _cuts(values, counts, 1 << bits))))


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


def _candidates(bit_map: BitMap, sample: Codes, rows: int) -> float:
    """Return how many of so many rows share a cell with a row, by the pairs of a sample."""
    filled = np.bincount(bit_map.cells(sample)).astype(np.float64)
    pairs = len(sample) * (len(sample) - 1)
    return float(1 + (rows - 1) * (filled * (filled - 1)).sum() / max(pairs, 1))
