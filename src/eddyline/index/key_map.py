"""The index key map of a bit-address index: from the values of a row to its bucket id.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import Codes, IntArray
from eddyline.index.bit_map import BitMap, balanced
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration


@dataclass(frozen=True)
class KeyMap:
    """A configuration, and how each column's values become its bits.

    Parameters
    ----------
    configuration
        Bits of each column.
    maps
        For each column, from codes to cells.

    Examples
    --------
    >>> key_map = KeyMap(Configuration((1, 2)), (BitMap(1), BitMap(2)))
    >>> codes = [np.array([1 << 63], dtype=np.uint64), np.array([3 << 62], dtype=np.uint64)]
    >>> [bin(address) for address in key_map.addresses(codes)]
    ['0b111']

    """

    configuration: Configuration
    maps: tuple[BitMap, ...]

    @classmethod
    def of(cls, configuration: Configuration, columns: Columns) -> KeyMap:
        """Return the map of a configuration that fills buckets of some rows evenly."""
        pairs = zip(columns.codes, configuration.bits, strict=True)
        return cls(configuration, tuple(balanced(codes, bits) for codes, bits in pairs))

    def addresses(self, codes: Sequence[Codes]) -> IntArray:
        """Return the bucket id of each row, from the codes of all its columns."""
        address = np.zeros(len(codes[0]), dtype=np.int64)
        for column in self.configuration.order:
            bit_map = self.maps[column]
            if bit_map.bits:
                address <<= bit_map.bits
                address |= bit_map.cells(codes[column])
        return address
