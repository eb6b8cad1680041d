"""Equation 1 and its extension, against the formulas written out term by term."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.index.configuration import Configuration
from eddyline.index.cost import UnitCosts, Workload, dependent_cost, paper_cost
from tests.unit.index.workloads import random_costs, random_workload


def random_configuration(rng: np.random.Generator, columns: int) -> Configuration:
    bits = tuple(rng.integers(0, 5, size=columns).tolist())
    return Configuration(bits, tuple(rng.permutation(columns).tolist()))


@pytest.mark.parametrize("seed", range(30))
def test_both_costs_are_their_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 6))
    workload, costs = random_workload(rng, columns), random_costs(rng)
    configuration = random_configuration(rng, columns)
    indexed = {column for column, bits in enumerate(configuration.bits) if bits}
    paper = workload.arrivals * len(indexed) * costs.hash_ns
    full = paper + workload.requests / workload.batch * costs.call_ns
    for pattern, share in workload.frequencies.items():
        hashes = len(indexed & set(pattern)) * costs.hash_ns
        scanned = workload.arrivals * workload.window / 2 ** configuration.given(pattern)
        compares = scanned * share * costs.compare_ns
        ranges = min(configuration.ranges(pattern), workload.arrivals * workload.window)
        paper += workload.requests * (hashes + compares)
        full += workload.requests * (share * (hashes + ranges * costs.visit_ns) + compares)
    assert paper_cost(configuration, workload, costs) == pytest.approx(paper)
    assert dependent_cost(configuration, workload, costs) == pytest.approx(full)


@pytest.mark.parametrize("seed", range(20))
def test_wild_bits_of_many_configurations_are_those_of_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workload = random_workload(rng, 5)
    order = rng.permutation(5).tolist()
    bits = rng.integers(0, 4, size=(8, 5))
    wild = dependent_cost.terms(5, workload, UnitCosts(1, 1)).wild(bits, order)
    for line, row in enumerate(bits.tolist()):
        configuration = Configuration(tuple(row), tuple(order))
        assert wild[line].tolist() == [configuration.wild(p) for p in workload.frequencies]


def test_patterns_that_do_not_occur_cost_nothing() -> None:
    costs = UnitCosts(hash_ns=1, compare_ns=1, visit_ns=1)
    without = Workload({(0,): 1.0}, 10, 10, 10)
    with_zero = Workload({(0,): 1.0, (1,): 0.0}, 10, 10, 10)
    for cost in (paper_cost, dependent_cost):
        configuration = Configuration((2, 2))
        assert cost(configuration, without, costs) == cost(configuration, with_zero, costs)


@pytest.mark.parametrize("seed", range(20))
def test_lemma_2_removing_or_merging_a_rare_pattern_moves_no_cost_by_more_than_its_share(
    seed: int,
) -> None:
    # The lemma is about comparisons, so hashing is free here.
    rng = np.random.default_rng(seed)
    costs = UnitCosts(hash_ns=0, compare_ns=3)
    workload = random_workload(rng, 4)
    threshold = 0.1
    bound = workload.requests * workload.rows * threshold * costs.compare_ns
    for pattern, share in workload.frequencies.items():
        if share >= threshold:
            continue
        removed = dict(workload.frequencies)
        del removed[pattern]
        merged = dict(removed)
        merged[pattern[1:]] = merged.get(pattern[1:], 0) + share
        for _ in range(10):
            configuration = random_configuration(rng, 4)
            before = paper_cost(configuration, workload, costs)
            for frequencies in (removed, merged):
                fewer = Workload(frequencies, workload.requests, workload.arrivals, workload.window)
                change = paper_cost(configuration, fewer, costs) - before
                assert abs(change) <= bound * (1 + 1e-9)
