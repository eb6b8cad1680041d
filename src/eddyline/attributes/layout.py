"""How an attribute's domain is cut into partitions: by ranges, or by values."""

from __future__ import annotations

import dataclasses
import functools
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import FloatArray, IntArray
from eddyline.attributes.kinds import is_discrete, to_numbers

CutBy = Literal["frequency", "width"]

TABLE_VALUES_MAX = 4_096  # integers from the least to the greatest that are looked up in a table
COMPARED_CUTS_MAX = 64

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Layout:
    """The partitions of an attribute's domain.

    Parameters
    ----------
    partitions
        Number of ranges at most, and of hash buckets.
    values_max
        Number of values at most that have a partition of their own.
    is_discrete
        Whether partitions are values rather than ranges.
    cuts
        Where a range ends and the next begins, ascending; a cut belongs to the range above it.
    values
        Values with a partition of their own; all others are hashed.

    Examples
    --------
    >>> ranges = Layout(4, 0, False, cuts=(2.0, 7.0))
    >>> ranges.assign(pa.array([0.0, 10.0, 4.0, None])).tolist()
    [0, 2, 1, 4]
    >>> by_value = Layout(4, 2, True, values=("a", "b"))
    >>> by_value.assign(pa.array(["b", "a", None])).tolist()
    [1, 0, 6]
    >>> Layout.from_dict(by_value.to_dict()) == by_value
    True

    """

    partitions: int
    values_max: int
    is_discrete: bool
    cuts: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """Number of partitions, with that of NULL, which is the last."""
        return self.values_max + self.partitions + 1

    def assign(self, values: pa.Array) -> IntArray:
        """Return the partition of each value."""
        return self._by_value(values) if self.is_discrete else self._by_range(values)

    def hashed_share(self, values: pa.Array) -> float:
        """Return the share of values without a partition of their own."""
        if not self.is_discrete or not self.values_max or len(values) == 0:
            return 0.0
        assigned = self.assign(values)
        hashed = (assigned >= self.values_max) & (assigned < self.size - 1)
        return float(np.count_nonzero(hashed) / len(values))

    def moved_from(self, old: Layout) -> IntArray:
        """Return for each partition the one of an older layout that its values were in.

        Partitions that the older layout has nothing like get that of NULL.
        """
        origin = np.full(self.size, old.size - 1, dtype=np.int64)
        if self.is_discrete != old.is_discrete:
            return origin
        if self.is_discrete:
            for code, value in enumerate(self.values):
                origin[code] = old.partition_of(value)
            origin[self.values_max : -1] = np.arange(self.partitions) + old.values_max
        elif old.cuts:
            cuts = np.array(self.cuts)
            inside = np.concatenate([cuts[:1] - 1.0, (cuts[:-1] + cuts[1:]) / 2, cuts[-1:]])
            origin[: len(inside)] = np.searchsorted(old.cuts, inside, side="right")
        return origin

    def widened(self, old: Layout) -> Layout:
        """Return ranges of equal width that cover those of an older layout as well."""
        if self.is_discrete or old.is_discrete or len(self.cuts) < 2 or len(old.cuts) < 2:
            return self
        ends = [(2 * cuts[0] - cuts[1], 2 * cuts[-1] - cuts[-2]) for cuts in (self.cuts, old.cuts)]
        if ends[1][0] <= ends[0][0] and ends[0][1] <= ends[1][1]:
            return old
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        cuts = np.linspace(low, high, self.partitions + 1)[1:-1]
        return dataclasses.replace(self, cuts=tuple(cuts.tolist()))

    def partition_of(self, value: Any) -> int:
        """Return the partition of one value that is not NULL."""
        code = self._codes.get(value)
        if code is None:
            code = self.values_max + _hash(value) % self.partitions
        return code

    @functools.cached_property
    def _codes(self) -> dict[Any, int]:
        return {value: code for code, value in enumerate(self.values)}

    @functools.cached_property
    def _cuts(self) -> FloatArray:
        return np.array(self.cuts)

    @functools.cached_property
    def _table(self) -> tuple[int, IntArray] | None:
        """The least integer value, and the partition of each integer from there on.

        None where the values are no integers, or lie far apart.
        """
        if not self.values or not all(type(value) is int for value in self.values):
            return None
        low, high = min(self.values), max(self.values)
        if high - low >= TABLE_VALUES_MAX or not -(2**62) < low <= high < 2**62:
            return None
        between = range(low, high + 1)
        return low, np.array([self.partition_of(value) for value in between], dtype=np.int64)

    def _by_integer(self, values: pa.Array) -> IntArray | None:
        """Look the partitions of integers up; None if one of them is not in the table."""
        kind = values.type
        fits_64_bits = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
        if self._table is None or values.null_count or not fits_64_bits:
            return None
        low, table = self._table
        places = values.to_numpy().astype(np.int64, copy=False) - low
        if len(places) and (places.min() < 0 or places.max() >= len(table)):
            return None
        partitions: IntArray = table[places]
        return partitions

    def _by_value(self, values: pa.Array) -> IntArray:
        looked_up = self._by_integer(values)
        if looked_up is not None:
            return looked_up
        encoded = values.dictionary_encode()
        each = [self.partition_of(value) for value in encoded.dictionary.to_pylist()]
        by_code = np.array([*each, self.size - 1], dtype=np.int64)  # NULL at index -1
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return np.asarray(by_code[codes])

    def _by_range(self, values: pa.Array) -> IntArray:
        numbers = to_numbers(values)
        if len(self._cuts) <= COMPARED_CUTS_MAX:  # comparing with all is faster than a search
            is_above = np.less_equal.outer(self._cuts, numbers).view(np.uint8)
            ranges = np.add.reduce(is_above, axis=0, dtype=np.uint8).astype(np.int64)
        else:
            ranges = np.searchsorted(self._cuts, numbers, side="right")
        unknown = np.isnan(numbers)
        if unknown.any():
            ranges[unknown] = self.size - 1
        return np.asarray(ranges, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "partitions": self.partitions,
            "values_max": self.values_max,
            "is_discrete": self.is_discrete,
            "cuts": list(self.cuts),
            "values": list(self.values),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Layout:
        """Read what `to_dict` wrote."""
        return cls(
            plain["partitions"],
            plain["values_max"],
            plain["is_discrete"],
            tuple(plain["cuts"]),
            tuple(plain["values"]),
        )


def layout_of(values: pa.Array, partitions: int, values_max: int, cut_by: CutBy) -> Layout:
    """Return the layout that suits a sample of values.

    Parameters
    ----------
    values
        The sample.
    partitions, values_max
        See `Layout`.
    cut_by
        Ranges have about the same number of rows ("frequency") or the same width ("width").

    Examples
    --------
    >>> layout_of(pa.array([1, 1, 2, 90]), 2, 0, "frequency").cuts
    (2.0,)
    >>> layout_of(pa.array([0.0, 1.0, 2.0, 90.0]), 2, 0, "width").cuts
    (45.0,)
    >>> layout_of(pa.array(["b", "a", "b"]), 24, 1, "frequency").values
    ('b',)

    """
    if is_discrete(values):
        return Layout(partitions, values_max, True, values=_frequent(values, values_max))
    numbers = to_numbers(values)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    if len(numbers) == 0:
        return Layout(partitions, values_max, False)
    distinct = np.unique(numbers)
    if cut_by == "width":
        cuts = np.linspace(numbers[0], numbers[-1], partitions + 1)[1:-1]
    elif len(distinct) <= partitions:
        cuts = (distinct[:-1] + distinct[1:]) / 2
    else:
        cuts = numbers[len(numbers) * np.arange(1, partitions) // partitions]
    cuts = np.unique(cuts)
    return Layout(partitions, values_max, False, cuts=tuple(cuts[cuts > numbers[0]].tolist()))


def _frequent(values: pa.Array, values_max: int) -> tuple[Any, ...]:
    """Return the most frequent values, most frequent first."""
    counted = pc.value_counts(values.drop_null())
    counts = counted.field("counts").to_numpy(zero_copy_only=False)
    order = np.argsort(-counts, kind="stable")[:values_max]
    return tuple(counted.field("values").take(pa.array(order)).to_pylist())


def _hash(value: object) -> int:
    if isinstance(value, int):
        mixed = np.array([value]).astype(np.uint64) * _MIX
        return int((mixed >> np.uint64(40))[0])
    return zlib.crc32(str(value).encode())
