"""Packed bitmaps: one bit a query, 64 to a word, one row of words for each row of a batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray

WORD_BITS = 64
GLANCE_WORDS = 8
WAITING_ROWS_MAX = 32  # of one weight in a `ColumnCounter`
FEW_SLOTS = 8  # up to so many, setting bit by bit is faster
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE = np.uint64(1)


def words_for(slots: int) -> int:
    """Return the number of words that hold this many bits; at least one.

    Examples
    --------
    >>> words_for(0), words_for(64), words_for(65)
    (1, 1, 2)

    """
    return max(1, -(-slots // WORD_BITS))


def bit(slot: int) -> tuple[int, np.uint64]:
    """Return the word a slot is in, and the mask of its bit there."""
    return slot // WORD_BITS, np.uint64(1) << np.uint64(slot % WORD_BITS)


def bitmap_of(slots: Iterable[int], words: int) -> Bitmap:
    """Return a bitmap with the given bits set.

    Examples
    --------
    >>> bitmap_of([3, 64], words=2)
    array([8, 1], dtype=uint64)

    """
    bitmap = np.zeros(words, dtype=np.uint64)
    slots = list(slots)
    if len(slots) > FEW_SLOTS:
        at = np.array(slots, dtype=np.uint64)
        np.bitwise_or.at(bitmap, (at >> np.uint64(6)).astype(np.int64), ONE << (at & np.uint64(63)))
        return bitmap
    for slot in slots:
        word, mask = bit(slot)
        bitmap[word] |= mask
    return bitmap


def widen(bitmaps: Bitmaps, words: int, filled: bool = False) -> Bitmaps:
    """Return the bitmaps with more words; the new bits are clear, or set if `filled`."""
    shape = (*bitmaps.shape[:-1], words - bitmaps.shape[-1])
    added = np.full(shape, ALL if filled else np.uint64(0), dtype=np.uint64)
    return np.concatenate([bitmaps, added], axis=-1)


def set_bits(bitmaps: Bitmaps) -> tuple[IntArray, IntArray]:
    """Return row and slot of every set bit, ascending.

    Only bytes that have a bit set are unpacked: rows that match few of many queries cost little.

    Examples
    --------
    >>> rows, slots = set_bits(np.array([[0b1010], [0], [1]], dtype=np.uint64))
    >>> rows.tolist(), slots.tolist()
    ([0, 0, 2], [1, 3, 0])

    """
    if bitmaps.shape[1] == 1:
        words = bitmaps[:, 0]
        if (np.bitwise_count(words) == 1).all():  # the bits below the only one are its slot
            return np.arange(len(words)), np.bitwise_count(words - np.uint64(1)).astype(np.int64)
    octets = np.ascontiguousarray(bitmaps).view(np.uint8).reshape(-1)
    per_row = bitmaps.shape[1] * 8
    at = np.flatnonzero(octets)
    which, offset = np.nonzero(np.unpackbits(octets[at][:, None], axis=1, bitorder="little"))
    at = at[which]
    return at // per_row, (at % per_row) * 8 + offset


def overlap(bitmaps: Bitmaps, mask: Bitmap) -> BoolArray:
    """Return for each row whether it shares a bit with the mask.

    Most rows that share any show it in their first words: only the others are read to the end.

    Examples
    --------
    >>> overlap(np.array([[0b10], [0b01]], dtype=np.uint64), np.array([0b10], dtype=np.uint64))
    array([ True, False])

    """
    used = np.flatnonzero(mask)
    if not len(used):
        return np.zeros(len(bitmaps), dtype=bool)
    begin, end = int(used[0]), int(used[-1]) + 1
    if end == begin + 1:
        is_shared: BoolArray = (bitmaps[:, begin] & mask[begin]) != 0
        return is_shared
    middle = min(begin + GLANCE_WORDS, end)
    shares = np.asarray((bitmaps[:, begin:middle] & mask[begin:middle]).any(axis=1))
    if middle < end and not shares.all():
        rest = np.flatnonzero(~shares)
        shares[rest] = (bitmaps[rest, middle:end] & mask[middle:end]).any(axis=1)
    return shares


class ColumnCounter:
    """Counts for each slot the rows in which its bit is set.

    Rows are added up as numbers in binary, one bit of all sums in a bitmap: three rows of the same
    weight become their sum and their carry with five operations on whole words. A few rows of a
    weight wait for others, as each operation has a fixed cost. Only when the counts are asked for
    is anything unpacked, and two rows of each weight at most if they are wide.

    Examples
    --------
    >>> counter = ColumnCounter(words=1)
    >>> counter.add(np.array([[0b11], [0b01], [0b01]], dtype=np.uint64))
    >>> counter.add(np.array([[0b01]], dtype=np.uint64))
    >>> counter.counts()[:3]
    array([4, 1, 0])

    """

    def __init__(self, words: int) -> None:
        self.words = words
        self._levels: list[Bitmaps] = []  # the rows of weight 1, 2, 4, ...

    def add(self, bitmaps: Bitmaps) -> None:
        """Count rows; the array given is used as scratch space and overwritten."""
        self._fold(bitmaps, WAITING_ROWS_MAX)

    def _fold(self, level: Bitmaps, rows_max: int) -> None:
        """Add up rows of weight 1, and all weights that keep more rows than `rows_max` then."""
        for weight in itertools.count():
            if weight == len(self._levels):
                if not len(level):
                    return
                self._levels.append(np.zeros((0, self.words), dtype=np.uint64))
            level = self._fold_level(weight, level, rows_max)

    def _fold_level(self, weight: int, level: Bitmaps, rows_max: int) -> Bitmaps:
        """Add rows to those of a weight; return the carries, which have twice the weight."""
        left = [self._levels[weight]]
        carries: list[Bitmaps] = [level[:0]]
        if len(level) + len(left[0]) > rows_max:
            while len(level) + sum(map(len, left)) > 2:
                if len(level) < 3:
                    level, left = np.concatenate([level, *left]), []
                third = len(level) // 3
                a, b, c = level[:third], level[third : 2 * third], level[2 * third : 3 * third]
                left.append(level[3 * third :])
                level = a ^ b
                # In place, as memory is what this waits for: a becomes the carry.
                np.bitwise_and(a, b, out=a)
                np.bitwise_and(level, c, out=b)
                np.bitwise_or(a, b, out=a)
                np.bitwise_xor(level, c, out=level)
                carries.append(a)
        elif not len(level):
            return level
        self._levels[weight] = np.concatenate([level, *left])
        return np.concatenate(carries) if len(carries) > 2 else carries[-1]

    def counts(self) -> IntArray:
        """Return the counts so far."""
        rows_max = max(
            2, WAITING_ROWS_MAX // self.words
        )  # few words are unpacked faster than added
        self._fold(np.zeros((0, self.words), dtype=np.uint64), rows_max)
        counts = np.zeros(self.words * WORD_BITS, dtype=np.int64)
        for weight, level in enumerate(self._levels):
            octets = np.ascontiguousarray(level).view(np.uint8)
            bits = np.unpackbits(octets, axis=1, bitorder="little")
            counts += bits.sum(axis=0, dtype=np.int64) << weight
        return counts

    def widen(self, words: int) -> None:
        """Make room for more slots."""
        self.words = words
        self._levels = [widen(level, words) for level in self._levels]
