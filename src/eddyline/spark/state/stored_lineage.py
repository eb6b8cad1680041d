"""The lineage of stored rows: bits that keep the meaning they had when the rows were written.

Bits are slots, which the driver hands out and uses again. A section says which query each of its
bits stands for. As long as no slot of the current plan stood for another query then, the stored
words are used as they are; otherwise bits are moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps
from eddyline.operators.bitmaps import bit, bitmap_of, widen

#: By slot, the number of a query and how often it was resumed.
SlotKeys = Mapping[int, tuple[int, int]]


def to_column(lineage: Bitmaps) -> pa.Array:
    """Return bitmaps as an Arrow column, each different one once.

    Examples
    --------
    >>> to_column(np.array([[5], [5], [7]], dtype=np.uint64)).indices.to_pylist()
    [0, 0, 1]

    """
    width = lineage.shape[1] * 8
    buffer = pa.py_buffer(np.ascontiguousarray(lineage))
    plain = pa.Array.from_buffers(pa.binary(width), len(lineage), [None, buffer])
    encoded = plain.dictionary_encode()
    for index_type, different_max in ((pa.uint8(), 1 << 8), (pa.uint16(), 1 << 16)):
        if len(encoded.dictionary) <= different_max:
            indices = encoded.indices.cast(index_type)
            return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
    return plain


def from_column(column: pa.Array) -> Bitmaps:
    """Return the bitmaps that `to_column` made a column of."""
    if isinstance(column, pa.DictionaryArray):
        bitmaps: Bitmaps = from_column(column.dictionary)[column.indices.to_numpy()]
        return bitmaps
    words = column.type.byte_width // 8
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint64)
    begin = column.offset * words
    return flat[begin : begin + len(column) * words].reshape(len(column), words)


def translate(stored: Bitmaps, then: SlotKeys, now: SlotKeys, words: int) -> Bitmaps:
    """Return stored bitmaps in the meaning that bits have now.

    Parameters
    ----------
    stored
        As they were written.
    then, now
        What each slot stood for when they were written, and stands for now.
    words
        Number of words that bitmaps have now.

    Examples
    --------
    >>> stored = np.array([[0b01], [0b11]], dtype=np.uint64)
    >>> translate(stored, {0: (7, 0), 1: (8, 0)}, {0: (8, 0), 1: (9, 0)}, 1).ravel().tolist()
    [0, 1]
    >>> translate(stored, {0: (7, 0), 1: (8, 0)}, {0: (7, 0)}, 1).ravel().tolist()
    [1, 1]

    """
    if all(then.get(slot, key) == key for slot, key in now.items()):
        if stored.shape[1] != words:
            stored = widen(stored, words) if stored.shape[1] < words else stored[:, :words]
        if then.keys() <= now.keys():
            return stored
        return stored & bitmap_of(now, words)  # a slot may soon stand for another query
    old_slots = {key: slot for slot, key in then.items()}
    moved = np.zeros((len(stored), words), dtype=np.uint64)
    for slot, key in now.items():
        if key in old_slots:
            old_word, old_mask = bit(old_slots[key])
            word, mask = bit(slot)
            moved[:, word] |= np.where(stored[:, old_word] & old_mask, mask, np.uint64(0))
    return moved
