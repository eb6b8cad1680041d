"""Comparisons across streams, as far as they say early which rows cannot belong together.

`a.x < b.y + 5` and `abs(a.x - b.y) < 5` bound a value of one stream by a value of another. Values
are compared as floating-point numbers here, a little too generously; whoever reads the result lets
Spark evaluate the condition itself. NaN stands for NULL; Spark's NaN, which is larger than
everything, is infinite here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, BoolArray, FloatArray
from eddyline.index.ordered_bits import Limits
from eddyline.joins.plan import Bound, JoinQuery, KeyRef, Role
from eddyline.operators.bitmaps import bitmap_of

#: By how much values, and constants added to them, may be off; Spark may compute in 32 bits.
_VALUE_ERROR, _OFFSET_ERROR = 2.0**-50, 2.0**-20

#: Returns a compared column, for rows that the caller knows.
Column = Callable[[KeyRef], FloatArray]


def highest(bound: Bound, high: FloatArray) -> FloatArray:
    """Return the largest value of `low` that a bound admits, given values of `high`.

    Examples
    --------
    >>> bound = Bound(KeyRef(Role(0), 0), KeyRef(Role(1), 0), 0.0)
    >>> highest(bound, np.array([7.0])).tolist()
    [7.0]

    """
    if bound.offset == 0:
        return high  # to become a floating-point number keeps the order
    return high + bound.offset + _slack(bound, high)


def lowest(bound: Bound, low: FloatArray) -> FloatArray:
    """Return the smallest value of `high` that a bound admits, given values of `low`."""
    if bound.offset == 0:
        return low
    return low - bound.offset - _slack(bound, low)


def _slack(bound: Bound, values: FloatArray) -> FloatArray:
    slack: FloatArray = _VALUE_ERROR * np.abs(values) + _OFFSET_ERROR * abs(bound.offset)
    slack[np.isinf(slack)] = 0
    return slack


def admits(bound: Bound, column: Column) -> BoolArray:
    """Return for combinations whether a bound admits them."""
    is_admitted: BoolArray = column(bound.low) <= highest(bound, column(bound.high))
    return is_admitted


class MaskedBound(NamedTuple):
    """A bound, and the queries that have it."""

    bound: Bound
    queries: Bitmap


def bounds_of(
    queries: Sequence[JoinQuery], role: Role, filled: Iterable[Role], words: int
) -> list[MaskedBound]:
    """Return the bounds that can be checked once a role is filled after others."""
    known = {role, *filled}
    slots: dict[Bound, list[int]] = {}
    for query in queries:
        for bound in query.bounds:
            roles = {bound.low.role, bound.high.role}
            if role in roles and roles <= known:
                slots.setdefault(bound, []).append(query.slot)
    return [MaskedBound(bound, bitmap_of(own, words)) for bound, own in slots.items()]


class Interval(NamedTuple):
    """A column of a role that is to be filled, and the bounds on it."""

    column: int
    #: Bounds in which the column is `low`, and those in which it is `high`.
    above: tuple[Bound, ...]
    below: tuple[Bound, ...]

    def limits(self, column: Column, count: int) -> Limits:
        """Return the smallest and the largest value for each of some combinations."""
        low, high = np.full(count, -np.inf), np.full(count, np.inf)
        for bound in self.above:
            high = np.minimum(high, highest(bound, column(bound.high)))
        for bound in self.below:
            low = np.maximum(low, lowest(bound, column(bound.low)))
        return Limits(low, high)


def intervals(query: JoinQuery, role: Role, filled: Mapping[Role, object]) -> list[Interval]:
    """Return by which columns a role can be searched, given filled ones.

    Columns that are bounded from above and from below come first.
    """
    above: dict[int, list[Bound]] = {}
    below: dict[int, list[Bound]] = {}
    for bound in query.bounds:
        if bound.low.role == role and bound.high.role in filled:
            above.setdefault(bound.low.column, []).append(bound)
        if bound.high.role == role and bound.low.role in filled:
            below.setdefault(bound.high.column, []).append(bound)
    columns = sorted({*above, *below}, key=lambda own: (-((own in above) + (own in below)), own))
    return [Interval(own, tuple(above.get(own, ())), tuple(below.get(own, ()))) for own in columns]
