"""Windows, costs, budget and drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.profile import (
    Budget,
    CostModel,
    Costs,
    CusumDetector,
    DropRateDetector,
    ProfileWindow,
)


@given(st.integers(1, 20), st.lists(st.integers(0, 50), max_size=12), st.integers(0, 2**32))
def test_window_is_the_newest_tuples_and_nothing_gets_lost(tuples_max, sizes, seed) -> None:
    rng = np.random.default_rng(seed)
    window = ProfileWindow(3, tuples_max)
    everything: list[list[bool]] = []
    expired: list[list[bool]] = []
    for size in sizes:
        tuples = rng.random((size, 3)) < 0.5
        everything += tuples.tolist()
        expired += window.insert(tuples).tolist()
        assert len(window) == min(len(everything), tuples_max)
        assert expired + window.tuples().tolist() == everything


def test_window_needs_room() -> None:
    with pytest.raises(ValueError, match="tuples_max must be at least 1"):
        ProfileWindow(2, 0)


class TestCost:
    def test_a_predicate_called_with_few_rows_does_not_look_very_expensive_for_it(self) -> None:
        rng = np.random.default_rng(0)
        first, last = CostModel(), CostModel()
        for _ in range(100):
            first.add(4_000, (100 + 0.5 * 4_000) * rng.uniform(1.0, 1.3))
            rows = int(rng.integers(2, 200))
            last.add(rows, (100 + 0.5 * rows) * rng.uniform(1.0, 1.3))
        assert first.per_row_us == pytest.approx(0.6, rel=0.1)
        assert last.per_row_us < 2.5 * first.per_row_us  # the mean of its calls is 10 times that

    def test_calls_that_were_interrupted_do_not_count(self) -> None:
        cost = CostModel()
        for call in range(40):
            cost.add(1_000, 50_000.0 if call % 3 == 0 else 1_000.0)
        assert cost.per_row_us == 1.0

    def test_a_first_call_that_loads_things_does_not_count(self) -> None:
        cost = CostModel()
        cost.add(100, 500_000.0)
        cost.add(100, 200.0)
        assert cost.per_row_us == 2.0

    def test_a_cost_that_changes_is_followed(self) -> None:
        cost = CostModel()
        for us in (3.0, 1.0, 2.0):
            for _ in range(40):
                cost.add(1_000, 1_000 * us)
            assert cost.per_row_us == us

    def test_no_rows_are_no_call(self) -> None:
        cost = CostModel()
        cost.add(0, 100.0)
        assert not cost.known
        assert cost.per_row_us == 0.0


class TestCostsBesideEachOther:
    """How predicates compare, which is all that an order rests on."""

    def test_a_machine_that_slows_down_for_a_while_does_not_make_one_look_dearer(self) -> None:
        costs = Costs(2)
        compared = []
        for turn in range(200):
            slower = 3.0 if (turn // 40) % 2 else 1.0
            calls = [(0, 2_000, 4_000.0 * slower)]
            if turn % 5 == 0:  # seldom reached: its window goes back much further
                calls.append((1, 100, 100.0 * slower))
            costs.add_batch(calls)
            one, other = costs.per_row_us()
            if one is not None and other is not None:
                compared.append(one / other)
        assert compared == pytest.approx([2.0] * len(compared))

    def test_one_that_becomes_dearer_is_noticed_though_it_takes_most_of_the_time(self) -> None:
        costs = Costs(2)
        for us in (1.0, 10.0):
            for _ in range(40):
                costs.add_batch([(0, 4_000, 4_000 * us), (1, 100, 300.0)])
        assert costs.per_row_us() == pytest.approx([10.0, 3.0], rel=0.05)

    def test_a_first_call_that_loads_things_does_not_disturb_the_others(self) -> None:
        costs = Costs(2)
        costs.add_batch([(0, 64, 500_000.0), (1, 10, 30.0)])
        for _ in range(10):
            costs.add_batch([(0, 128, 256.0), (1, 20, 60.0)])
        assert costs.per_row_us() == pytest.approx([2.0, 3.0])

    def test_a_profile_is_charged_at_the_slowdown_of_the_batch_before_it(self) -> None:
        costs = Costs(2)
        for slower in (1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0):
            costs.add_batch([(0, 1_000, 1_000.0 * slower)])
            costs.add(1, 10, 50.0 * slower)
        assert costs.per_row_us() == pytest.approx([1.0, 5.0])

    def test_each_call_counts_for_whoever_asks_next(self) -> None:
        costs = Costs(2)
        costs.add_batch([(0, 10, 20.0)])
        assert costs.per_row_us() == [2.0, None]
        costs.add(1, 10, 50.0)
        assert costs.per_row_us() == [2.0, 5.0]
        costs.add_batch([(1, 100, 300.0)])
        assert costs.per_row_us() == [2.0, 3.0]

    def test_who_was_never_called_is_unknown(self) -> None:
        costs = Costs(2)
        costs.add_batch([(0, 10, 20.0)])
        assert costs.per_row_us() == [2.0, None]


class TestBudget:
    def test_long_run_spending_keeps_to_the_share(self) -> None:
        budget = Budget(0.02)
        spent = 0.0
        for _ in range(1_000):
            budget.earn(1_000.0)
            if budget.allows():
                budget.pay(300.0)
                spent += 300.0
        assert 0.015 * 1e6 <= spent <= 0.0205 * 1e6

    def test_urgent_profiles_have_a_purse_of_their_own(self) -> None:
        budget = Budget(0.02, advance_us=200.0)
        budget.take_advance()
        budget.earn(20_000.0)
        while budget.allows():
            budget.pay(100.0)
        assert budget.affordable_urgent(each_us=1.0, wanted=100) == 100
        budget.pay(100.0)
        assert not budget.allows()

    def test_an_urgent_profile_is_as_large_as_its_purse(self) -> None:
        budget = Budget(0.02, advance_us=200.0)
        budget.take_advance()
        assert budget.affordable_urgent(each_us=4.0, wanted=128) == 25
        budget.pay(100.0)
        assert budget.affordable_urgent(each_us=4.0, wanted=128) == 0
        budget.earn(10_000.0)  # half of 200 us for what is urgent
        assert budget.affordable_urgent(each_us=4.0, wanted=128) == 25

    @pytest.mark.parametrize("unit_us", [0.1, 1.0, 100.0])
    def test_the_advance_is_half_the_root_of_the_work_in_profiles(self, unit_us: float) -> None:
        """Work worth 10,000 profiles: 100 at 1 %, and 50 besides, whatever one costs."""
        budget = Budget(0.01, advance_us=1e9)
        profiles = 0
        for _ in range(100):
            budget.earn(800.0 * unit_us, profile_us=8.0 * unit_us)
            while budget.allows():
                budget.pay(8.0 * unit_us)
                profiles += 1
        assert 150 <= profiles <= 151
        assert budget.advance_us(8.0 * unit_us) == pytest.approx(50 * 8.0 * unit_us)

    def test_the_advance_has_a_limit_and_does_not_shrink_with_the_cost_of_a_profile(self) -> None:
        budget = Budget(0.0, advance_us=100.0)
        for profile_us in (1e6, 1e6, 1.0):
            budget.earn(1e6, profile_us)
        assert budget.allows()
        budget.pay(99.0)
        assert budget.allows()
        budget.pay(1.0)
        assert not budget.allows()

    def test_profiles_on_loan_are_paid_for_before_regular_ones(self) -> None:
        budget = Budget(0.01)
        assert budget.affordable_on_loan(each_us=10.0, wanted=64, debt_max_us=300.0) == 30
        budget.pay(300.0)
        assert budget.affordable_on_loan(each_us=10.0, wanted=64, debt_max_us=300.0) == 0
        budget.earn(29_000.0)
        assert not budget.allows()
        budget.earn(2_000.0)
        assert budget.allows()
        assert Budget(None).affordable_on_loan(1e9, wanted=64, debt_max_us=0.0) == 64

    def test_once_the_next_urgent_profile_is_paid_for_all_is_for_regular_ones(self) -> None:
        budget = Budget(0.02)
        budget.affordable_urgent(each_us=1.0, wanted=100)
        budget.earn(10_000.0)  # 200 us: half of it fills the urgent balance
        budget.earn(10_000.0)
        assert budget.allows()
        budget.pay(299.0)
        assert budget.allows()
        budget.pay(2.0)
        assert not budget.allows()

    def test_alarms_without_end_spend_no_more_than_the_share_and_the_advance(self) -> None:
        budget = Budget(0.01, advance_us=1_000.0)
        spent = 0.0
        for _ in range(1_000):
            budget.earn(1_000.0, profile_us=5.0)
            count = budget.affordable_urgent(each_us=5.0, wanted=128)
            budget.pay(5.0 * count)
            spent += 5.0 * count
            if budget.allows():
                budget.pay(40.0)
                spent += 40.0
        assert 0.009 * 1e6 <= spent <= 0.01 * 1e6 + 1_000.0 + 40.0

    def test_a_search_is_a_debt_that_a_quarter_of_the_earnings_repays(self) -> None:
        budget = Budget(0.02)
        budget.owe(100.0)
        budget.earn(10_000.0)  # 200 us earned, 50 of them for the debt
        assert budget.allows()
        budget.pay(151.0)
        assert not budget.allows()
        budget.earn(10_000.0)
        budget.pay(150.0)
        budget.earn(10_000.0)  # nothing is owed any more
        budget.pay(198.0)
        assert budget.allows()

    def test_loans_are_small_beside_the_work_and_bounded_in_all(self) -> None:
        budget = Budget(0.01)
        assert not budget.allows_loan(60_000.0, useful_us=1_000_000.0)
        for _ in range(4):
            assert budget.allows_loan(60_000.0, useful_us=2_000_000.0)
            budget.owe(60_000.0)
        assert not budget.allows_loan(60_000.0, useful_us=2_000_000.0)
        assert Budget(None).allows_loan(1e9, useful_us=0.0)

    def test_work_that_can_wait_takes_a_quarter_of_the_share(self) -> None:
        budget = Budget(0.02)
        assert budget.allows_deferrable(50.0, useful_us=10_000.0)
        assert not budget.allows_deferrable(51.0, useful_us=10_000.0)
        assert Budget(None).allows_deferrable(1e9, useful_us=0.0)

    def test_a_long_time_without_profiles_does_not_allow_a_long_time_of_them(self) -> None:
        budget = Budget(0.5)
        budget.affordable_urgent(each_us=1e9, wanted=128)  # more than any balance
        for _ in range(100):
            budget.earn(1e6)
        assert budget.affordable_urgent(each_us=1_000.0, wanted=10_000) <= 300
        assert budget.allows()
        budget.pay(251_000.0)
        assert not budget.allows()

    def test_who_begins_with_what_others_learnt_has_no_advance(self) -> None:
        budget = Budget(0.02, advance_us=200.0)
        budget.take_advance()
        assert budget.allows()
        budget.forgo_advance()
        assert not budget.allows()
        assert budget.affordable_urgent(each_us=10.0, wanted=128) == 10  # the rows may change
        later = Budget(0.0, advance_us=200.0)
        later.forgo_advance()
        later.earn(1e6, profile_us=1e6)
        assert not later.allows()
        indebted = Budget(0.02)
        indebted.pay(50.0)
        indebted.forgo_advance()
        indebted.earn(2_000.0)  # 40 us
        assert not indebted.allows()

    def test_unlimited_and_wrong_shares(self) -> None:
        unlimited = Budget(None)
        unlimited.pay(1e9)
        assert unlimited.allows()
        assert unlimited.affordable_urgent(1e9, wanted=128) == 128
        with pytest.raises(ValueError, match="share must be"):
            Budget(1.5)


def detections(
    detector: DropRateDetector, seen: np.ndarray, batches, cost_us: np.ndarray | None = None
) -> list[bool]:
    """Return after which batches the detector showed a change."""
    shown = []
    for dropped in batches:
        costs = np.ones(len(seen)) if cost_us is None else cost_us
        detector.update(seen, np.asarray(dropped), costs)
        shown.append(detector.detected)
    return shown


class TestDropRates:
    def test_chance_is_no_drift(self) -> None:
        rng = np.random.default_rng(0)
        seen = np.array([4_096, 2_000])
        batches = (rng.binomial(seen, [0.5, 0.5]) for _ in range(300))
        assert not any(detections(DropRateDetector(), seen, batches))

    def test_a_change_is_noticed_at_once_and_only_once(self) -> None:
        rng = np.random.default_rng(1)
        seen = np.array([2_000, 1_000])
        batches = (rng.binomial(seen, [0.8 if n < 50 else 0.2, 0.5]) for n in range(100))
        shown = detections(DropRateDetector(), seen, batches)
        assert [batch for batch, detected in enumerate(shown) if detected] == [50]

    def test_the_counted_order_is_by_drop_rate_and_cost(self) -> None:
        detector, seen, cost_us = DropRateDetector(), np.array([2_000] * 3), np.array([1, 9, 2.0])
        detections(detector, seen, [[1_600, 1_200, 100], [60, 1_200, 500]], cost_us)
        assert detector.detected
        assert detector.counted_order == [2, 1, 0]

    def test_rows_that_change_without_making_another_order_cheaper_are_no_drift(self) -> None:
        seen, cost_us = np.array([4_096, 2_000]), np.array([25.0, 3_000.0])
        batches = ([[3_600, 1_000], [700, 1_900]][n % 2] for n in range(60))
        assert not any(detections(DropRateDetector(), seen, batches, cost_us))

    def test_what_the_reference_promised_already_is_no_drift(self) -> None:
        """As with a predicate that drops exactly what the one before it keeps."""
        seen = np.array([4_096, 2_048])
        batches = ([2_048 + 300 * (n % 2), 2_040] for n in range(40))
        assert not any(detections(DropRateDetector(), seen, batches))

    def test_alarms_that_were_wrong_must_promise_twice_as_much_the_next_time(self) -> None:
        seen, calm, changed = np.array([4_096, 2_000]), [2_048, 1_000], [1_000, 1_000]
        detector = DropRateDetector()
        assert detections(detector, seen, [calm, calm, changed])[-1]
        detector.reset()
        for _ in range(3):
            detector.back_off()
        assert not any(detections(detector, seen, [calm, calm, changed]))
        assert detections(detector, seen, [calm, [0, 2_000]])[-1]  # that is another matter

    def test_back_off_wears_off(self) -> None:
        seen, calm, changed = np.array([4_096, 2_000]), [2_048, 1_000], [1_000, 1_000]
        detector = DropRateDetector()
        for _ in range(3):
            detector.back_off()
        assert detections(detector, seen, [calm] * 150 + [changed])[-1]

    def test_rates_within_chance_are_taken_as_expected(self) -> None:
        detector, seen = DropRateDetector(), np.array([4_096, 2_000])
        detections(detector, seen, [[2_048, 1_000], [2_070, 990]])
        assert detector.counted_order == []  # no other order was considered
        detections(detector, seen, [[1_000, 1_000]])
        assert detector.counted_order == [1, 0]

    def test_a_rate_counted_on_few_rows_is_taken_to_be_lower(self) -> None:
        detector = DropRateDetector()
        detector.update(np.array([1_000, 0]), np.array([500, 0]), np.ones(2))
        detector.update(np.array([1_000, 9]), np.array([500, 9]), np.ones(2))
        # 9 of 9 rows count as 9 of 17, 500 of 1,000 as 500 of 1,008.
        before_us, after_us = detector.counted_cost_us
        assert before_us == pytest.approx(2 - 500 / 1_008)
        assert after_us == pytest.approx(2 - 9 / 17)

    def test_rows_that_change_from_batch_to_batch_are_soon_no_news(self) -> None:
        seen = np.array([2_000, 2_000])
        detector, alarms = DropRateDetector(), 0
        for number in range(60):
            batch = [[1_500, 700], [700, 1_500]][number % 2]
            if detections(detector, seen, [batch])[0]:
                alarms += 1
                detector.back_off()  # a profile has confirmed the order
        assert alarms <= 6

    def test_an_alarm_right_after_another_must_promise_more_the_next_time(self) -> None:
        seen, one, other = np.array([2_000, 2_000]), [1_500, 700], [700, 1_500]
        detector, alarms = DropRateDetector(), 0
        for _ in range(30):
            detector.reset()  # each alarm led to another order
            alarms += sum(detections(detector, seen, [one, other]))
        assert alarms <= 6

    def test_another_order_keeps_the_rates_behind_the_same_predicates(self) -> None:
        seen, calm, changed = np.array([4_096, 2_000, 900]), [2_096, 1_100, 400], [300, 1_900, 400]
        for after, is_noticed in (([0, 2, 1], True), ([1, 0, 2], False)):
            detector = DropRateDetector()
            detections(detector, seen, [calm, calm])
            detector.reorder([0, 1, 2], after)
            assert detector.snapshot() is None  # not known for each position
            assert detections(detector, seen, [changed]) == [is_noticed]
            assert detector.snapshot() is not None

    def test_rates_that_are_not_known_are_those_of_the_next_batch(self) -> None:
        seen, calm, changed = np.array([4_096, 2_000]), [2_048, 1_000], [300, 1_900]
        detector = DropRateDetector()
        detector.reorder([0, 1], [1, 0])  # nothing is known yet
        detections(detector, seen, [calm, calm])
        detector.reorder([0, 1], [1, 0])
        assert detections(detector, seen, [calm, changed]) == [False, True]

    def test_positions_that_nothing_reaches_are_left_alone(self) -> None:
        assert not any(detections(DropRateDetector(), np.array([100, 0]), [[100, 0]] * 3))

    def test_a_position_that_nothing_had_reached_counts_from_then_on(self) -> None:
        detector = DropRateDetector()
        detector.update(np.array([1_000, 0]), np.array([1_000, 0]), np.ones(2))
        detector.update(np.array([1_000, 900]), np.array([100, 890]), np.ones(2))
        assert detector.detected
        assert detector.counted_order == [1, 0]

    def test_a_position_that_few_rows_had_reached_counts_whatever_it_drops(self) -> None:
        """Half of its rows: by chance alone, five deviations are more than all of them."""
        detector = DropRateDetector()
        detector.update(np.array([1_000, 0]), np.array([1_000, 0]), np.ones(2))
        detector.update(np.array([1_000, 900]), np.array([100, 450]), np.ones(2))
        assert detector.detected
        assert detector.counted_order == [1, 0]

    def test_the_reference_rests_on_some_ten_batches(self) -> None:
        """More would hold rows of long ago against those that come slowly to differ."""
        detector = DropRateDetector()
        detections(detector, np.array([100]), [[50]] * 200)
        reference = detector.snapshot()
        assert reference is not None
        assert reference.seen[0] == pytest.approx(1_000, rel=0.01)
        assert reference.dropped[0] == pytest.approx(500, rel=0.01)

    def test_what_an_alarm_must_promise_stays_within_bounds(self) -> None:
        detector = DropRateDetector(saving_min=0.05)
        for _ in range(20):
            detector.back_off()
        seen, calm = np.array([4_096, 2_000]), [2_048, 1_000]
        detections(detector, seen, [calm])
        most = detector.snapshot()
        assert most is not None
        assert most.saving_min == 0.6
        assert detections(detector, seen, [[0, 2_000]]) == [False]  # it promises half
        detections(detector, seen, [calm] * 1_000)
        least = detector.snapshot()
        assert least is not None
        assert least.saving_min == 0.05

    def test_a_restored_detector_asks_for_as_much_as_the_other(self) -> None:
        first, seen, calm = DropRateDetector(), np.array([4_096, 2_000]), [2_048, 1_000]
        for _ in range(3):
            first.back_off()
        detections(first, seen, [calm])
        second = DropRateDetector()
        second.restore(first.snapshot())
        assert not any(detections(second, seen, [[1_000, 1_000]]))
        assert detections(DropRateDetector(), seen, [calm, [1_000, 1_000]])[-1]

    def test_a_restored_detector_expects_what_the_other_expected(self) -> None:
        seen = np.array([4_000, 500])
        first = DropRateDetector()
        detections(first, seen, [[3_600, 250]] * 5)
        second = DropRateDetector()
        second.restore(first.snapshot())
        assert detections(second, seen, [[3_600, 250], [400, 250]]) == [False, True]


class TestCusum:
    def test_small_deviations_never_add_up(self) -> None:
        detector = CusumDetector(tolerance=0.2, threshold=1_000)
        for _ in range(500):
            detector.update(0.15, weight=500)
            assert not detector.detected

    def test_a_lasting_deviation_is_detected_and_the_sum_starts_again(self) -> None:
        detector = CusumDetector(tolerance=0.2, threshold=1_000)
        shown = []
        for _ in range(4):
            detector.update(1.2, weight=600)
            shown.append(detector.detected)
        assert shown == [False, True, False, True]

    def test_calm_rows_wear_an_excess_down(self) -> None:
        detector = CusumDetector(tolerance=0.2, threshold=1_000)
        detector.update(1.2, weight=900)
        for _ in range(20):
            detector.update(0.0, weight=900)
        detector.update(1.2, weight=900)
        assert not detector.detected
