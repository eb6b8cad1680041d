"""The limit for planning, without a Spark session."""

from __future__ import annotations

import pytest

from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget


@pytest.mark.parametrize(("seconds_max", "most_s"), [(2.0, 1.85), (0.5, 0.45), (60.0, 59.85)])
def test_a_little_time_is_kept_for_cancelling_the_last_job(seconds_max, most_s) -> None:
    left_s = PlanningBudget(None, seconds_max).left_s()
    assert most_s - 0.2 < left_s <= most_s


def test_a_part_keeps_nothing_for_itself() -> None:
    budget = PlanningBudget(None, 1_000.0)
    assert budget.part(0.5).left_s() == pytest.approx(0.5 * budget.left_s(), abs=0.05)


def test_without_a_limit_there_is_always_time() -> None:
    budget = PlanningBudget(None, None)
    assert budget.left_s() is None
    assert not budget.is_over
    assert budget.run(lambda: 5) == 5


def test_nothing_begins_when_the_time_is_up() -> None:
    budget = PlanningBudget(None, 1e-9)
    assert budget.is_over
    with pytest.raises(OutOfTimeError):
        budget.run(lambda: 5)
