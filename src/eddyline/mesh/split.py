"""One test of a decision tree, and the search for the best one over all attributes."""

from __future__ import annotations

import datetime
import decimal
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.mesh.training import BinnedAttribute

#: Impurity of parts: sums of the targets in each part, weights of the parts, to a number for each.
Impurity = Callable[[FloatArray, FloatArray], FloatArray]

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
        """Say for each value whether the test holds."""
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

    def words(self, holds: bool) -> str:
        """Say the test, or its contrary, as a person would.

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
    """Return values as an Arrow array, made but once."""
    return pa.array(values, type=kind)


@dataclass(frozen=True)
class Cut:
    """A split of some rows, found in bins: what it gains and which bins go left."""

    split: Split
    gain: float
    left_bins: BoolArray
    attribute: BinnedAttribute

    def goes_left(self, rows: IntArray) -> BoolArray:
        """Say for each of the training rows whether it goes left."""
        return self.left_bins[self.attribute.codes[rows]]


def entropy_impurity(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the bits in knowing the class of every row of a part; targets are one-hot classes."""
    share = sums / np.maximum(weights, 1e-12)[:, None]
    logs = np.log2(np.where(share > 0, share, 1.0))
    return np.asarray(-(sums * logs).sum(axis=1))


def variance_impurity(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the squared deviations of a part, up to a constant that all splits share."""
    return np.asarray(-(sums**2).sum(axis=1) / np.maximum(weights, 1e-12))


def best_cut(
    attributes: Sequence[BinnedAttribute],
    rows: IntArray,
    targets: FloatArray,
    impurity: Impurity,
    leaf_rows_min: int,
    chance_unit: float = 0.0,
) -> Cut | None:
    """Return the split of the rows that lowers the impurity most; None if there is none.

    Parameters
    ----------
    attributes
        To split on.
    rows
        Of the training set.
    targets
        A line for each training row: what should be alike within a part.
    impurity
        How unlike the rows of a part are.
    leaf_rows_min
        Neither part may have fewer rows.
    chance_unit
        What one degree of freedom lowers the impurity by chance. An attribute has to do better
        than the best of its splits would if it told nothing.
    """
    best: Cut | None = None
    own = targets[rows]
    total = own.sum(axis=0)
    whole = float(impurity(total[None, :], np.array([float(len(rows))]))[0])
    for attribute in attributes:
        codes = attribute.codes[rows]
        counts = np.bincount(codes, minlength=attribute.bins).astype(float)
        sums: FloatArray = np.stack(
            [
                np.bincount(codes, weights=own[:, target], minlength=attribute.bins).astype(float)
                for target in range(own.shape[1])
            ],
            axis=1,
        )
        order = _order_of_bins(attribute, counts, sums)
        nulls = attribute.null_code
        for null_left in (False, True) if attribute.is_ordered and counts[nulls] else (False,):
            cut = _best_prefix(order, counts, sums, impurity, leaf_rows_min, nulls, null_left)
            if cut is None:
                continue
            length, remaining = cut
            by_chance = chance_unit * _degrees_of_freedom(attribute, counts, len(attributes))
            gain = whole - remaining - by_chance
            if gain > 1e-9 and (best is None or gain > best.gain + 1e-12):
                left = np.zeros(attribute.bins, dtype=bool)
                left[order[:length]] = True
                if attribute.is_ordered:
                    left[nulls] = null_left
                best = Cut(_split_of(attribute, order[:length], left), gain, left, attribute)
    return best


def _order_of_bins(attribute: BinnedAttribute, counts: FloatArray, sums: FloatArray) -> IntArray:
    """Return the bins in the order in which a prefix of them may go left."""
    if attribute.is_ordered:
        return np.arange(len(attribute.bounds))
    present = np.flatnonzero(counts)
    means = sums[present] / counts[present][:, None]
    spread = (means - np.average(means, axis=0, weights=counts[present])) * np.sqrt(
        counts[present]
    )[:, None]
    # Along the direction in which the values differ most.
    _, _, directions = np.linalg.svd(spread, full_matrices=False)
    return present[np.argsort(means @ directions[0], kind="stable")]


def _best_prefix(
    order: IntArray,
    counts: FloatArray,
    sums: FloatArray,
    impurity: Impurity,
    leaf_rows_min: int,
    nulls: int,
    null_left: bool,
) -> tuple[int, float] | None:
    """Return how many of the ordered bins should go left, and the impurity that then remains."""
    if len(order) < 1:
        return None
    left_count, left_sum = counts[order].cumsum(), sums[order].cumsum(axis=0)
    if null_left:
        left_count, left_sum = left_count + counts[nulls], left_sum + sums[nulls]
    right_count, right_sum = counts.sum() - left_count, sums.sum(axis=0) - left_sum
    allowed = (left_count >= leaf_rows_min) & (right_count >= leaf_rows_min)
    allowed &= counts[order] > 0
    if not allowed.any():
        return None
    remaining = impurity(left_sum, left_count) + impurity(right_sum, right_count)
    remaining[~allowed] = np.inf
    best = int(np.argmin(remaining))
    return best + 1, float(remaining[best])


def _degrees_of_freedom(attribute: BinnedAttribute, counts: FloatArray, attributes: int) -> float:
    """Return how much the best of an attribute's splits can be expected to gain by chance alone.

    The best of b cuts of an ordered attribute is the greatest of b dependent chances, about 2 ln b.
    The best division of v values keeps 2/pi of the v - 1 degrees of freedom between them. Both are
    on top of what the choice among the attributes gives away, and of a margin.
    """
    bins = int(np.count_nonzero(counts))
    own = 2.0 * np.log(max(bins, 2)) if attribute.is_ordered else 2.0 / np.pi * (bins - 1)
    return float(own + 2.0 * np.log(max(attributes, 2)) + 4.0)


def _split_of(attribute: BinnedAttribute, left_order: IntArray, left: BoolArray) -> Split:
    null_left = bool(left[attribute.null_code])
    if attribute.is_ordered:
        return Split(attribute.name, at=attribute.bounds[int(left_order[-1])], null_left=null_left)
    chosen = [attribute.bounds[code] for code in left_order.tolist() if code != attribute.null_code]
    return Split(attribute.name, values=tuple(chosen), null_left=null_left)


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
