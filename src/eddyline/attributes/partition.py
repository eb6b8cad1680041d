"""Partitioning an attribute's domain: by hash if it is discrete, by range if it is continuous."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import IntArray
from eddyline.attributes.kinds import is_discrete, to_numbers

HASHES_REMEMBERED = 2_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


class AttributePartition:
    """Finds for each row the partition of the attribute's domain that its value lies in.

    Strings, booleans and integers of few different values are hashed. Fractions, dates, timestamps
    and integers of many different values are cut into ranges of equal width between the least and
    the greatest value seen so far. NULL and NaN have a partition of their own, the last one.

    Parameters
    ----------
    partitions
        Number of partitions, without the one for NULL.

    Examples
    --------
    >>> by_range = AttributePartition(4)
    >>> by_range.assign(pa.array([0.0, 10.0, 4.0, None])).tolist()
    [0, 3, 1, 4]
    >>> by_hash = AttributePartition(24)
    >>> a, b, again = by_hash.assign(pa.array(["a", "b", "a"])).tolist()
    >>> a == again, a == b
    (True, False)

    """

    def __init__(self, partitions: int = 24) -> None:
        self.partitions = partitions
        self._is_discrete: bool | None = None
        self._low = np.inf
        self._high = -np.inf
        self._hashes: dict[object, int] = {}

    def assign(self, values: pa.Array) -> IntArray:
        """Return the partition of each value; moves the running bounds."""
        if self._is_discrete is None:
            if len(values) == 0:
                return np.zeros(0, dtype=np.int64)
            self._is_discrete = is_discrete(values)
        return self._by_hash(values) if self._is_discrete else self._by_range(values)

    def _by_hash(self, values: pa.Array) -> IntArray:
        if pa.types.is_integer(values.type) and values.null_count == 0:
            mixed = values.to_numpy(zero_copy_only=False).astype(np.uint64) * _MIX
            hashed: IntArray = ((mixed >> np.uint64(40)) % np.uint64(self.partitions)).astype(
                np.int64
            )
            return hashed
        encoded = values.dictionary_encode()
        each = [self._hash(value) for value in encoded.dictionary.to_pylist()]
        by_code = np.array([*each, self.partitions], dtype=np.int64)  # NULL at index -1
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return np.asarray(by_code[codes])

    def _hash(self, value: object) -> int:
        hashed = self._hashes.get(value)
        if hashed is None:
            if isinstance(value, int):  # as the integers above, so that NULLs change nothing
                mixed = np.array([value]).astype(np.uint64) * _MIX
                hashed = int((mixed >> np.uint64(40))[0] % np.uint64(self.partitions))
            else:
                hashed = zlib.crc32(str(value).encode()) % self.partitions
            if len(self._hashes) < HASHES_REMEMBERED:
                self._hashes[value] = hashed
        return hashed

    def _by_range(self, values: pa.Array) -> IntArray:
        numbers = to_numbers(values)
        is_known = ~np.isnan(numbers)
        if is_known.any():
            self._low = min(self._low, float(numbers[is_known].min()))
            self._high = max(self._high, float(numbers[is_known].max()))
        width = (self._high - self._low) / self.partitions
        if not np.isfinite(width) or width <= 0:
            return np.where(is_known, 0, self.partitions)
        cut = np.clip((np.where(is_known, numbers, self._low) - self._low) / width, 0, None)
        inside = np.minimum(cut.astype(np.int64), self.partitions - 1)
        return np.where(is_known, inside, self.partitions)
