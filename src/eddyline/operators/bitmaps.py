"""Packed bitmaps: one bit a query, 64 to a word, one row of words for each row of a batch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bitmap = NDArray[np.uint64]
Bitmaps = NDArray[np.uint64]
IntArray = NDArray[np.int64]

WORD_BITS = 64
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def words_for(slots: int) -> int:
    """Return how many words hold so many bits; at least one.

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
    >>> slots_of(bitmap_of([3, 64], words=2))
    array([ 3, 64])

    """
    bitmap = np.zeros(words, dtype=np.uint64)
    for slot in slots:
        word, mask = bit(slot)
        bitmap[word] |= mask
    return bitmap


def slots_of(bitmap: Bitmap) -> IntArray:
    """Return which bits are set, ascending."""
    return set_bits(bitmap[None, :])[1]


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
    octets = np.ascontiguousarray(bitmaps).view(np.uint8).reshape(-1)
    per_row = bitmaps.shape[1] * 8
    at = np.flatnonzero(octets)
    which, offset = np.nonzero(np.unpackbits(octets[at][:, None], axis=1, bitorder="little"))
    at = at[which]
    return at // per_row, (at % per_row) * 8 + offset


def count_columns(bitmaps: Bitmaps) -> IntArray:
    """Return for each slot in how many rows its bit is set.

    Rows are added up as numbers in binary, one bit of all sums in a bitmap: three rows of the same
    weight become their sum and their carry with five operations on whole words, until no weight
    has more than two rows left.

    Examples
    --------
    >>> count_columns(np.array([[0b11], [0b01], [0b01]], dtype=np.uint64))[:3]
    array([3, 1, 0])

    """
    counts = np.zeros(bitmaps.shape[1] * WORD_BITS, dtype=np.int64)
    weight, level = 1, bitmaps
    while len(level):
        carries: list[Bitmaps] = []
        while len(level) > 2:
            third = len(level) // 3
            a, b, c = level[:third], level[third : 2 * third], level[2 * third : 3 * third]
            either = a ^ b
            carries.append((a & b) | (c & either))
            level = np.concatenate([either ^ c, level[3 * third :]])
        octets = np.ascontiguousarray(level).view(np.uint8)
        counts += weight * np.unpackbits(octets, axis=1, bitorder="little").sum(
            axis=0, dtype=np.int64
        )
        level = np.concatenate(carries) if carries else level[:0]
        weight *= 2
    return counts
