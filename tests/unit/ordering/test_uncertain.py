"""Orders under uncertain costs: what is said to be safe is, for costs that were not looked at."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.ordering.static import best_ordering, least_cost, ordering_cost
from eddyline.ordering.uncertain import CostRanges, certain_gain, gain_of_measuring, safe_order


def case(seed: int, factor: float) -> tuple[np.ndarray, CostRanges, np.random.Generator]:
    rng = np.random.default_rng(seed)
    drops = rng.random((1_500, 5)) < rng.random(5)
    return drops, CostRanges.around(10 ** rng.uniform(-1, 1, 5), factor), rng


@pytest.mark.parametrize("seed", range(20))
def test_a_safe_order_is_rarely_worse_than_the_written_one(seed: int) -> None:
    drops, costs, rng = case(seed, factor=3.0)
    order = safe_order(best_ordering(drops, costs.middle_us), drops, costs)
    low, high = np.log(costs.low_us), np.log(costs.high_us)
    actual_us = np.exp(low + rng.random((200, 5)) * (high - low))
    is_worse = [
        ordering_cost(order, drops, each) > ordering_cost(range(5), drops, each) * 1.0001
        for each in actual_us
    ]
    assert np.mean(is_worse) < 0.1


def test_exact_costs_lead_to_nearly_the_best_order() -> None:
    ratios = []
    for seed in range(20):
        drops, costs, _ = case(seed, factor=1.01)
        best = best_ordering(drops, costs.middle_us)
        order = safe_order(best, drops, costs)
        costs_us = [ordering_cost(each, drops, costs.middle_us) for each in (best, order)]
        ratios.append(costs_us[0] / costs_us[1])
    assert min(ratios) > 0.97


def test_swaps_help_where_the_best_order_is_a_gamble() -> None:
    # Filters 0 and 1 may come in any order; filter 2 drops nothing, so it is best last.
    drops = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]] * 200, dtype=bool)
    costs = CostRanges.around([1.0, 0.99, 1.0, 1.0], factor=2.0)
    assert safe_order((1, 0, 3, 2), drops, costs) == (0, 1, 3, 2)


def test_few_rows_prove_nothing() -> None:
    drops = np.array([[0, 1], [1, 0], [0, 1]], dtype=bool)
    costs = CostRanges.around([1.0, 1.0], factor=1.1)
    assert certain_gain([1, 0], [0, 1], np.tile(drops, (300, 1)), costs) > 0.1
    assert safe_order((1, 0), drops, costs) == (0, 1)
    assert safe_order((1, 0), drops[:1], costs) == (0, 1)


def test_measuring_is_worth_more_the_less_is_known() -> None:
    drops, _, _ = case(0, 1.0)
    gains = [
        gain_of_measuring(range(5), drops, CostRanges.around([1.0] * 5, factor))
        for factor in (1.0, 1.5, 4.0)
    ]
    assert gains[1] < gains[2]


def test_no_route_costs_less_than_the_least_cost() -> None:
    drops, costs, _ = case(3, 1.0)
    best = best_ordering(drops, costs.middle_us)
    assert least_cost(drops, costs.middle_us) <= ordering_cost(best, drops, costs.middle_us)
    assert least_cost(drops[:0], costs.middle_us) == 0.0
