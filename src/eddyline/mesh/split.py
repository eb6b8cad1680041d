"""One test of a decision tree: on which side of it a row goes, in words, and as plain values."""

from __future__ import annotations

import datetime
import decimal
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray

WORDS_VALUES_MAX = 6


@dataclass(frozen=True)
class Split:
    """A test on one attribute: rows for which it holds go left.

    Parameters
    ----------
    attribute
        Name of the column.
    at
        For ordered attributes: values up to this go left.
    values
        For others: these values go left.
    null_left
        Where NULL goes.

    Examples
    --------
    >>> Split("hour", at=7).goes_left(pa.array([3, 7, 9, None])).tolist()
    [True, True, False, False]
    >>> Split("color", values=("red",), null_left=True).goes_left(pa.array(["red", None])).tolist()
    [True, True]

    """

    attribute: str
    at: Any = None
    values: tuple[Any, ...] | None = None
    null_left: bool = False

    def goes_left(self, column: pa.Array) -> BoolArray:
        """Return for each value whether the test holds."""
        if self.values is None:
            answer = pc.less_equal(column, pa.scalar(self.at, type=column.type))
        else:
            answer = pc.is_in(column, value_set=value_set(self.values, column.type))
            if column.null_count:
                answer = pc.if_else(pc.is_valid(column), answer, None)
        if answer.null_count:
            answer = pc.fill_null(answer, self.null_left)
        left: BoolArray = answer.to_numpy(zero_copy_only=False)
        return left

    @property
    def meaning(self) -> tuple[object, ...]:
        """What decides; the order of the values does not."""
        values = None if self.values is None else frozenset(self.values)
        return (self.attribute, self.at, values, self.null_left)

    def words(self, holds: bool) -> str:
        """Return the test, or its negation, as text for people.

        Examples
        --------
        >>> Split("hour", at=7).words(True), Split("hour", at=7).words(False)
        ('hour <= 7', 'hour > 7')
        >>> Split("color", values=("red", "blue")).words(False)
        'color not in {blue, red}'

        """
        null = " or NULL" if holds and self.null_left else ""
        if self.values is None:
            return f"{self.attribute} {'<=' if holds else '>'} {_say(self.at)}{null}"
        if not self.values:
            return f"{self.attribute} is {'' if holds == self.null_left else 'not '}NULL"
        if len(self.values) == 1:
            return f"{self.attribute} {'=' if holds else '!='} {_say(self.values[0])}{null}"
        said = sorted(_say(value) for value in self.values)
        shown = ", ".join(said[:WORDS_VALUES_MAX])
        more = f", ... {len(said)} values" if len(said) > WORDS_VALUES_MAX else ""
        return f"{self.attribute} {'in' if holds else 'not in'} {{{shown}{more}}}{null}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "attribute": self.attribute,
            "at": _pack(self.at),
            "values": None if self.values is None else [_pack(value) for value in self.values],
            "null_left": self.null_left,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Split:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> split = Split("day", at=datetime.date(2024, 5, 1))
        >>> Split.from_dict(split.to_dict()) == split
        True

        """
        values = plain["values"]
        return cls(
            plain["attribute"],
            _unpack(plain["at"]),
            None if values is None else tuple(_unpack(value) for value in values),
            plain["null_left"],
        )


@functools.lru_cache(maxsize=1_024)
def value_set(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """Return values as an Arrow array; the arrays are cached."""
    return pa.array(values, type=kind)


def _say(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


_PACKED: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "datetime": (
        datetime.datetime,
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
}


def _pack(value: Any) -> Any:
    for name, (kind, pack, _) in _PACKED.items():
        if isinstance(value, kind):
            return {name: pack(value)}
    return value


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    name, packed = next(iter(value.items()))
    return _PACKED[name][2](packed)
