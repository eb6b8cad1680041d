"""Grouped filter: the comparisons of all queries with constants, on one column, in one operator.

The bounds of all queries cut the domain into regions; within a region every query's answer is the
same. Of a batch, the region of each value is found by one search, and its bitmap of queries taken.

A bitmap for each region would grow with the square of the number of queries. So bitmaps are kept
only at intervals, with the lists of bits that switch between them, as long as it costs about the
same to apply such a list as to copy a bitmap: memory grows with the number of bounds.

The property everything rests on: the bitmap of region r is that of the nearest checkpoint, before
or behind it, with the bits of all bounds in between switched. To switch a bit is to add a mask to
its word, or to subtract it: NumPy has a fast path to add at many places, and none for XOR.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.6.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.operators.bitmaps import ALL, bit, bitmap_of, widen
from eddyline.operators.domain import Domain, Finder, find_key, insert_key, sorted_keys
from eddyline.operators.region_tables import RegionTables
from eddyline.operators.value_set import Key, ValueSet

# Switching one bit costs about as much as copying this many words.
WORDS_PER_SWITCH = 2.2
TABLE_BYTES_MAX = 1 << 21
_BITS = np.uint64(1) << np.arange(64, dtype=np.uint64)
#: What sets the bit of a switch, by its last six bits; what clears it, in the second half.
_ADDITIONS = np.append(_BITS, np.negative(_BITS[::-1]))


class GroupedFilter:
    """Answers, for all queries at once, which of them accept a value.

    Parameters
    ----------
    domain
        How the values of the column are ordered and compared.
    default
        The answer for slots that have no predicate here.
    words
        Words in a bitmap; `widen` adds more.

    Examples
    --------
    >>> from eddyline.operators.bitmaps import set_bits
    >>> from eddyline.operators.domain import Whole
    >>> ages = Whole()
    >>> group = GroupedFilter(ages, default=False)
    >>> group.add(0, ages.compare(">", 17))
    >>> group.add(1, ages.compare("<", 65) & ages.compare(">=", 18))
    >>> rows, slots = set_bits(group.accepting(pa.array([17, 30, 70, None])))
    >>> list(zip(rows.tolist(), slots.tolist()))
    [(1, 0), (1, 1), (2, 0)]
    >>> group.remove(0)
    >>> rows, slots = set_bits(group.accepting(pa.array([17, 30, 70])))
    >>> list(zip(rows.tolist(), slots.tolist()))
    [(1, 1)]

    """

    def __init__(self, domain: Domain, default: bool, words: int = 1) -> None:
        self.domain = domain
        self.default = default
        self.words = words
        self._slots: Bitmap = np.zeros(words, dtype=np.uint64)
        filled = ALL if default else np.uint64(0)
        self._find: Finder | None = None  # made when they are needed, as the next two
        self._table: Bitmaps | None = None
        self._span: slice | None = None
        self._spanned: Bitmaps | None = None  # the part of `_maps` in the span
        self._keys = domain.no_keys()
        # Slots, in the order of their bounds; the complement of a slot where its bit is cleared.
        self._switches = np.zeros(0, dtype=np.int32)
        self._ends = np.zeros(1, dtype=np.int32)  # switches before region r
        self._regions = np.zeros(1, dtype=np.int32)  # those that have a checkpoint
        self._maps = np.full((1, words), filled, dtype=np.uint64)
        self._null = np.full(words, filled, dtype=np.uint64)

    def __len__(self) -> int:
        """Return the number of slots that have a predicate here."""
        return int(np.bitwise_count(self._slots).sum())

    def __contains__(self, slot: int) -> bool:
        word, mask = bit(slot)
        return word < self.words and bool(self._slots[word] & mask)

    def load(self, predicates: Mapping[int, ValueSet]) -> None:
        """Add the predicates of many slots at once, to an empty filter."""
        self._forget_derived()
        if len(self):
            raise ValueError("load fills an empty filter; use add")
        self._slots = bitmap_of(predicates, self.words)
        pairs = [pair for slot, values in predicates.items() for pair in _switches(slot, values)]
        self._keys, at = sorted_keys(self.domain, [key for key, _ in pairs])
        order = np.argsort(at, kind="stable")
        self._switches = np.array([switch for _, switch in pairs], dtype=np.int32)[order]
        self._ends = np.zeros(len(self._keys) + 1, dtype=np.int32)
        np.cumsum(np.bincount(at, minlength=len(self._keys)), out=self._ends[1:])
        below = [slot for slot, values in predicates.items() if values.below != self.default]
        null = [slot for slot, values in predicates.items() if values.null != self.default]
        self._maps ^= bitmap_of(below, self.words)
        self._null ^= bitmap_of(null, self.words)
        self._place_checkpoints()

    def add(self, slot: int, values: ValueSet) -> None:
        """Add the predicate of one slot."""
        self._forget_derived()
        if slot in self:
            raise ValueError(f"slot {slot} has a predicate here already")
        word, mask = bit(slot)
        self._slots[word] |= mask
        self._set_default_bits(slot, values)
        for key, switch in _switches(slot, values):
            self._insert(key, slot, switch)

    def remove(self, slot: int) -> None:
        """Remove the predicate of a slot; its bits become the default again."""
        self._forget_derived()
        word, mask = bit(slot)
        self._slots[word] &= ~mask
        is_own = (self._switches == slot) | (self._switches == ~slot)
        for at in np.flatnonzero(is_own)[::-1]:
            region = int(np.searchsorted(self._ends, at, side="right"))
            self._switches = np.delete(self._switches, at)
            self._ends[region:] -= 1
        for bitmaps in (self._maps, self._null[None]):
            if self.default:
                bitmaps[:, word] |= mask
            else:
                bitmaps[:, word] &= ~mask
        if len(self._keys) > 64 and len(self._switches) < len(self._keys) // 2:
            self._drop_unused_keys()

    def widen(self, words: int) -> None:
        """Make room for more slots."""
        self._forget_derived()
        self.words = words
        self._slots = widen(self._slots, words)
        self._maps = widen(self._maps, words, self.default)
        self._null = widen(self._null, words, self.default)

    @property
    def span(self) -> slice:
        """The words from the first to the last that have a predicate here."""
        if self._span is None:
            used = np.flatnonzero(self._slots)
            self._span = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)
        return self._span

    def accepting(self, values: pa.Array) -> Bitmaps:
        """Return for each value the bitmap of slots that accept it."""
        filled = ALL if self.default else np.uint64(0)
        maps = np.full((len(values), self.words), filled, dtype=np.uint64)
        maps[:, self.span] = self.accepting_in_span(values)
        return maps

    def accepting_in_span(self, values: pa.Array) -> Bitmaps:
        """Return the words of `accepting` in the span; all others have the default."""
        span = self.span
        if self._spanned is None:
            self._spanned = np.ascontiguousarray(self._maps[:, span])
            if (len(self._keys) + 2) * self._spanned.shape[1] * 8 <= TABLE_BYTES_MAX:
                # Few enough regions to have the bitmap of each; NULL, region -1, comes last.
                regions = np.append(np.arange(len(self._keys) + 1), -1)
                self._table = self._bitmaps(regions, self._spanned, span.start)
        regions = self.regions(values)
        if self._table is not None:
            return np.take(self._table, regions, axis=0)
        distinct, which = np.unique(regions, return_inverse=True)
        if 2 * len(distinct) > len(regions):
            return self._bitmaps(regions, self._spanned, span.start)
        return self._bitmaps(distinct, self._spanned, span.start)[which]

    def regions(self, values: pa.Array) -> IntArray:
        """Return the region of each value: the number of bounds it has reached; -1 for NULL."""
        if self._find is None:
            self._find = self.domain.finder(self._keys)
        return self._find(values)

    def tables(self) -> RegionTables:
        """Return what makes tables of bitmaps for some slots; valid until a change."""
        return RegionTables(self._switches, self._ends, self._maps[0], self._null, self._slots)

    def _bitmaps(self, regions: IntArray, checkpoints: Bitmaps, first_word: int) -> Bitmaps:
        """Return the bitmaps of regions: that of the nearest checkpoint, with bits switched.

        Parameters
        ----------
        regions
            The regions; -1 for NULL.
        checkpoints
            The bitmaps of the checkpoints from a word on, with all words that have predicates.
        first_word
            That word.

        """
        words = checkpoints.shape[1]
        known = np.maximum(regions, 0)
        reached = self._ends[known]
        at_checkpoints = self._ends[self._regions]
        checkpoint = np.searchsorted(self._regions, known, side="right") - 1
        following = np.minimum(checkpoint + 1, len(self._regions) - 1)
        goes_back = following > checkpoint
        goes_back &= at_checkpoints[following] - reached < reached - at_checkpoints[checkpoint]
        checkpoint = np.where(goes_back, following, checkpoint)
        maps: Bitmaps = checkpoints[checkpoint]
        begin = np.minimum(reached, at_checkpoints[checkpoint])
        counts = np.abs(reached - at_checkpoints[checkpoint])
        total = int(counts.sum())
        if total:
            first = begin - np.cumsum(counts) + counts
            switches = self._switches[np.arange(total) + np.repeat(first, counts)]
            at, additions = _additions(switches ^ np.repeat(-goes_back.astype(np.int32), counts))
            at = at + np.repeat(np.arange(len(regions)) * words - first_word, counts)
            np.add.at(maps.reshape(-1), at, additions)
        maps[regions < 0] = self._null[first_word : first_word + words]
        return maps

    def _forget_derived(self) -> None:
        self._find = self._spanned = self._table = self._span = None

    def _insert(self, key: float | bytes, slot: int, switch: int) -> None:
        at, is_there = find_key(self._keys, key)
        if not is_there:
            self._keys = insert_key(self._keys, at, key)
            self._ends = np.insert(self._ends, at + 1, self._ends[at])
            self._regions[self._regions > at] += 1
        region = at + 1  # the first in which the bound is reached
        self._switches = np.insert(self._switches, self._ends[region], switch)
        self._ends[region:] += 1
        word, mask = bit(slot)
        later = int(np.searchsorted(self._regions, region))
        self._maps[later:, word] ^= mask
        if self._switches_of(later - 1) > 2 * self._interval:
            self._split(later - 1)

    @property
    def _interval(self) -> int:
        return int(self.words / WORDS_PER_SWITCH)

    def _switches_of(self, checkpoint: int) -> int:
        """Return the number of switches from a checkpoint to the last region before the next."""
        begin = self._regions[checkpoint]
        is_last = checkpoint + 1 == len(self._regions)
        last = len(self._keys) if is_last else self._regions[checkpoint + 1] - 1
        return int(self._ends[last] - self._ends[begin])

    def _split(self, checkpoint: int) -> None:
        """Put a checkpoint in the middle of the switches that follow one."""
        begin = self._regions[checkpoint]
        middle = self._ends[begin] + self._switches_of(checkpoint) // 2
        region = int(np.searchsorted(self._ends, middle, side="right"))
        region = max(int(begin) + 1, min(region, len(self._keys)))
        bitmap = self._bitmaps(np.array([region]), self._maps, 0)
        self._regions = np.insert(self._regions, checkpoint + 1, region)
        self._maps = np.insert(self._maps, checkpoint + 1, bitmap[0], axis=0)

    def _set_default_bits(self, slot: int, values: ValueSet) -> None:
        """Set the bits of a slot as if it had no bounds, everywhere."""
        word, mask = bit(slot)
        if values.below != self.default:
            self._maps[:, word] ^= mask
        if values.null != self.default:
            self._null[word] ^= mask

    def _place_checkpoints(self) -> None:
        """Choose new checkpoints and compute their bitmaps; the first is kept."""
        interval, chosen, since = max(1, self._interval), [0], 0
        for region in range(1, len(self._keys) + 1):
            if self._ends[region] - since > interval or self._interval == 0:
                chosen.append(region)
                since = int(self._ends[region])
        self._regions = np.array(chosen, dtype=np.int32)
        maps = np.zeros((len(chosen), self.words), dtype=np.uint64)
        maps[0] = self._maps[0]
        region_of_switch = np.repeat(np.arange(1, len(self._ends)), np.diff(self._ends))
        block = np.searchsorted(self._regions, region_of_switch)
        counted = block < len(chosen)  # switches behind the last checkpoint change none
        words, additions = _additions(self._switches[counted])
        np.add.at(maps.reshape(-1), block[counted] * self.words + words, additions)
        self._maps = np.add.accumulate(maps, axis=0)

    def _drop_unused_keys(self) -> None:
        """Remove bounds that no slot has any more."""
        used = np.diff(self._ends) > 0
        if isinstance(self._keys, list):
            self._keys = [key for key, keep in zip(self._keys, used, strict=True) if keep]
        else:
            self._keys = self._keys[used]
        self._ends = self._ends[np.append(True, used)]
        self._place_checkpoints()


def _switches(slot: int, values: ValueSet) -> Iterator[tuple[Key, int]]:
    """Yield each bound with the slot, complemented where the values from it on do not belong."""
    return zip(values.bounds, itertools.cycle((~slot, slot) if values.below else (slot, ~slot)))


def _additions(switches: NDArray[np.int32]) -> tuple[NDArray[np.int32], Bitmap]:
    """Return the words of switches, and what to add to these to set the bits, or to clear them."""
    clears = switches >> 31  # -1 for those that do
    return (switches ^ clears) >> 6, _ADDITIONS[switches & 63 | clears & 64]
