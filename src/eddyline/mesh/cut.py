"""The search for the best test: the cut of some rows that lowers their impurity most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.mesh.split import Split
from eddyline.mesh.training import BinnedAttribute

#: Impurity of parts: sums of the targets in each part, weights of the parts, to a number for each.
Impurity = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Cut:
    """A split of some rows, found in bins: what it gains and which bins go left."""

    split: Split
    gain: float
    left_bins: BoolArray
    attribute: BinnedAttribute

    def goes_left(self, rows: IntArray) -> BoolArray:
        """Return for each of the training rows whether it goes left."""
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
        One row of numbers for each training row: what should be alike within a part.
    impurity
        How unlike the rows of a part are.
    leaf_rows_min
        Neither part may have fewer rows.
    chance_unit
        What one degree of freedom lowers the impurity by chance. A split must gain more than the
        best split of an attribute that is unrelated to the targets would.
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
