"""Orders of filters whose costs are known only to lie within ranges.

An order is safe if it costs less than the written one for nearly all costs within the ranges, and
by more than sampled rows vary. What exact costs could still save tells whether it pays to measure
them. Costs are drawn from the ranges: that all errors are at their worst together is too
pessimistic.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.ordering.static import ordering_cost, static_greedy

DRAWS = 200
#: Draws for which the best order is looked for.
ORDERED_DRAWS = 25
#: Share of the draws that may contradict a safe order.
CONTRADICTING_SHARE = 0.05
#: Standard errors of the mean over sampled rows that a saving must exceed.
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class CostRanges:
    """For each filter, the least and the largest cost that it may have; none is zero.

    Examples
    --------
    >>> CostRanges.around([2.0, 0.1], factor=2.0)
    CostRanges(low_us=(1.0, 0.05), high_us=(4.0, 0.2))

    """

    low_us: tuple[float, ...]
    high_us: tuple[float, ...]

    @classmethod
    def around(cls, cost_us: Sequence[float], factor: float, margin_us: float = 0.0) -> CostRanges:
        """Return ranges around costs, from a part of them to a multiple and a little further."""
        low = tuple(each / factor for each in cost_us)
        return cls(low, tuple(each * factor + margin_us for each in cost_us))

    @functools.cached_property
    def middle_us(self) -> FloatArray:
        """The geometric means."""
        middle_us: FloatArray = np.sqrt(np.multiply(self.low_us, self.high_us))
        return middle_us

    @functools.cached_property
    def draws_us(self) -> FloatArray:
        """Costs within the ranges, a line for each draw; always the same ones."""
        shares = np.random.default_rng(0).random((DRAWS, len(self.low_us)))
        low, high = np.log(self.low_us), np.log(self.high_us)
        draws_us: FloatArray = np.exp(low + shares * (high - low))
        return draws_us


def certain_gain(
    order: Sequence[int], instead_of: Sequence[int], drops: BoolArray, costs: CostRanges
) -> float:
    """Return the share of the cost of an order that another one saves at least, nearly surely.

    Examples
    --------
    >>> drops = np.array([[0, 1]] * 90 + [[1, 0]] * 10, dtype=bool)
    >>> costs, guesses = (CostRanges.around([1.0, 1.0], factor) for factor in (1.5, 9.0))
    >>> 0.2 < certain_gain([1, 0], [0, 1], drops, costs) < 0.42
    True
    >>> certain_gain([1, 0], [0, 1], drops, guesses) < 0
    True

    """
    saved = _evaluated(instead_of, drops) - _evaluated(order, drops)
    draws = costs.draws_us
    mean_us = draws @ saved.mean(axis=0)
    variance = np.einsum("df,fg,dg->d", draws, np.atleast_2d(np.cov(saved.T)), draws)
    noise_us = np.sqrt(np.maximum(variance, 0.0) / len(drops))
    before_us = draws @ _evaluated(instead_of, drops).mean(axis=0)
    gains = (mean_us - STANDARD_ERRORS * noise_us) / before_us
    return float(np.quantile(gains, CONTRADICTING_SHARE))


def safe_order(
    best: Sequence[int], drops: BoolArray, costs: CostRanges, gain_min: float = 0.0
) -> tuple[int, ...]:
    """Return an order that is better than the written one nearly surely, or the written one.

    Parameters
    ----------
    best
        The best order for the middle of the ranges. If it is not safe, safe swaps of neighbours
        may still lead to a better order.
    drops, costs
        What the filters drop and cost.
    gain_min
        Share of the cost that must be saved surely.

    Examples
    --------
    Nobody knows which of the first two filters is cheaper, but the third drops all rows:

    >>> drops = np.array([[1, 0, 1], [0, 1, 1]] * 50, dtype=bool)
    >>> costs = CostRanges.around([1.0, 1.0, 0.2], factor=1.5)
    >>> safe_order((2, 1, 0), drops, costs), safe_order((1, 2, 0), drops, costs)
    ((2, 1, 0), (2, 0, 1))
    >>> safe_order((2, 1, 0), drops, CostRanges.around([1.0, 1.0, 9.0], factor=1.5))
    (0, 1, 2)

    """
    written = tuple(range(drops.shape[1]))
    if len(drops) < 2:
        return written
    gains = {
        order: certain_gain(order, written, drops, costs)
        for order in (tuple(best), _swapped_safely(drops, costs))
        if order != written
    }
    safest = max(gains, key=gains.__getitem__, default=written)
    return safest if gains.get(safest, 0.0) > gain_min else written


def gain_of_measuring(order: Sequence[int], drops: BoolArray, costs: CostRanges) -> float:
    """Return the share of the cost of an order that exact costs could save, as expected.

    Examples
    --------
    >>> drops = np.array([[1, 0], [0, 1]], dtype=bool)
    >>> unknown, known = (CostRanges.around([1.0, 1.0], factor) for factor in (3.0, 1.0))
    >>> gain_of_measuring([0, 1], drops, unknown) > 0.1
    True
    >>> gain_of_measuring([0, 1], drops, known)
    0.0

    """
    gains = []
    for cost_us in costs.draws_us[:ORDERED_DRAWS]:
        before_us = ordering_cost(order, drops, cost_us)
        after_us = ordering_cost(static_greedy(drops, cost_us), drops, cost_us)
        gains.append(max(0.0, 1 - after_us / before_us))
    return float(np.mean(gains))


def _swapped_safely(drops: BoolArray, costs: CostRanges) -> tuple[int, ...]:
    """Return what safe swaps of neighbours make of the written order."""
    order = list(range(drops.shape[1]))
    is_changed = True
    while is_changed:  # each swap lowers the cost in the middle of the ranges
        is_changed = False
        for position in range(len(order) - 1):
            swapped = order.copy()
            swapped[position : position + 2] = swapped[position : position + 2][::-1]
            gain = certain_gain(swapped, order, drops, costs)
            cheaper_us = ordering_cost(swapped, drops, costs.middle_us)
            if gain > 0 and cheaper_us < ordering_cost(order, drops, costs.middle_us):
                order, is_changed = swapped, True
    return tuple(order)


def _evaluated(order: Sequence[int], drops: BoolArray) -> FloatArray:
    """Return which filters each row is given to, along an order."""
    evaluated = np.zeros(drops.shape)
    alive = np.ones(len(drops), dtype=bool)
    for filter_ in order:
        evaluated[:, filter_] = alive
        alive &= ~drops[:, filter_]
    return evaluated
