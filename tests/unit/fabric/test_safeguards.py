"""Small rules of the router and its tactics that nothing else would notice missing."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.tactics.search_schedule import SearchSchedule
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.fabric.trials import BeforeAfterTrial
from eddyline.journal.events import DriftDetected, OrderChanged, TrialEnded
from eddyline.operators import ArrowPredicate, ColumnReader
from eddyline.ordering import AGreedy, Evidence
from eddyline.testing import draw_answers, make_filters, to_columns


def make(policy=None, **options) -> Router:
    filters, readers = make_filters([0] * 3)
    given = {"costs_us": (1.0, 1.0, 1.0), "seed": 0, **options}
    return Router(filters, readers, policy or AGreedy(), options=RouterOptions(**given))


def route(router: Router, selectivities: list[float], rows: int, seed: int = 0) -> None:
    answers = draw_answers(np.random.default_rng(seed), rows, selectivities, 1)
    router.route(to_columns(answers), rows)


def tactic_of(router: Router) -> SingleOrder:
    tactic = router.segments[0].tactic
    assert isinstance(tactic, SingleOrder)
    return tactic


def test_the_calls_that_judge_rows_show_what_operators_cost() -> None:
    router = make("as_written")
    assert router.segments[0].array.costs.per_row_us() == [None] * 3
    route(router, [0.5, 0.5, 0.5], 1_000)
    assert None not in router.segments[0].array.costs.per_row_us()


def test_the_baseline_is_exact_while_the_written_order_is_in_use() -> None:
    router = make(AGreedy(gain_min=0.9))
    route(router, [0.1, 0.5, 0.9], 20_000)  # already in the best order
    assert not router.journal.of(OrderChanged)
    assert router.totals.written_seen.tolist() == router.totals.seen.tolist()


def test_the_first_profile_is_made_whatever_the_budget_says() -> None:
    router = make(budget=0.0, costs_us=(1e6, 1e6, 1e6))  # a profile would cost minutes
    route(router, [0.9, 0.9, 0.1], 2_000)
    assert router.totals.profiled.sum() > 0
    assert router.order()[0] == "F2"


def test_drift_ends_the_cooldown_of_orders_and_asks_for_a_burst() -> None:
    router = make()
    tactic = tactic_of(router)
    tactic._cooldown.add((2, 1, 0), at_rows=0)
    tactic.forget(DriftDetected())
    assert not tactic._cooldown.bars((2, 1, 0), at_rows=0)
    assert router.segments[0]._profiler._is_burst_due


def test_a_reverted_order_asks_for_a_burst_and_is_barred() -> None:
    router = make()
    route(router, [0.9, 0.9, 0.1], 4_000)
    tactic = tactic_of(router)
    assert tactic._trial is not None
    router.segments[0]._profiler._is_burst_due = False
    tried, before = tactic._trial.tried, tactic._trial.order
    tactic.end_trial("reverted")
    assert tactic.order == before
    assert tactic._cooldown.bars(tried, router.segments[0].ledger.rows)
    assert router.segments[0]._profiler._is_burst_due


def test_decisions_make_chunks_small_again() -> None:
    router = make(chunk_rows=1_000)
    route(router, [0.1, 0.9, 0.9], 90_000)
    steady = router._rows_next
    route(router, [0.9, 0.9, 0.1], 8_000, seed=1)
    assert steady == 4_000
    assert router.journal.of(DriftDetected, OrderChanged, TrialEnded)
    assert router._rows_next < steady


def test_chunks_grow_with_the_time_since_the_last_drift() -> None:
    router = make()
    route(router, [0.1, 0.9, 0.9], 20_000)
    route(router, [0.9, 0.9, 0.1], 20_000, seed=1)
    drift = router.journal.of(DriftDetected)[-1].at_rows
    assert 1_500 <= router._rows_next <= (40_000 - drift) // 8
    router._write(DriftDetected())
    route(router, [0.9, 0.9, 0.1], 1_000, seed=2)
    assert router._rows_next == 512


def test_a_burst_that_is_not_affordable_is_replaced_by_what_was_counted() -> None:
    router = make(budget=0.0, costs_us=(1e4, 1e4, 1e4))  # no profile but the first
    route(router, [0.05, 0.9, 0.9], 20_000)
    profiled = router.totals.profiled.sum()
    route(router, [0.9, 0.05, 0.9], 8_000, seed=1)
    assert router.totals.profiled.sum() == profiled
    assert router.order()[0] == "F1"
    change = router.journal.of(OrderChanged)[-1].event
    assert change.after[0] == "F1"
    assert change.cost_after_us < change.cost_before_us


def test_a_burst_is_taken_from_the_newest_rows() -> None:
    router = make(AGreedy(profile_probability=1e-9))
    route(router, [0.5, 0.5, 0.5], 8_000)
    seen_rows: list[int] = []
    array, profiler = router.segments[0].array, router.segments[0]._profiler
    drops = array.drops

    def noted(number, batch, rows):
        seen_rows.extend(rows.tolist())
        return drops(number, batch, rows)

    array.drops = noted
    profiler.request_burst()
    rows = router._rows_next
    route(router, [0.5, 0.5, 0.5], rows, seed=1)
    assert seen_rows
    assert min(seen_rows) >= 3 * rows // 4


def test_a_barred_order_leaves_the_profile_as_it_is() -> None:
    router = make()
    route(router, [0.9, 0.9, 0.1], 200)
    tactic = tactic_of(router)
    tactic.end_trial("interrupted")
    tactic.policy.adopt((0, 1, 2))
    tactic.reset_drift()
    for order in ((2, 0, 1), (2, 1, 0)):
        for _ in range(5):
            tactic._cooldown.add(order, at_rows=0)
    changes = len(router.journal.of(OrderChanged))
    route(router, [0.9, 0.9, 0.1], 20_000, seed=1)
    assert len(router.journal.of(OrderChanged)) == changes
    assert tactic.order == (0, 1, 2)
    assert len(tactic.policy.profile()) > 100


def test_the_old_order_of_a_trial_is_priced_by_the_window_and_by_the_last_chunk() -> None:
    """On the window, 3 of 4 dropped rows get to filter 0, behind filter 1; 1 gets to filter 2."""
    tactic = tactic_of(make())
    drops = [[0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1]]
    tactic.policy.load_profile(np.array(drops, dtype=bool))
    order, costs_us, none = (1, 0, 2), np.ones(3), np.zeros((0, 3), dtype=bool)
    # Half of the rows of the chunk are kept; they need every filter.
    chunk = Evidence(100, order, np.array([60, 100, 70]), np.array([60, 60, 50]), costs_us, none)
    needed = tactic._evaluations_in(order, chunk)
    assert needed.tolist() == [0.5 + 0.5 * 0.75, 1.0, 0.7]
    tactic.policy.forget()
    assert tactic._evaluations_in(order, chunk).tolist() == [0.6, 1.0, 0.7]


def test_chunks_without_profiled_rows_count_in_a_trial() -> None:
    router = make(AGreedy(profile_probability=1e-9))
    route(router, [0.9, 0.9, 0.1], 1_000)
    tactic = tactic_of(router)
    assert tactic._trial is not None
    rows, profiled = tactic._trial.rows[1], router.totals.profiled.sum()
    route(router, [0.9, 0.9, 0.1], 500, seed=1)
    assert router.totals.profiled.sum() == profiled
    assert tactic._trial is not None
    assert tactic._trial.rows[1] == rows + 500


def test_a_trial_on_rows_that_became_dearer_in_every_order_is_kept() -> None:
    trial = BeforeAfterTrial((0, 1), (1, 0), np.array([1.0, 0.5]), ("a", "b"), ("b", "a"))
    trial.count(10_000, seen=np.array([8_000, 10_000]), passed=np.array([7_900, 8_000]))
    costs_us = np.array([1.0, 1.0])
    before_us, after_us = trial.row_costs_us(costs_us)
    assert after_us > 1.15 * before_us
    assert trial.verdict(costs_us) == "kept"  # the old order drops nearly nothing of them at first


def test_the_parts_of_the_time_add_up_to_no_more_than_all_of_it() -> None:
    def slow(answer: pa.Array) -> pa.Array:
        time.sleep(0.001)
        return answer

    filters = [ArrowPredicate(name, (n,), slow) for n, name in enumerate("ab")]
    router = Router(filters, [ColumnReader("a"), ColumnReader("b")], AGreedy(profile_probability=1))
    answers = np.random.default_rng(0).random((40_000, 2)) < 0.5
    began = time.perf_counter()
    router.route(to_columns(answers), len(answers))
    elapsed_us = (time.perf_counter() - began) * 1e6
    totals = router.totals
    assert totals.profiling_us > 0
    assert totals.busy_us.sum() + totals.overhead_us <= 1.01 * elapsed_us
    assert 0 < totals.deciding_us < totals.profiling_us


def test_searches_pause_longer_after_each_reverted_trial() -> None:
    router = make()
    schedule = SearchSchedule(tactic_of(router)._context)
    pauses = []
    for _ in range(3):
        schedule.note_trial(is_kept=False)
        pauses.append(schedule._paused_until_rows)
    assert pauses[1] == 2 * pauses[0]
    assert pauses[2] == 4 * pauses[0]

    class Due:
        is_due, is_early, searches = True, True, 0

    assert not schedule.allows(Due())
    router.segments[0].ledger.rows = pauses[2]
    assert schedule.allows(Due())


def test_a_trial_that_was_kept_ends_the_doubling_of_pauses() -> None:
    schedule = SearchSchedule(tactic_of(make())._context)
    schedule.note_trial(is_kept=False)
    first = schedule._paused_until_rows
    schedule.note_trial(is_kept=False)
    schedule.note_trial(is_kept=True)
    schedule.note_trial(is_kept=False)
    assert schedule._paused_until_rows == first


def test_a_search_uses_up_its_urgency_and_the_work_that_pays_for_it() -> None:
    class Late:
        is_due, is_early, searches = True, False, 9

    schedule = SearchSchedule(tactic_of(make(budget=0.02, costs_us=None))._context)
    assert not schedule.allows(Late())
    schedule.add_useful(1e9)
    assert schedule.allows(Late())
    schedule.begin()
    assert not schedule.allows(Late())  # the next one waits for as much work again
    schedule.is_urgent = True
    schedule.add_useful(20 * schedule._search_us)
    assert schedule.allows(Late())  # a loan
    schedule.begin()
    schedule.add_useful(20 * schedule._search_us)
    assert not schedule.allows(Late())


def test_searches_pause_longer_each_time_classes_are_soon_dropped() -> None:
    router = make()
    schedule, ledger = SearchSchedule(tactic_of(router)._context), router.segments[0].ledger
    pauses = []
    for used_rows in (5_000, 5_000, 100_000, 5_000):
        schedule.note_trial(is_kept=True)
        ledger.rows += used_rows
        schedule.note_drift()
        schedule.note_dropped()
        pauses.append(max(schedule._paused_until_rows - ledger.rows, 0))
    assert pauses == [32_768, 65_536, 0, 32_768]


@pytest.mark.parametrize("seed", [0, 1])
def test_given_costs_and_a_seed_repeat_a_run_with_uncertain_routes(seed: int) -> None:
    from tests.unit.fabric.test_classes import (
        TestUncertainRoutes,
        make_data,
        make_router,
        route_all,
    )

    seen = []
    for _ in range(2):
        router = make_router("mesh")
        router.segments[0].tactic._adopt(TestUncertainRoutes().mesh())
        router.segments[0].tactic.learns = False
        route_all(router, make_data(seed, 20_000)[0])
        seen.append(router.totals.seen.tolist())
    assert seen[0] == seen[1]
