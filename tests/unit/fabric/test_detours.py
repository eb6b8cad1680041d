"""The share of rows that Content-Learns sends on detours follows what detours cost."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.content import ContentOptions
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.content_detours import DetourRate


def adjusted(seen: list[int], times: int = 1, budget: float | None = 0.01) -> float:
    """Return the share after detours of 100 rows that needed so many evaluations, of 1 us each."""
    rate = DetourRate(ContentOptions(profile_probability=0.05, profile_budget=budget))
    for _ in range(times):
        rate.reset()
        counts = np.array([seen, seen])
        rate.add(RouteTrace(None, 100, [], None, counts, np.zeros(len(seen))))
        rate.adjust(usual_us=1.0, cost_us=np.ones(len(seen)))
    return rate.probability


def test_the_share_tends_to_what_the_budget_allows() -> None:
    # A detour needs 1.2 evaluations a row instead of 1: 5 % of the rows cost 1 % more.
    assert adjusted([100, 20], times=20) == pytest.approx(0.05)
    assert adjusted([100, 10], times=20) == pytest.approx(0.1)


def test_a_step_goes_half_the_way() -> None:
    assert adjusted([100, 10]) == pytest.approx(0.075)


def test_the_share_has_bounds_however_dear_or_cheap_detours_are() -> None:
    assert adjusted([100, 900], times=20) == pytest.approx(0.01, rel=1e-3)
    assert adjusted([100, 0], times=20) == pytest.approx(0.25, rel=1e-3)


def test_without_a_budget_the_share_stays() -> None:
    assert adjusted([100, 900], times=20, budget=None) == 0.05


def test_detours_of_another_operator_do_not_count() -> None:
    rate = DetourRate(ContentOptions(profile_probability=0.05, profile_budget=0.01))
    rate.add(RouteTrace(None, 100, [], None, np.array([[900], [0]]), np.zeros(1)))
    rate.reset()
    rate.adjust(usual_us=1.0, cost_us=np.ones(1))
    assert rate.probability == 0.05
