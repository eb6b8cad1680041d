"""Index selection finds the best configuration, and the examples of the paper."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest

from eddyline.index import selection
from eddyline.index.assessment import CDIA, CSRIA, SRIA, Assessment
from eddyline.index.configuration import Configuration
from eddyline.index.cost import Cost, UnitCosts, Workload, dependent_cost, paper_cost
from eddyline.index.selection import configurations, select
from tests.unit.index.streams import feed_table_2
from tests.unit.index.workloads import all_patterns, random_costs, random_workload

COSTS = UnitCosts(hash_ns=10, compare_ns=5, visit_ns=40, call_ns=10_000)
#: A seed with which random combination of table 2 chooses the first column.
FIRST_COLUMN_SEED = 2

both_costs = pytest.mark.parametrize("cost", [paper_cost, dependent_cost], ids=["paper", "full"])


def select_for_table_2(assessment: Assessment) -> tuple[int, ...]:
    feed_table_2(assessment)
    workload = Workload(assessment.frequencies(), requests=100, arrivals=100, window=10)
    return select(3, 4, workload, UnitCosts(hash_ns=1e-6, compare_ns=1), cost=paper_cost).bits


def test_table_2_with_all_statistics() -> None:
    assert select_for_table_2(SRIA()) == (1, 1, 2)


def test_table_2_without_the_patterns_that_csria_deletes() -> None:
    assert select_for_table_2(CSRIA(error=0.001, threshold=0.05)) == (0, 1, 3)


def test_table_2_with_random_combination_into_the_first_column() -> None:
    assessment = CDIA(error=0.001, threshold=0.05, combination="random", seed=FIRST_COLUMN_SEED)
    bits = select_for_table_2(assessment)
    assert assessment.frequencies()[0,] == pytest.approx(0.08), "(0, 1) went to (0,)"
    assert bits == (1, 1, 2)


def test_table_2_with_combination_into_the_highest_count() -> None:
    assessment = CDIA(error=0.001, threshold=0.05, combination="highest_count")
    bits = select_for_table_2(assessment)
    assert assessment.frequencies()[1,] == pytest.approx(0.14), "(0, 1) went to (1,)"
    assert bits == (0, 2, 2)


@pytest.mark.parametrize(("columns", "bits"), [(1, 1), (3, 4), (5, 3), (4, 7), (6, 2)])
def test_lemma_1_counts_configurations(columns: int, bits: int) -> None:
    every = [b for b in product(range(bits + 1), repeat=columns) if sum(b) == bits]
    assert configurations(columns, bits) == len(every)


def test_lemma_1_each_pattern_is_one_term_of_each_cost() -> None:
    # A cost is one calculation for each pattern: removing one removes a term from each cost.
    shares = {(0,): 0.5, (1,): 0.3, (0, 1): 0.2}
    every = np.array([b for b in product(range(5), repeat=2) if sum(b) == 4])
    calculations = []
    for patterns in (3, 2):
        workload = Workload(dict(list(shares.items())[:patterns]), 10, 10, 10)
        calculations.append(len(every) * len(paper_cost.terms(2, workload, COSTS).compare_ns))
    assert calculations[0] - calculations[1] == configurations(2, 4)


@both_costs
@pytest.mark.parametrize("seed", range(20))
def test_selects_the_least_cost_of_all_configurations(cost: Cost, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, bits = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    workload, costs = random_workload(rng, columns), random_costs(rng)
    limits = rng.integers(0, bits + 1, size=columns).tolist()
    chosen = select(columns, bits, workload, costs, limits, cost)
    chosen_ns = cost(chosen, workload, costs)
    natural = tuple(range(columns))
    by_frequency = tuple(selection._order(cost.terms(columns, workload, costs)))
    order = by_frequency if cost.depends_on_order else natural
    assert cost.depends_on_order or chosen == Configuration(chosen.bits, natural)
    for every in product(*(range(limit + 1) for limit in limits)):
        if sum(every) <= bits:
            other_ns = cost(Configuration(every, order), workload, costs)
            assert chosen_ns <= other_ns * (1 + 1e-9)


def test_many_configurations_are_searched_by_branch_and_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = random_workload(np.random.default_rng(1), 5)
    exact = select(5, 8, workload, COSTS)
    monkeypatch.setattr(selection, "EXHAUSTIVE_MAX", 0)
    monkeypatch.setattr(selection, "exhaustive", None)
    searched = select(5, 8, workload, COSTS)
    assert dependent_cost(searched, workload, COSTS) == pytest.approx(
        dependent_cost(exact, workload, COSTS)
    )


def test_branch_and_bound_is_given_a_limit_on_its_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def capture(terms, bits, limits, order, effort_max):
        given.append(effort_max)
        return np.zeros(len(limits), dtype=np.int64)

    monkeypatch.setattr(selection, "branch_and_bound", capture)
    select(8, 16, Workload(dict.fromkeys(all_patterns(8), 1 / 256), 1000, 1e5, 1), COSTS)
    assert given == [selection.EFFORT_MAX]


def test_columns_that_eprune_leaves_out_get_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload({(0, 1): 1.0}, requests=100, arrivals=100, window=100)
    monkeypatch.setattr(selection, "eprune", lambda *_: [0])
    assert select(2, 6, workload, COSTS).bits == (6, 0)


def test_limits_leave_bits_over() -> None:
    workload = Workload({(0, 1): 1.0}, requests=100, arrivals=100, window=100)
    assert select(2, 10, workload, COSTS, limits=[3, 2]).bits == (3, 2)


def test_bits_that_save_nothing_are_not_given() -> None:
    free = UnitCosts(hash_ns=0, compare_ns=1)
    workload = Workload({(0,): 1.0}, requests=100, arrivals=100, window=100)
    assert select(2, 6, workload, free, limits=[2, 6], cost=paper_cost).bits == (2, 0)
    dear = UnitCosts(hash_ns=1e9, compare_ns=1)
    assert select(2, 6, workload, dear).bits == (0, 0)


def test_without_patterns_bits_are_spread_evenly_within_limits() -> None:
    nothing = Workload({}, requests=0, arrivals=10, window=10)
    assert select(3, 8, nothing, COSTS).bits == (3, 3, 2)
    assert select(3, 8, nothing, COSTS, limits=[1, 8, 8]).bits == (1, 4, 3)
    assert select(2, 8, Workload({(0,): 0.0}, 0, 1, 1), COSTS, limits=[1, 2]).bits == (1, 2)


def test_columns_searched_most_come_first_and_fewer_bits_first_among_equals() -> None:
    costs = UnitCosts(hash_ns=1, compare_ns=5, visit_ns=50)
    often = Workload({(0,): 0.1, (1,): 0.9}, requests=100, arrivals=1000, window=10)
    assert select(2, 8, often, costs).order == (1, 0)
    equal = Workload({(0,): 0.5, (1,): 0.5}, requests=100, arrivals=1000, window=10)
    assert select(2, 8, equal, costs, limits=[5, 2]).order == (1, 0)
    assert select(2, 8, equal, costs, limits=[2, 5]).order == (0, 1)


def test_a_column_of_few_bits_moves_to_the_front_past_several_others() -> None:
    costs = UnitCosts(hash_ns=1, compare_ns=5, visit_ns=50)
    shares = {(0,): 0.34, (1,): 0.335, (2,): 0.325}
    workload = Workload(shares, requests=100, arrivals=1000, window=100)
    chosen = select(3, 11, workload, costs, limits=[5, 5, 1])
    assert chosen.bits[2] == 1
    assert chosen.order[0] == 2


def test_refuses_limits_and_bits_that_make_no_sense() -> None:
    workload = Workload({(0,): 1.0}, 1, 1, 1)
    with pytest.raises(ValueError, match="one for each of 2 columns"):
        select(2, 4, workload, COSTS, limits=[4])
    with pytest.raises(ValueError, match="numbers from 0"):
        select(2, 4, workload, COSTS, limits=[4, -1])
    with pytest.raises(ValueError, match="bits must be 0 or more"):
        select(2, -1, workload, COSTS)


@pytest.mark.parametrize(("columns", "within_ms"), [(3, 20), (8, 200)])
def test_is_fast_enough_to_run_between_batches(columns: int, within_ms: float) -> None:
    # Usually under 1 ms and 30 ms; the best of three, and wide limits for busy machines.
    rng = np.random.default_rng(0)
    for _ in range(3):
        workload = random_workload(rng, columns, patterns=20)
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            select(columns, 16, workload, COSTS)
            taken.append(time.perf_counter() - started)
        assert min(taken) * 1000 < within_ms
