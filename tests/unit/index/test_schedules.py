"""Every schedule: who is assessed when, who is due, and nobody without having been assessed."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.index.schedules import SCHEDULES, Continuous, Hybrid, Periodic, Schedule, Triggered
from eddyline.index.schedules.rate_changes import RateChanges

#: One of each, with windows and periods of some batches of the tests.
SMALL: dict[str, Schedule] = {
    "continuous": Continuous(window_requests=50),
    "periodic": Periodic(period_requests=200, window_requests=50),
    "triggered": Triggered(period_requests=200, window_requests=50, change_min=0.2),
    "hybrid": Hybrid(period_requests=200, trigger_requests=300, window_requests=50, change_min=0.2),
}
BATCHES = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 700)), min_size=1, max_size=60)


def copy_of(name: str) -> Schedule:
    schedule = pickle.loads(pickle.dumps(SMALL[name]))
    assert isinstance(schedule, Schedule)
    return schedule


def serve(schedule: Schedule, batches: list[tuple[str, int]]) -> list[str]:
    """Serve batches and return the states that were due, in turn."""
    due = []
    for state, requests in batches:
        schedule.is_assessing(state)
        schedule.record(state, requests)
        due += schedule.take_due()
    return due


def test_every_schedule_is_tested() -> None:
    assert list(SMALL) == list(SCHEDULES)
    assert all(type(SMALL[name]) is schedule for name, schedule in SCHEDULES.items())


@pytest.mark.parametrize("name", SCHEDULES)
@given(batches=BATCHES, take_every=st.integers(1, 5))
def test_a_state_is_due_only_after_requests_that_were_counted(
    name: str, batches: list[tuple[str, int]], take_every: int
) -> None:
    schedule = copy_of(name)
    counted = dict.fromkeys("ABC", 0)
    for number, (state, requests) in enumerate(batches):
        if schedule.is_assessing(state):
            counted[state] += requests
        schedule.record(state, requests)
        if number % take_every == 0:
            due = schedule.take_due()
            assert len(due) == len(set(due))
            assert all(counted[state] > 0 for state in due)
            counted.update(dict.fromkeys(due, 0))
            assert schedule.take_due() == []


@pytest.mark.parametrize("name", ["continuous", "periodic", "hybrid"])
@given(
    shares=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    warm_up=BATCHES,
)
def test_every_state_that_keeps_getting_requests_is_due(
    name: str, shares: list[int], warm_up: list[tuple[str, int]]
) -> None:
    schedule = copy_of(name)
    serve(schedule, warm_up)
    batches = [(f"state {number}", share) for number, share in enumerate(shares)]
    rounds = 100 + 3_000 // sum(shares)
    for _ in range(3):  # again and again
        assert set(serve(schedule, batches * rounds)) >= {state for state, _ in batches}


@pytest.mark.parametrize("name", SCHEDULES)
@given(batches=BATCHES)
def test_a_pickled_schedule_goes_on_as_the_original(
    name: str, batches: list[tuple[str, int]]
) -> None:
    schedule = copy_of(name)
    half = len(batches) // 2
    serve(schedule, batches[:half])
    restored = pickle.loads(pickle.dumps(schedule))
    assert serve(schedule, batches[half:]) == serve(restored, batches[half:])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_negative_number_of_requests_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="requests must be at least 0, not -1"):
        copy_of(name).record("A", -1)


@pytest.mark.parametrize("name", SCHEDULES)
def test_parameters_are_checked(name: str) -> None:
    schedule = SCHEDULES[name]
    with pytest.raises(ValueError, match="window_requests must be at least 1, not 0"):
        schedule(window_requests=0)  # type: ignore[call-arg]
    if name != "continuous":
        with pytest.raises(ValueError, match="period_requests must be at least 1, not 0"):
            schedule(period_requests=0)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="window_requests must be at most period_requests"):
            schedule(period_requests=1_000, window_requests=1_001)  # type: ignore[call-arg]
    if name in ("triggered", "hybrid"):
        for change_min in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="change_min must be a positive number"):
                schedule(change_min=change_min)  # type: ignore[call-arg]


def test_hybrid_checks_the_stretch_as_well() -> None:
    with pytest.raises(ValueError, match="trigger_requests must be at least 1, not 0"):
        Hybrid(trigger_requests=0)
    with pytest.raises(ValueError, match="window_requests must be at most trigger_requests"):
        Hybrid(trigger_requests=10_000, window_requests=10_001)


def test_settings_of_the_paper() -> None:
    """Section 9.2: windows of 60,000 (periodic) and 100,000 (triggered) search requests."""
    assert Continuous.paper().window_requests == 60_000
    assert Periodic.paper().period_requests == 60_000
    assert Triggered.paper().period_requests == 100_000
    hybrid = Hybrid.paper()
    assert (hybrid.period_requests, hybrid.trigger_requests) == (60_000, 100_000)
    later = Hybrid.paper(period_requests=40_000, trigger_requests=80_000)
    assert (later.period_requests, later.trigger_requests) == (40_000, 80_000)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_has_valid_settings_of_its_own(name: str) -> None:
    schedule = SCHEDULES[name]()
    assert schedule.window_requests >= 1


def test_what_was_counted_before_a_state_is_taken_is_not_counted_again() -> None:
    """The next assessment of a state that is taken late begins when it is taken."""
    schedule = Triggered(period_requests=100, window_requests=50, change_min=0.2)
    for state, requests in [("A", 90), ("B", 10), ("A", 80), ("B", 20), ("B", 40), ("A", 60)]:
        schedule.record(state, requests)
    schedule.record("B", 30)  # due, and assessed again
    assert schedule.take_due() == ["B"]
    assert serve(schedule, [("A", 70)]) == []
    assert schedule.is_assessing("B")


class TestContinuous:
    def test_a_window_counts_the_requests_of_its_own_state_only(self) -> None:
        schedule = Continuous(window_requests=100)
        assert serve(schedule, [("A", 99), ("B", 99), ("A", 1)]) == ["A"]

    def test_the_next_window_begins_when_the_state_is_taken(self) -> None:
        schedule = Continuous(window_requests=100)
        schedule.record("A", 450)
        assert schedule.take_due() == ["A"]
        assert serve(schedule, [("A", 99)]) == []
        assert serve(schedule, [("A", 1)]) == ["A"]


class TestPeriodic:
    def test_nothing_is_assessed_before_the_first_period_is_over(self) -> None:
        schedule = Periodic(period_requests=100, window_requests=10)
        schedule.record("A", 50)
        schedule.record("B", 49)
        assert not schedule.is_assessing("A")
        schedule.record("B", 1)
        assert schedule.is_assessing("A")
        assert schedule.is_assessing("B")

    def test_a_state_that_was_only_asked_for_is_assessed_too(self) -> None:
        schedule = Periodic(period_requests=100, window_requests=10)
        assert not schedule.is_assessing("B")
        schedule.record("A", 100)
        assert schedule.is_assessing("B")

    def test_periods_are_counted_through(self) -> None:
        """A batch over the end of a period is part of the next one, and so are assessments."""
        schedule = Periodic(period_requests=100, window_requests=10)
        schedule.record("A", 150)
        schedule.record("A", 49)
        assert schedule.take_due() == ["A"]
        assert not schedule.is_assessing("A")
        schedule.record("A", 1)
        assert schedule.is_assessing("A")

    def test_a_batch_of_several_periods_starts_one_assessment(self) -> None:
        schedule = Periodic(period_requests=100, window_requests=10)
        schedule.record("A", 350)
        schedule.record("A", 10)
        assert schedule.take_due() == ["A"]
        schedule.record("A", 30)
        assert not schedule.is_assessing("A")

    def test_a_slow_assessment_goes_on_over_the_next_period(self) -> None:
        schedule = Periodic(period_requests=100, window_requests=10)
        batches = [("A", 95), ("B", 5)]
        assert "B" not in serve(schedule, batches * 2)
        assert "B" in serve(schedule, batches)


class TestTriggered:
    @given(shares=st.lists(st.integers(1, 100), min_size=1, max_size=4))
    def test_constant_rates_trigger_nothing(self, shares: list[int]) -> None:
        schedule = Triggered(sum(shares), window_requests=1, change_min=0.01)
        batches = [(f"state {number}", share) for number, share in enumerate(shares)]
        assert serve(schedule, batches * 10) == []

    def test_only_the_state_that_changed_most_is_assessed(self) -> None:
        schedule = Triggered(period_requests=100, window_requests=10, change_min=0.2)
        serve(schedule, [("A", 50), ("B", 30), ("C", 20)])
        serve(schedule, [("A", 30), ("B", 44), ("C", 26)])  # -40%, +47%, +30%
        assert [schedule.is_assessing(state) for state in "ABC"] == [False, True, False]
        assert serve(schedule, [("A", 30), ("B", 44), ("C", 26)]) == ["B"]

    def test_of_equal_changes_the_state_seen_first_is_assessed(self) -> None:
        schedule = Triggered(period_requests=100, window_requests=10, change_min=0.2)
        serve(schedule, [("B", 50), ("A", 50), ("A", 25), ("B", 75)])
        assert [schedule.is_assessing(state) for state in "AB"] == [False, True]

    def test_a_fall_counts_as_a_rise_does(self) -> None:
        schedule = Triggered(period_requests=100, window_requests=10, change_min=0.2)
        serve(schedule, [("A", 90), ("B", 10), ("A", 92), ("B", 8)])
        assert schedule.is_assessing("B")

    def test_changes_below_the_smallest_one_are_ignored(self) -> None:
        schedule = Triggered(period_requests=100, window_requests=10, change_min=0.2)
        serve(schedule, [("A", 50), ("B", 50), ("A", 59), ("B", 41)])
        assert not schedule.is_assessing("A")
        assert not schedule.is_assessing("B")
        serve(schedule, [("A", 71), ("B", 29)])  # of B: -29%
        assert schedule.is_assessing("B")

    def test_an_assessment_ends_with_the_stretch(self) -> None:
        """Due with the few requests that there were."""
        schedule = Triggered(period_requests=100, window_requests=50, change_min=0.2)
        serve(schedule, [("A", 90), ("B", 10), ("A", 80), ("B", 20)])
        assert serve(schedule, [("B", 20), ("A", 79)]) == []
        assert serve(schedule, [("A", 1)]) == ["B"]
        assert not schedule.is_assessing("B")

    def test_an_assessment_without_any_request_is_not_due(self) -> None:
        schedule = Triggered(period_requests=100, window_requests=50, change_min=0.2)
        serve(schedule, [("A", 90), ("B", 10), ("A", 80), ("B", 20)])
        assert serve(schedule, [("A", 100), ("A", 100)]) == ["A"]  # +25%; B goes on
        assert schedule.is_assessing("B")
        assert serve(schedule, [("B", 1), ("A", 99)]) == ["B"]

    def test_stretches_of_unequal_length_compare(self) -> None:
        """Batches overrun stretches; rates are shares of what a stretch has got."""
        schedule = Triggered(period_requests=100, window_requests=10, change_min=0.01)
        assert serve(schedule, [("A", 60), ("B", 60), ("A", 90), ("B", 90)]) == []
        assert serve(schedule, [("A", 50), ("B", 50), ("A", 50), ("B", 50)]) == []

    def test_a_state_that_appears_has_changed_most(self) -> None:
        changes = RateChanges(stretch_requests=100, change_min=0.1)
        for state, requests in [("A", 90), ("B", 10), ("A", 1), ("B", 98), ("C", 1)]:
            changes.record(state, requests)
        assert changes.most_changed == "C"

    def test_a_state_that_vanishes_does_not_stand_in_the_way_of_others(self) -> None:
        changes = RateChanges(stretch_requests=100, change_min=0.1)
        for state, requests in [("A", 40), ("B", 60), ("B", 100)]:
            changes.record(state, requests)
        assert changes.most_changed == "B"


class TestHybrid:
    def test_states_have_their_turn_from_the_top_of_the_list(self) -> None:
        schedule = Hybrid(period_requests=90, trigger_requests=10_000, window_requests=10)
        batches = [("A", 30), ("B", 30), ("C", 30)]
        assert serve(schedule, batches * 7) == ["A", "B", "C", "A", "B", "C"]

    def test_one_state_is_assessed_a_period(self) -> None:
        schedule = Hybrid(period_requests=90, trigger_requests=10_000, window_requests=10)
        serve(schedule, [("A", 30), ("B", 30), ("C", 30)])
        assert [schedule.is_assessing(state) for state in "ABC"] == [True, False, False]

    def test_a_changed_state_does_not_wait_and_moves_to_the_bottom(self) -> None:
        schedule = Hybrid(
            period_requests=200, trigger_requests=100, window_requests=10, change_min=0.5
        )
        serve(schedule, [("A", 60), ("B", 20), ("C", 20)])
        serve(schedule, [("A", 40), ("B", 40), ("C", 19)])
        schedule.record("C", 1)  # the end of a stretch, in which B doubled, and of a period
        assert [schedule.is_assessing(state) for state in "ABC"] == [True, True, False]
        steady = [("A", 40), ("B", 40), ("C", 20)] * 2
        assert serve(schedule, steady) == ["A", "B"]
        assert serve(schedule, steady * 3) == ["C", "B", "A"]  # C was behind B

    def test_a_triggered_state_whose_turn_is_running_is_due_once(self) -> None:
        schedule = Hybrid(period_requests=150, trigger_requests=100, window_requests=40)
        serve(schedule, [("A", 50), ("B", 50), ("B", 50)])  # the turn of A
        assert serve(schedule, [("A", 30), ("B", 20)]) == []  # its rate falls by 40%
        assert schedule.is_assessing("A")
        assert serve(schedule, [("A", 10)]) == ["A"]
        assert not schedule.is_assessing("A")

    def test_a_changed_state_is_assessed_until_the_stretch_ends(self) -> None:
        schedule = Hybrid(period_requests=10_000, trigger_requests=100, window_requests=40)
        serve(schedule, [("A", 50), ("B", 50), ("A", 20), ("B", 80)])
        assert serve(schedule, [("B", 30), ("A", 20)]) == []
        assert serve(schedule, [("B", 10), ("A", 39)]) == ["B"]

    def test_a_turn_ends_with_its_period(self) -> None:
        schedule = Hybrid(period_requests=100, trigger_requests=10_000, window_requests=50)
        batches = [("A", 2), ("B", 98)]
        assert serve(schedule, batches * 2) == ["A"]

    def test_a_state_without_requests_does_not_take_the_turn_of_others(self) -> None:
        schedule = Hybrid(period_requests=100, trigger_requests=10_000, window_requests=50)
        serve(schedule, [("gone", 1), ("A", 99)])
        assert serve(schedule, [("A", 100)] * 4) == ["A"] * 3
        assert serve(schedule, [("gone", 1), ("A", 99)]) == ["A", "gone"]

    @pytest.mark.parametrize(
        ("schedule", "batches"),
        [
            pytest.param(
                Hybrid(200, trigger_requests=100, window_requests=50, change_min=0.5),
                "A90 B10 A80 B20 B20 A80 B20 A80",
                id="due by a change, in its turn again",
            ),
            pytest.param(
                Hybrid(100, trigger_requests=250, window_requests=50, change_min=0.5),
                "B20 A80 B20 A80 B50 A50 B50 A50 B100",
                id="due by its turn, changed again",
            ),
        ],
    )
    def test_a_state_taken_late_begins_again(self, schedule: Hybrid, batches: str) -> None:
        """What was counted before it was taken is not counted again."""
        for batch in batches.split():
            schedule.record(batch[0], int(batch[1:]))
        assert schedule.is_assessing("B")
        schedule.record("B", 10)
        assert "B" in schedule.take_due()
        assert "B" not in serve(schedule, [("A", 60)] * 5)
        assert schedule.is_assessing("B")
