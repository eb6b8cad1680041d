"""Branch and bound finds the least cost by its bounds, not by the luck of its start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

from eddyline.index import branch_and_bound as module
from eddyline.index.branch_and_bound import branch_and_bound, improve
from eddyline.index.cost import Cost, CostTerms, UnitCosts, Workload, dependent_cost, paper_cost
from eddyline.index.selection import exhaustive
from tests.unit.index.workloads import all_patterns, random_costs, random_workload

both_costs = pytest.mark.parametrize("cost", [paper_cost, dependent_cost], ids=["paper", "full"])


@pytest.fixture
def poor_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with the configuration without bits instead of one that was improved."""

    def no_bits(terms, start, bits, limits, order):
        nothing = np.zeros_like(start)
        return nothing, float(terms.of(nothing[None], order)[0])

    monkeypatch.setattr(module, "improve", no_bits)
    return


def check_against_exhaustive(cost: Cost, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, bits = int(rng.integers(1, 6)), int(rng.integers(1, 13))
    workload, costs = random_workload(rng, columns), random_costs(rng)
    limits = rng.integers(0, bits + 1, size=columns) if seed % 2 else np.full(columns, bits)
    order = rng.permutation(columns).tolist()
    terms = cost.terms(columns, workload, costs)
    chosen = branch_and_bound(terms, bits, limits, order)
    assert chosen.sum() <= bits
    assert (chosen <= limits).all()
    best = exhaustive(terms, bits, limits, order)
    least_ns = terms.of(best[None], order)[0]
    assert terms.of(chosen[None], order)[0] == pytest.approx(least_ns, rel=1e-9)


@both_costs
@pytest.mark.parametrize("seed", range(60))
def test_costs_what_exhaustive_search_does(cost: Cost, seed: int) -> None:
    check_against_exhaustive(cost, seed)


@both_costs
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.usefixtures("poor_start")
def test_costs_what_exhaustive_search_does_from_a_poor_start(cost: Cost, seed: int) -> None:
    check_against_exhaustive(cost, seed)


@both_costs
@pytest.mark.parametrize("seed", range(40))
def test_no_bound_is_above_the_least_cost_of_what_begins_so(cost: Cost, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, bits = 3, 5
    workload, costs = random_workload(rng, columns), random_costs(rng)
    terms = cost.terms(columns, workload, costs)
    order = range(columns)
    every = np.array([b for b in product(range(bits + 1), repeat=columns) if sum(b) <= bits])
    every_ns = terms.of(every, order)
    search = module._Search(terms, bits, np.full(columns, bits), order)
    search._best_ns = float("inf")
    prefixes = search.root()
    for column in range(columns - 1):
        prefixes = search._bounded(search._extend(prefixes, column), order[column + 1 :])
        for fixed, bound in zip(prefixes.bits[:, : column + 1], prefixes.bound, strict=True):
            begins_so = (every[:, : column + 1] == fixed).all(axis=1)
            least_ns = every_ns[begins_so].min()
            assert bound <= least_ns * (1 + 1e-9)
            if fixed.sum() == bits:
                assert bound == pytest.approx(least_ns), "without bits left the bound is exact"


def terms_of_eight_columns(patterns: int) -> CostTerms:
    rng = np.random.default_rng(5)
    every = all_patterns(8)
    chosen = [every[line] for line in rng.choice(len(every), patterns, replace=False)]
    shares = dict(zip(chosen, rng.dirichlet(np.ones(patterns)).tolist(), strict=True))
    costs = UnitCosts(hash_ns=10, compare_ns=5, visit_ns=40)
    return dependent_cost.terms(8, Workload(shares, 1000, 1e5, 1), costs)


def test_looks_at_a_small_part_of_all_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = terms_of_eight_columns(patterns=12)
    evaluated = 0
    original = CostTerms.of

    def counting(self, bits, order):
        nonlocal evaluated
        evaluated += len(bits)
        return original(self, bits, order)

    monkeypatch.setattr(CostTerms, "of", counting)
    branch_and_bound(terms, 16, np.full(8, 16), range(8))
    assert 0 < evaluated < comb(16 + 8, 8) / 100


@pytest.mark.usefixtures("poor_start")
def test_an_effort_limit_ends_the_search_with_the_best_so_far() -> None:
    terms = terms_of_eight_columns(patterns=12)
    limits = np.full(8, 16)
    assert branch_and_bound(terms, 16, limits, range(8), effort_max=0).sum() == 0
    costs_ns = [
        terms.of(branch_and_bound(terms, 16, limits, range(8), effort)[None], range(8))[0]
        for effort in (0, 500_000, float("inf"))
    ]
    assert costs_ns[0] > costs_ns[1] >= costs_ns[2]


def test_the_start_is_improved_by_moving_bits_and_whole_columns() -> None:
    # Hashing costs so much that all bits belong to one column; no single bit moves there.
    shares = {(0, 1): 0.9, (0,): 0.1}
    terms = paper_cost.terms(2, Workload(shares, 10, 100, 1), UnitCosts(hash_ns=1, compare_ns=1))
    bits, cost_ns = improve(terms, np.array([0, 6]), 6, np.array([6, 6]), range(2))
    assert bits.tolist() == [6, 0]
    assert cost_ns == terms.of(bits[None], range(2))[0]


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_cost_more_than_they_save_do_not_lower_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = dependent_cost.terms(3, random_workload(rng, 3), random_costs(rng))
    terms = replace(terms, column_ns=np.full(3, 1e15))
    search = module._Search(terms, 5, np.full(3, 5), range(3))
    search._best_ns = float("inf")
    prefixes = search._bounded(search._extend(search.root(), 0), [1, 2])
    assert len(prefixes.bound) == 6
    assert (prefixes.bound >= terms.fixed_ns).all()
