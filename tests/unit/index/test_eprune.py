"""EPrune leaves out columns that cannot pay, and none of the best configuration."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.index.cost import Cost, UnitCosts, Workload, dependent_cost, paper_cost
from eddyline.index.eprune import eprune
from eddyline.index.selection import exhaustive
from tests.unit.index.workloads import random_costs, random_workload


@pytest.mark.parametrize("cost", [paper_cost, dependent_cost], ids=["paper", "dependent"])
@pytest.mark.parametrize("seed", range(60))
def test_keeps_every_column_of_the_best_configuration(cost: Cost, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, bits = int(rng.integers(1, 5)), int(rng.integers(1, 9))
    workload, costs = random_workload(rng, columns), random_costs(rng)
    limits = rng.integers(0, bits + 1, size=columns)
    terms = cost.terms(columns, workload, costs)
    best = exhaustive(terms, bits, limits, range(columns))
    kept = eprune(columns, limits.tolist(), workload, costs)
    assert set(np.flatnonzero(best).tolist()) <= set(kept)


def test_compares_the_most_a_column_saves_with_its_hashes() -> None:
    # Saved with 1 bit: 10 requests * 0.5 * 20 rows / 2 = 50. Hashes: (10 * 0.5 + 20) * hash_ns.
    workload = Workload({(0,): 0.5, (1,): 0.5}, requests=10, arrivals=20, window=1)
    assert eprune(2, 1, workload, UnitCosts(hash_ns=2.0, compare_ns=1)) == [0, 1]
    assert eprune(2, 1, workload, UnitCosts(hash_ns=2.001, compare_ns=1)) == []
    # More bits save more: 100 * (1 - 1/4) = 75.
    assert eprune(2, [2, 1], workload, UnitCosts(hash_ns=2.9, compare_ns=1)) == [0]


def test_hashes_arriving_rows_once_whatever_the_number_of_patterns() -> None:
    # Equation 2 as printed would count the 1000 arrivals for each of the 4 patterns.
    shares = {(0,): 0.25, (0, 1): 0.25, (0, 2): 0.25, (0, 1, 2): 0.25}
    workload = Workload(shares, requests=4, arrivals=1000, window=1)
    assert 0 in eprune(3, 8, workload, UnitCosts(hash_ns=2, compare_ns=1))


def test_a_column_in_no_pattern_is_left_out_unless_hashing_is_free() -> None:
    workload = Workload({(0,): 1.0}, requests=100, arrivals=10, window=10)
    assert eprune(2, 4, workload, UnitCosts(hash_ns=0.1, compare_ns=1)) == [0]
    assert eprune(2, 4, workload, UnitCosts(hash_ns=0.0, compare_ns=1)) == [0, 1]
