"""The share of rows that Content-Learns sends on detours follows what detours cost."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.content import ContentOptions
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.content_detours import DetourRate


def adjusted(
    seen: list[int],
    times: int = 1,
    budget: float | None = 0.01,
    cost_us: tuple[float, float] = (1.0, 1.0),
) -> float:
    """Return the share after detours of 100 rows that needed so many evaluations.

    A row on its usual route needs one, of the first operator.
    """
    rate = DetourRate(1, ContentOptions(profile_probability=0.05, profile_budget=budget))
    for _ in range(times):
        rate.add(trace(seen))
        rate.add_usual(trace([100, 0]))
        rate.adjust(0, np.array(cost_us))
    return rate.probability[0]


def trace(seen: list[int]) -> RouteTrace:
    """Return what 100 rows showed."""
    return RouteTrace(None, 100, [], None, np.array([seen, seen]), np.zeros(len(seen)))


def test_the_share_tends_to_what_the_budget_allows() -> None:
    # A detour needs 1.2 evaluations a row instead of 1: 5 % of the rows cost 1 % more.
    assert adjusted([100, 20], times=20) == pytest.approx(0.05)
    assert adjusted([100, 10], times=20) == pytest.approx(0.1)


def test_evaluations_count_by_what_they_cost() -> None:
    # 10 % more: 2.2 us instead of 2 us, and 1.1 us instead of 1 us.
    assert adjusted([100, 20], times=20, cost_us=(2.0, 1.0)) == pytest.approx(0.1)
    assert adjusted([100, 20], times=20, cost_us=(1.0, 1.0)) == pytest.approx(0.05)
    assert adjusted([100, 20], times=20, cost_us=(1.0, 0.5)) == pytest.approx(0.1)


def test_what_detours_cost_more_is_paid_for_each_row() -> None:
    rate = DetourRate(1, ContentOptions())
    assert rate.extra_us([trace([100, 20])], np.ones(2)) == 0.0  # no usual route to compare with
    rate.add_usual(trace([100, 0]))
    rate.add_usual(trace([100, 40]))
    detours = [trace([100, 20]), trace([100, 50])]
    # 200 rows: 200 evaluations of 2 us and 70 of 3 us, against 2.6 us a row.
    assert rate.extra_us(detours, np.array([2.0, 3.0])) == pytest.approx(610 - 200 * 2.6)


def test_a_step_goes_half_the_way() -> None:
    assert adjusted([100, 10]) == pytest.approx(0.075)


def test_the_share_has_bounds_however_dear_or_cheap_detours_are() -> None:
    assert adjusted([100, 900], times=20) == pytest.approx(0.01, rel=1e-3)
    assert adjusted([100, 0], times=20) == pytest.approx(0.25, rel=1e-3)


def test_without_a_budget_the_share_stays() -> None:
    assert adjusted([100, 900], times=20, budget=None) == 0.05


def test_detours_of_another_operator_do_not_count() -> None:
    rate = DetourRate(2, ContentOptions(profile_probability=0.05, profile_budget=0.01))
    rate.add(trace([100, 900]))
    rate.add_usual(trace([100, 0]))
    rate.adjust(0, cost_us=np.ones(2))
    assert rate.probability[0] < 0.05
    rate.adjust(1, cost_us=np.ones(2))  # nothing was counted since
    assert rate.probability[1] == 0.05
