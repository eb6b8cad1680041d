"""A hash index in two arrays: rows in the order of their hashes, and where each address begins.

One access pattern is served, the one it was built for. Building sorts addresses of at most as many
bits as there are rows, 16 bits at a time, which NumPy does by radix sort.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.index import Ranges

ADDRESS_BITS_MAX = 24
_RADIX_BITS = 16
_MULTIPLIER = np.uint64(0x9E37_79B9_7F4A_7C15)
_ROTATION = np.uint64(29)


class SortedHash:
    """A sorted hash over one access pattern.

    Parameters
    ----------
    codes
        For each column of the pattern, the code of every row.
    is_valid
        Which rows have no NULL in these columns; the others are left out. None for all.

    Examples
    --------
    >>> index = SortedHash([np.array([7, 9, 7], dtype=np.uint64)])
    >>> probe = [np.array([7, 8], dtype=np.uint64)]
    >>> probes, positions = index.ranges(probe).expand()
    >>> rows, is_equal = index.confirm(positions, [codes[probes] for codes in probe])
    >>> probes[is_equal].tolist(), rows[is_equal].tolist()
    ([0, 0], [0, 2])

    """

    def __init__(self, codes: Sequence[Codes], is_valid: BoolArray | None = None) -> None:
        hashes = combine(codes)
        rows = None if is_valid is None else np.flatnonzero(is_valid)
        if rows is not None:
            hashes = hashes[rows]
        bits = min(max(len(hashes) - 1, 1).bit_length(), ADDRESS_BITS_MAX)
        self._shift = np.uint64(64 - bits)
        addresses = hashes >> self._shift
        order = radix_argsort(addresses, bits)
        self._order = order if rows is None else rows[order].astype(order.dtype)
        self._hashes = hashes[order]
        counts = np.bincount(addresses.view(np.int64), minlength=1 << bits)
        self._offsets = np.zeros(len(counts) + 1, dtype=np.int32)
        np.cumsum(counts, out=self._offsets[1:])
        #: The codes are the hashes: equal hashes are equal codes.
        self._codes = [column[self._order] for column in codes] if len(codes) > 1 else []

    @property
    def bytes(self) -> int:
        """Memory that the index takes beyond the rows, in bytes."""
        codes = sum(column.nbytes for column in self._codes)
        return self._order.nbytes + self._hashes.nbytes + self._offsets.nbytes + codes

    def ranges(self, codes: Sequence[Codes]) -> Ranges:
        """Return one range for each probe whose address is taken."""
        addresses = (combine(codes) >> self._shift).view(np.int64)
        starts = self._offsets[addresses].astype(np.int64)
        counts = self._offsets[addresses + 1] - starts
        probes = np.flatnonzero(counts)
        return Ranges(probes, starts[probes], counts[probes])

    def confirm(self, positions: IntArray, codes: Sequence[Codes]) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        is_equal = self._hashes[positions] == combine(codes)
        for stored, given in zip(self._codes, codes, strict=False):
            is_equal &= stored[positions] == given
        return self.rows(positions), is_equal

    def rows(self, positions: IntArray) -> IntArray:
        """Return the rows at index positions."""
        return self._order[positions].astype(np.int64)


def combine(codes: Sequence[Codes]) -> Codes:
    """Return one hash for the codes of several columns; a single column is its own hash.

    Examples
    --------
    >>> one, other = np.array([1, 2], dtype=np.uint64), np.array([2, 1], dtype=np.uint64)
    >>> combine([one]).tolist()
    [1, 2]
    >>> len(set(combine([one, other]).tolist()))
    2

    """
    combined = codes[0]
    for column in codes[1:]:
        turned = (combined >> _ROTATION) | (combined << (np.uint64(64) - _ROTATION))
        combined = (turned ^ column) * _MULTIPLIER
    return combined


def radix_argsort(addresses: Codes, bits: int) -> IntArray:
    """Return the stable order of addresses of so many bits.

    Examples
    --------
    >>> radix_argsort(np.array([1 << 17, 3, 1 << 17, 0], dtype=np.uint64), 18).tolist()
    [3, 1, 0, 2]

    """
    dtype = np.int32 if len(addresses) < 1 << 31 else np.int64
    order: IntArray = np.argsort(addresses.astype(np.uint16), kind="stable").astype(dtype)
    if bits > _RADIX_BITS:
        high = (addresses >> np.uint64(_RADIX_BITS)).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order
