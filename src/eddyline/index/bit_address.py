"""The bit-address index of AMRI: rows in the order of bucket ids that are made of column bits.

A bucket id has some bits of every indexed column, as a configuration says. A search by all columns
finds one bucket; a search by some of them walks the buckets that agree in the bits it knows: the
unknown bits below the lowest known one make a bucket range longer, those above it more ranges.
Neither keys nor links are stored: the index is a permutation of rows, and offsets of buckets.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.key_map import KeyMap
from eddyline.index.sorted_hash import radix_argsort

#: Most bits of a bucket id.
BITS_MAX = 32
#: Most bits of a bucket id below those that have offsets.
LOW_BITS_MAX = 16
#: Ranges that are looked up at once.
RANGES_MAX = 1 << 18
#: What the visit to one more range costs, in comparisons of rows.
VISIT_COMPARISONS = 2.0


@dataclass(frozen=True)
class Walk:
    """How a search by some columns walks bucket ids.

    Parameters
    ----------
    used
        The columns whose bits it uses, with the place of their lowest bit.
    length
        Bucket ids in each range.
    wild
        What to add to the known bits to get the first bucket id of each range.

    """

    used: tuple[tuple[int, int], ...]
    length: int
    wild: IntArray


class BitAddress(Index):
    """A bit-address index.

    Parameters
    ----------
    columns
        The join columns.
    key_map
        Bits of a bucket id, at most `BITS_MAX` in all.

    Examples
    --------
    The package of the paper's example is in bucket 250.

    >>> cells = {5: 0b00111, 2: 0b11, 3: 0b010}
    >>> codes = [np.array([cell << 64 - bits], np.uint64) for bits, cell in cells.items()]
    >>> from eddyline.index.bit_map import BitMap
    >>> key_map = KeyMap(Configuration((5, 2, 3)), (BitMap(5), BitMap(2), BitMap(3)))
    >>> key_map.addresses(codes).tolist()
    [250]

    Of 10,000 packages, a search by priority and location compares those of four buckets.

    >>> places = np.random.default_rng(0).integers(0, 1 << 64, (3, 10_000), dtype=np.uint64)
    >>> index = BitAddress(Columns([*places], [None] * 3), key_map)
    >>> walk = index.walk((0, 2))
    >>> (index.base(walk, (0, 2), [codes[0], codes[2]]) + walk.wild).tolist()
    [226, 234, 242, 250]
    >>> len(index.ranges((0, 2), [codes[0], codes[2]]).expand()[0])
    36

    """

    name: ClassVar[str] = "bit address"

    def __init__(self, columns: Columns, key_map: KeyMap) -> None:
        configuration = key_map.configuration
        if configuration.total > BITS_MAX:
            raise ValueError(
                f"bucket ids have at most {BITS_MAX} bits; got {configuration.total} "
                f"({configuration.bits})"
            )
        self._columns = columns
        self.key_map = key_map
        rows = len(columns)
        high_bits = min(configuration.total, max(rows, 1).bit_length() - 1)
        if configuration.total > high_bits:  # leaves room for the low bits in 8 bytes a row
            high_bits = max(high_bits - 1, configuration.total - LOW_BITS_MAX, 0)
        self._low_bits = configuration.total - high_bits
        addresses = key_map.addresses(columns.codes)
        order = radix_argsort(addresses.view(np.uint64), configuration.total)
        self._order = order
        high = addresses >> self._low_bits
        self._offsets = np.zeros((1 << high_bits) + 1, dtype=np.int32)
        np.cumsum(np.bincount(high, minlength=1 << high_bits), out=self._offsets[1:])
        self._low: NDArray[np.uint16] | None = None
        if self._low_bits:
            self._low = (addresses[order] & ((1 << self._low_bits) - 1)).astype(np.uint16)
        self._walks: dict[Pattern, Walk] = {}

    @property
    def bytes(self) -> int:
        """Memory that the index takes beyond the rows, in bytes."""
        low = 0 if self._low is None else self._low.nbytes
        return int(self._order.nbytes + self._offsets.nbytes + low)

    @property
    def configuration(self) -> Configuration:
        """Bits of each column."""
        return self.key_map.configuration

    def walk(self, pattern: Pattern) -> Walk:
        """Return how a search by some columns walks bucket ids.

        Known bits below many unknown ones are left out where comparing more rows costs less than
        visiting more ranges.
        """
        if pattern not in self._walks:
            rows = max(len(self._columns), 1)
            walks = _walks(self.configuration, pattern, rows)
            self._walks[pattern] = min(walks, key=lambda walk: self._cost(walk, rows))
        return self._walks[pattern]

    def _cost(self, walk: Walk, rows: int) -> float:
        """Return what a walk costs, in comparisons of rows."""
        share = walk.length * len(walk.wild) / (1 << self.configuration.total)
        return len(walk.wild) * VISIT_COMPARISONS + rows * share

    def base(self, walk: Walk, pattern: Pattern, codes: Sequence[Codes]) -> IntArray:
        """Return the known bits of bucket ids that probes search for."""
        base = np.zeros(len(codes[0]), dtype=np.int64)
        for column, shift in walk.used:
            base |= self.key_map.maps[column].cells(codes[pattern.index(column)]) << shift
        return base

    def ranges_per_probe(self, pattern: Pattern) -> int:
        """Return the number of ranges that a search by some columns visits at most."""
        return len(self.walk(pattern).wild)

    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return the ranges of buckets that a search walks, without the empty ones."""
        walk = self.walk(pattern)
        return self._walk_from(walk, self.base(walk, pattern, codes))

    def _walk_from(self, walk: Walk, base: IntArray) -> Ranges:
        """Return the ranges of a walk, given the known bits of bucket ids."""
        found = [self._look_up(walk, *part) for part in _parts(base, len(walk.wild))]
        if len(found) == 1:
            return found[0]
        probes, starts, counts = (
            np.concatenate(arrays)
            for arrays in zip(*[(r.probes, r.starts, r.counts) for r in found], strict=True)
        )
        return Ranges(probes, starts, counts)

    def _look_up(self, walk: Walk, first: int, base: IntArray) -> Ranges:
        """Return the ranges of some probes, which begin with a number."""
        lowest = (base[:, None] + walk.wild).ravel() if len(walk.wild) > 1 else base + walk.wild[0]
        starts = self._offsets[lowest >> self._low_bits].astype(np.int64)
        ends = self._offsets[(lowest + (walk.length - 1) >> self._low_bits) + 1].astype(np.int64)
        if self._low is not None and walk.length < 1 << self._low_bits:
            mask = (1 << self._low_bits) - 1
            starts = _bisect(self._low, starts, ends, lowest & mask)
            ends = _bisect(self._low, starts, ends, (lowest & mask) + walk.length)
        counts = ends - starts
        taken = np.flatnonzero(counts)
        probes = taken // len(walk.wild) if len(walk.wild) > 1 else taken
        return Ranges(probes + first, starts[taken], counts[taken])

    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        rows = self._order[positions].astype(np.int64)
        return rows, self._columns.equal(pattern, rows, codes)


def search_together(
    indexes: Sequence[Index], pattern: Pattern, codes: Sequence[Codes]
) -> list[Ranges]:
    """Return the ranges of probes in several indexes.

    Bucket ids are computed once for all bit-address indexes with the same key map.

    Parameters
    ----------
    indexes
        The indexes, each over the rows of one partition.
    pattern, codes
        As for `Index.ranges`.

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 4.2.

    """
    known: dict[object, IntArray] = {}
    found = []
    for index in indexes:
        if not isinstance(index, BitAddress):
            found.append(index.ranges(pattern, codes))
            continue
        walk = index.walk(pattern)
        identity = (index.key_map, walk.used)
        if identity not in known:
            known[identity] = index.base(walk, pattern, codes)
        found.append(index._walk_from(walk, known[identity]))
    return found


def _walks(configuration: Configuration, pattern: Pattern, rows: int) -> Iterator[Walk]:
    """Yield the walks that use the known bits down to some column; the first uses none."""
    shift = configuration.total
    used: list[tuple[int, int]] = []
    wild = np.zeros(1, dtype=np.int64)
    yield Walk((), 1 << shift, wild)
    for column in configuration.order:
        bits = configuration.bits[column]
        shift -= bits
        if not bits:
            continue
        if column in pattern:
            used.append((column, shift))
            yield Walk(tuple(used), 1 << shift, wild)
        elif len(wild) << bits > 2 * rows:
            return  # a search would visit more ranges than there are rows
        else:
            wild = (wild[:, None] + (np.arange(1 << bits) << shift)).ravel()


def _parts(base: IntArray, ranges: int) -> Iterator[tuple[int, IntArray]]:
    """Yield probes in parts with a bounded number of ranges."""
    size = max(1, RANGES_MAX // ranges)
    for first in range(0, max(len(base), 1), size):
        yield first, base[first : first + size]


def _bisect(
    values: NDArray[np.uint16], starts: IntArray, ends: IntArray, wanted: IntArray
) -> IntArray:
    """Return in each stretch of ascending values the first position not below a wanted one."""
    low, high = starts.copy(), ends.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) // 2
        is_below = values[middle] < wanted[open_]
        low[open_[is_below]] = middle[is_below] + 1
        high[open_[~is_below]] = middle[~is_below]
        open_ = open_[low[open_] < high[open_]]
    return low
