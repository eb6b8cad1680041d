"""How values of a column are ordered and compared with constants, exactly as Spark does.

Three kinds: whole numbers (integers, booleans, dates, timestamps, and decimals counted in their
last digit), floating point, and text. In each, every value has a next one, so that a comparison
becomes a `ValueSet`. NaN is larger than all numbers and equal to itself; text is ordered by bytes.
"""

from __future__ import annotations

import abc
import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import IntArray
from eddyline.operators.value_set import NOT_NULL, NOTHING, Key, ValueSet

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
LISTED_MAX = 1 << 16  # from the first to the last bound
Constant = int | float | Decimal | str
Finder = Callable[[pa.Array], IntArray]


class Domain(abc.ABC):
    """An ordered domain of values."""

    def compare(self, comparison: str, constant: Constant) -> ValueSet:
        """Return the values for which the comparison with a constant is true.

        Examples
        --------
        >>> Whole().compare(">", 5)
        ValueSet(bounds=(6,), below=False, null=False)
        >>> Whole().compare("=", Decimal("2.5"))
        ValueSet(bounds=(), below=False, null=False)
        >>> Text().compare("<=", "ab")
        ValueSet(bounds=(b'ab\\x00',), below=True, null=False)

        """
        if comparison == ">=":
            return _from_bound(self.first_at_least(constant))
        if comparison == ">":
            return _from_bound(self.first_above(constant))
        if comparison == "<":
            return ~self.compare(">=", constant)
        if comparison == "<=":
            return ~self.compare(">", constant)
        if comparison == "=":
            first, end = self.first_at_least(constant), self.first_above(constant)
            if first is None or first is True or end is None or end is True:
                return _from_bound(first) & ~_from_bound(end)
            return ValueSet((first, end)) if first != end else NOTHING
        if comparison == "<>":
            return ~self.compare("=", constant)
        raise ValueError(f"{comparison!r} is none of {', '.join(COMPARISONS)}")

    def equal_to_any(self, constants: Iterable[Constant]) -> ValueSet:
        """Return the values that equal one of the constants, in n log n steps for n constants.

        Examples
        --------
        >>> Whole().equal_to_any([7, 3, 4, Decimal("2.5")])
        ValueSet(bounds=(3, 5, 7, 8), below=False, null=False)

        """
        intervals: list[tuple[Any, Any]] = []
        accepted = NOTHING
        for constant in constants:
            first, end = self.first_at_least(constant), self.first_above(constant)
            if first is None or first is True or end is None or end is True:
                accepted |= self.compare("=", constant)
            elif first != end:
                intervals.append((first, end))
        bounds: list[Any] = []
        for first, end in sorted(intervals):
            if bounds and bounds[-1] >= first:
                bounds[-1] = end
            else:
                bounds += (first, end)
        return ValueSet(tuple(bounds)) | accepted

    @abc.abstractmethod
    def first_at_least(self, constant: Any) -> Key | bool | None:
        """Return the smallest value that is at least the constant.

        None stands for no such value, True for every value.
        """

    @abc.abstractmethod
    def first_above(self, constant: Any) -> Key | bool | None:
        """Return the smallest value above the constant; None and True as before."""

    @abc.abstractmethod
    def no_keys(self) -> Any:
        """Return an empty list of bounds, as `finder` takes it."""

    @abc.abstractmethod
    def finder(self, keys: Any) -> Finder:
        """Return a function: values to the number of ascending keys each has reached; NULL: -1."""


class Whole(Domain):
    """Whole numbers of 64 bits; `scale` counts the digits behind the point of a decimal."""

    def __init__(self, scale: int = 0) -> None:
        self.scale = scale

    def first_at_least(self, constant: int | Decimal) -> int | bool | None:
        """Return the constant, rounded up."""
        if isinstance(constant, int):
            return _in_range(constant * 10**self.scale)
        return _in_range(math.ceil(Fraction(constant) * 10**self.scale))

    def first_above(self, constant: int | Decimal) -> int | bool | None:
        """Return the whole number after the constant."""
        if isinstance(constant, int):
            return _in_range(constant * 10**self.scale + 1)
        return _in_range(math.floor(Fraction(constant) * 10**self.scale) + 1)

    def no_keys(self) -> Any:
        """Return an empty array of integers."""
        return np.zeros(0, dtype=np.int64)

    def finder(self, keys: Any) -> Finder:
        """Look values up in a list if the keys lie close together, else search for them."""
        if not len(keys) or keys[0] == INT64_MIN or int(keys[-1]) - int(keys[0]) > LISTED_MAX:
            return lambda values: _null_at_end(
                np.searchsorted(keys, _as_integers(values), side="right"), values
            )
        least, most = int(keys[0]) - 1, int(keys[-1])
        listed = np.searchsorted(keys, np.arange(most - least + 1) + least, side="right")
        return lambda values: _null_at_end(
            listed[np.clip(_as_integers(values), least, most) - least], values
        )


class Floating(Domain):
    """Floating point numbers; NaN comes last, and minus zero is zero."""

    def first_at_least(self, constant: float | Decimal) -> float | bool | None:
        """Return the constant, as a float."""
        return float(constant) + 0.0  # no minus zero

    def first_above(self, constant: float | Decimal) -> float | bool | None:
        """Return the next float after the constant."""
        return math.nextafter(float(constant), math.inf)

    def no_keys(self) -> Any:
        """Return an empty array of floats."""
        return np.zeros(0, dtype=np.float64)

    def finder(self, keys: Any) -> Finder:
        """Search the keys for all values at once."""

        def find(values: pa.Array) -> IntArray:
            filled = pc.fill_null(values, 0.0) if values.null_count else values
            numbers = filled.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
            return _null_at_end(np.searchsorted(keys, numbers, side="right"), values)

        return find


class Text(Domain):
    """Text, ordered by its bytes in UTF-8."""

    def first_at_least(self, constant: str) -> bytes | bool | None:
        """Return the constant, as bytes."""
        return constant.encode() or True

    def first_above(self, constant: str) -> bytes | bool | None:
        """Return the smallest text above the constant."""
        return constant.encode() + b"\x00"

    def no_keys(self) -> Any:
        """Return an empty list."""
        return []

    def finder(self, keys: Any) -> Finder:
        """Search the keys for each different value once."""

        def find(values: pa.Array) -> IntArray:
            encoded = values.dictionary_encode()
            distinct = encoded.dictionary.cast(pa.large_binary()).to_pylist()
            reached = np.fromiter(
                (bisect.bisect_right(keys, value) for value in distinct), np.int64, len(distinct)
            )
            reached = np.append(reached, -1)  # NULL, at index -1
            found: IntArray = reached[pc.fill_null(encoded.indices, -1).to_numpy()]
            return found

        return find


def insert_key(keys: Any, at: int, key: Key) -> Any:
    """Return the keys with one more, at its place."""
    if isinstance(keys, list):
        keys.insert(at, key)
        return keys
    return np.insert(keys, at, key)


def find_key(keys: Any, key: Key) -> tuple[int, bool]:
    """Return the position of a key, or where it would be inserted, and whether it is there."""
    at = (
        bisect.bisect_left(keys, key) if isinstance(keys, list) else int(np.searchsorted(keys, key))
    )
    return at, at < len(keys) and keys[at] == key


def sorted_keys(domain: Domain, keys: Sequence[Key]) -> tuple[Any, IntArray]:
    """Return the different keys, ascending, and the position of each given one among them."""
    empty = domain.no_keys()
    if isinstance(empty, np.ndarray):
        return np.unique(np.array(keys, dtype=empty.dtype), return_inverse=True)
    distinct = sorted(set(keys))
    place = {key: at for at, key in enumerate(distinct)}
    return distinct, np.array([place[key] for key in keys], dtype=np.int64)


def _from_bound(bound: Key | bool | None) -> ValueSet:
    if bound is None:
        return NOTHING
    return NOT_NULL if bound is True else ValueSet((bound,))


def _in_range(number: int) -> int | bool | None:
    if number <= INT64_MIN:
        return True
    return None if number > INT64_MAX else number


def _null_at_end(reached: IntArray, values: pa.Array) -> IntArray:
    if values.null_count:
        reached[pc.is_null(values).to_numpy(zero_copy_only=False)] = -1
    return reached


def _as_integers(values: pa.Array) -> IntArray:
    kind = values.type
    if pa.types.is_decimal(kind):
        # Two words of 64 bits each; the value fits into the lower one.
        words = np.frombuffer(values.buffers()[1], dtype=np.int64)
        return words[2 * values.offset : 2 * (values.offset + len(values)) : 2]
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(values, False if pa.types.is_boolean(kind) else 0)
    numbers: IntArray = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
