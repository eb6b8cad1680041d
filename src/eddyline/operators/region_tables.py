"""Tables of bitmaps for some slots of a grouped filter: one line for each region of values.

A table for all slots grows with the square of their number. One for few slots only needs the
regions in which one of these switches, and such tables grow with the number of bounds: each bound
costs as many words as its table is wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray
from eddyline.operators.bitmaps import ONE

#: Of the memory of a table: what the line of each region may take, else it is searched for.
LINES_SHARE_MAX = 2


class RegionTable:
    """A bitmap for each region.

    Parameters
    ----------
    changed
        Regions of the whole filter in which the bitmap differs from that of the region before.
    regions
        Number of regions of the whole filter, without NULL.
    bitmaps
        The bitmap before the first of the changed regions, those from each of them on, and that of
        NULL.

    """

    def __init__(self, changed: IntArray, regions: int, bitmaps: Bitmaps) -> None:
        self.bitmaps = bitmaps
        self._changed = changed
        self._has_all = len(changed) == regions - 1
        # The line of each region; NULL, region -1, comes last.
        self._line: NDArray[np.signedinteger[Any]] | None = None
        kind = np.dtype(np.int16 if len(bitmaps) < 1 << 15 else np.int32)
        if not self._has_all and kind.itemsize * regions <= LINES_SHARE_MAX * bitmaps.nbytes:
            self._line = np.zeros(regions + 1, dtype=kind)
            self._line[changed] = 1
            np.cumsum(self._line, out=self._line)
            self._line[-1] = -1

    def take(self, regions: IntArray, out: Bitmaps) -> None:
        """Write the bitmaps of regions; -1 stands for NULL."""
        lines: NDArray[np.signedinteger[Any]] = regions
        if self._line is not None:
            lines = self._line[regions]
        elif not self._has_all:
            lines = np.searchsorted(self._changed, regions, side="right")
            lines[regions < 0] = -1
        np.take(self.bitmaps, lines, axis=0, out=out, mode="wrap")  # -1 is the last line


class RegionTables:
    """Makes tables for the slots that are asked for.

    Parameters
    ----------
    switches
        Slots in the order of their bounds; the complement of a slot where its bit is cleared.
    ends
        For each region, the number of switches up to its lower bound.
    below, null
        The bitmaps of the first region and of NULL.
    slots
        Bitmap of the slots that have a predicate.

    """

    def __init__(
        self,
        switches: NDArray[np.int32],
        ends: NDArray[np.int32],
        below: Bitmap,
        null: Bitmap,
        slots: Bitmap,
    ) -> None:
        self._clears = switches < 0
        self._region = np.repeat(np.arange(1, len(ends)), np.diff(ends))
        self._regions = len(ends)
        self._is_below, self._is_null, self._is_used = map(_bits, (below, null, slots))
        slot = np.where(self._clears, ~switches, switches)
        self._by_slot = np.argsort(slot, kind="stable")
        self._starts = np.searchsorted(slot[self._by_slot], np.arange(len(self._is_used) + 1))

    def lines_max(self, slots: IntArray) -> int:
        """Return how many lines a table of some slots has at most."""
        bounds = int((self._starts[slots + 1] - self._starts[slots]).sum())
        return min(bounds + 1, self._regions) + 1

    def table(self, slots: IntArray, places: IntArray, words: int) -> RegionTable | None:
        """Return a table of some slots; None if none of them has a predicate here.

        Parameters
        ----------
        slots
            The slots.
        places
            For each, the bit that it has in the bitmaps of the table.
        words
            Number of words of these bitmaps. All other bits are clear.

        Examples
        --------
        >>> from eddyline.operators.domain import Whole
        >>> from eddyline.operators.grouped_filter import GroupedFilter
        >>> group, ages = GroupedFilter(Whole(), default=False), Whole()
        >>> group.load({0: ages.compare(">", 17), 7: ages.compare("<", 65)})
        >>> group.tables().table(np.array([7]), np.array([1]), words=1).bitmaps.tolist()
        [[2], [0], [0]]

        """
        if not self._is_used[slots].any():
            return None
        counts = self._starts[slots + 1] - self._starts[slots]
        first = self._starts[slots] - np.cumsum(counts) + counts
        chosen = self._by_slot[np.repeat(first, counts) + np.arange(int(counts.sum()))]
        place = np.repeat(places, counts)
        additions = ONE << (place & 63).astype(np.uint64)
        np.negative(additions, out=additions, where=self._clears[chosen])
        changed, line = np.unique(self._region[chosen], return_inverse=True)
        bitmaps = np.zeros((len(changed) + 2, words), dtype=np.uint64)
        bitmaps[0] = _bitmap(places[self._is_below[slots]], words)
        np.add.at(bitmaps.reshape(-1), (line + 1) * words + (place >> 6), additions)
        np.add.accumulate(bitmaps, axis=0, out=bitmaps)
        bitmaps[-1] = _bitmap(places[self._is_null[slots]], words)
        return RegionTable(changed, self._regions, bitmaps)


def _bits(bitmap: Bitmap) -> BoolArray:
    bits: BoolArray = np.unpackbits(bitmap.view(np.uint8), bitorder="little").view(bool)
    return bits


def _bitmap(slots: IntArray, words: int) -> Bitmap:
    bits = np.zeros(64 * words, dtype=bool)
    bits[slots] = True
    return np.packbits(bits, bitorder="little").view(np.uint64)
