"""A bit-address index whose bits keep the order of values: serves comparisons of two columns.

A sorted column answers an interval of that column exactly, and nothing of another one. Here a
bucket id has bits of two columns, each cut into stretches with about the same number of rows. The
rows within two intervals lie in a rectangle of buckets: a range for each stretch of the first
column.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, section 4.1, and section 3 for < and >.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.index.index import Ranges
from eddyline.index.sorted_hash import radix_argsort

BITS_MAX = 10


class Limits(NamedTuple):
    """Smallest and largest value of a column for each probe; a probe with NaN has no rows."""

    low: FloatArray
    high: FloatArray


class OrderedBits:
    """Rows in the order of bucket ids made of two columns; NaN stands for NULL.

    Parameters
    ----------
    first, second
        The columns; the bits of the first one are the high ones.

    Examples
    --------
    >>> x, y = np.arange(1000.0), np.arange(1000.0)[::-1]
    >>> index = OrderedBits(x, y)
    >>> within = Limits(np.array([0.0]), np.array([99.0]))
    >>> int(index.ranges(within, within).counts.sum())  # of 100 rows within either
    0
    >>> everywhere = Limits(np.array([-np.inf]), np.array([np.inf]))
    >>> int(index.ranges(within, everywhere).counts.sum())
    125

    """

    def __init__(self, first: FloatArray, second: FloatArray) -> None:
        kept = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
        bits = min(max(len(kept), 1).bit_length() // 2, BITS_MAX)
        self._bits = bits
        self._cuts = [_cuts(column[kept], 1 << bits) for column in (first, second)]
        cells = [
            np.searchsorted(cuts, column[kept], side="right")
            for cuts, column in zip(self._cuts, (first, second), strict=True)
        ]
        addresses = (cells[0] << bits) + cells[1]
        order = radix_argsort(addresses.astype(np.uint64), 2 * bits)
        #: Rows in the order of their bucket ids.
        self.rows: IntArray = kept[order]
        self._offsets = np.zeros((1 << 2 * bits) + 1, dtype=np.int64)
        np.cumsum(np.bincount(addresses, minlength=1 << 2 * bits), out=self._offsets[1:])

    @property
    def bytes(self) -> int:
        """Memory that the index takes beyond the rows, in bytes."""
        return int(self.rows.nbytes + self._offsets.nbytes)

    def ranges_per_probe(self, first: Limits) -> IntArray:
        """Return the number of ranges that each probe visits."""
        low, high = self._cells(0, first)
        ranges: IntArray = np.maximum(high - low + 1, 0)
        return ranges

    def ranges(self, first: Limits, second: Limits) -> Ranges:
        """Return where the rows are whose values lie between two values of each probe, inclusive.

        The ranges have other rows too.

        Parameters
        ----------
        first, second
            The intervals of both columns.

        """
        low, high = self._cells(0, first)
        below, above = self._cells(1, second)
        count = np.where(above >= below, np.maximum(high - low + 1, 0), 0)
        probes, cells = Ranges(np.arange(len(low)), low, count).expand()
        lowest = (cells << self._bits) + below[probes]
        starts = self._offsets[lowest]
        counts = self._offsets[(cells << self._bits) + above[probes] + 1] - starts
        taken = np.flatnonzero(counts)
        return Ranges(probes[taken], starts[taken], counts[taken])

    def _cells(self, column: int, limits: Limits) -> tuple[IntArray, IntArray]:
        """Return the first and the last stretch of an interval; none of a probe with NaN."""
        low = np.searchsorted(self._cuts[column], limits.low, side="right")
        high = np.searchsorted(self._cuts[column], limits.high, side="right")
        is_empty = ~(limits.low <= limits.high)
        return np.where(is_empty, 1, low), np.where(is_empty, 0, high)


def _cuts(values: FloatArray, cells: int) -> FloatArray:
    """Return where stretches with about the same number of rows begin, without the first."""
    ordered = np.sort(values)
    return (
        np.unique(ordered[len(ordered) * np.arange(1, cells) // cells]) if len(ordered) else ordered
    )
