"""Costs, the greedy order and the optimum, against brute force and against the paper's bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.ordering.static import best_ordering, ordering_cost, reach_counts, static_greedy
from tests.unit.ordering.greedy_invariant import satisfies_greedy_invariant


def instances(filters_max: int = 6) -> st.SearchStrategy:
    return st.tuples(st.integers(2, filters_max), st.integers(0, 2**32))


def make(filters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.random((80, 1))
    mixed = np.where(rng.random((80, filters)) < rng.random(), shared, rng.random((80, filters)))
    return mixed < rng.random(filters), rng.uniform(0.1, 10.0, filters)


def cost_by_definition(order: tuple[int, ...], drops: np.ndarray, cost_us: np.ndarray) -> float:
    """Equation 1, tuple by tuple."""
    total = 0.0
    for row in drops:
        for filter_ in order:
            total += cost_us[filter_]
            if row[filter_]:
                break
    return total / len(drops)


@given(instances())
def test_ordering_cost_is_the_time_per_tuple(case) -> None:
    drops, cost_us = make(*case)
    order = tuple(np.random.default_rng(case[1]).permutation(drops.shape[1]).tolist())
    assert ordering_cost(order, drops, cost_us) == pytest.approx(
        cost_by_definition(order, drops, cost_us)
    )


@given(instances(5))
@settings(max_examples=40)
def test_best_ordering_is_the_best_of_all(case) -> None:
    drops, cost_us = make(*case)
    best = best_ordering(drops, cost_us)
    by_brute_force = min(
        ordering_cost(order, drops, cost_us)
        for order in itertools.permutations(range(drops.shape[1]))
    )
    assert ordering_cost(best, drops, cost_us) == pytest.approx(by_brute_force)


@given(instances(8))
@settings(max_examples=200)
def test_greedy_is_within_four_times_the_optimum(case) -> None:
    """Theorem 4.1."""
    drops, cost_us = make(*case)
    greedy = static_greedy(drops, cost_us)
    assert satisfies_greedy_invariant(greedy, drops, cost_us)
    optimum = ordering_cost(best_ordering(drops, cost_us), drops, cost_us)
    assert ordering_cost(greedy, drops, cost_us) <= 4 * optimum + 1e-9


def test_greedy_is_usually_optimal() -> None:
    optimal = 0
    for seed in range(100):
        drops, cost_us = make(6, seed)
        greedy_us = ordering_cost(static_greedy(drops, cost_us), drops, cost_us)
        optimal += greedy_us <= 1.01 * ordering_cost(best_ordering(drops, cost_us), drops, cost_us)
    assert optimal >= 85


def test_no_tuples_means_every_filter_is_paid_for() -> None:
    assert ordering_cost([0, 1], np.zeros((0, 2), dtype=bool), np.array([1.0, 2.0])) == 3.0
    assert reach_counts([0, 1], np.zeros((0, 2), dtype=bool)).tolist() == [0, 0]


def test_too_many_filters_for_exhaustive_search() -> None:
    with pytest.raises(ValueError, match="17 filters are too many"):
        best_ordering(np.zeros((1, 17), dtype=bool), np.ones(17))


# --- precedence constraints -----------------------------------------------------------------------

Precedence = dict[int, frozenset[int]]


def make_precedence(filters: int, seed: int) -> Precedence:
    """Return random constraints that some ordering satisfies: they follow a hidden permutation."""
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(filters).tolist()
    share = rng.random()
    return {
        filter_: frozenset(before for before in hidden[:position] if rng.random() < share)
        for position, filter_ in enumerate(hidden)
        if rng.random() < 0.8
    }


def permitted_orders(filters: int, precedence: Precedence) -> list[tuple[int, ...]]:
    return [
        order
        for order in itertools.permutations(range(filters))
        if all(
            precedence.get(filter_, frozenset()) <= set(order[:position])
            for position, filter_ in enumerate(order)
        )
    ]


@given(instances(6))
@settings(max_examples=60)
def test_best_ordering_is_the_best_of_all_that_are_permitted(case) -> None:
    drops, cost_us = make(*case)
    precedence = make_precedence(*case)
    permitted = permitted_orders(case[0], precedence)
    best = best_ordering(drops, cost_us, precedence)
    assert best in permitted
    by_brute_force = min(ordering_cost(order, drops, cost_us) for order in permitted)
    assert ordering_cost(best, drops, cost_us) == pytest.approx(by_brute_force)


@given(instances(6))
@settings(max_examples=60)
def test_greedy_takes_the_best_permitted_filter_at_every_position(case) -> None:
    """Of all permitted orderings, keep those with the best filter at position 0, then 1, ..."""
    drops, cost_us = make(*case)
    precedence = make_precedence(*case)
    left = permitted_orders(case[0], precedence)
    for position in range(case[0]):
        alive = ~drops[:, list(left[0][:position])].any(axis=1)
        rates = drops[alive].sum(axis=0) / cost_us
        best = max(rates[order[position]] for order in left)
        chosen = min(order[position] for order in left if rates[order[position]] == best)
        left = [order for order in left if order[position] == chosen]
    assert [static_greedy(drops, cost_us, precedence)] == left


def test_no_constraints_are_as_if_none_were_given() -> None:
    drops, cost_us = make(6, 1)
    for empty in ({}, {3: frozenset()}):
        assert static_greedy(drops, cost_us, empty) == static_greedy(drops, cost_us)
        assert best_ordering(drops, cost_us, empty) == best_ordering(drops, cost_us)


@pytest.mark.parametrize("find", [static_greedy, best_ordering])
@pytest.mark.parametrize(
    ("precedence", "message"),
    [
        ({0: {1}, 1: {2}, 2: {0}}, "no ordering is permitted: filters 0, 1, 2"),
        ({1: {1}}, "no ordering is permitted: filters 1"),
        ({0: {3}}, r"precedence names filters \[0, 3\]; there are 3"),
        ({-1: {0}}, r"precedence names filters \[-1, 0\]; there are 3"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(find, precedence, message) -> None:
    with pytest.raises(ValueError, match=message):
        find(np.zeros((4, 3), dtype=bool), np.ones(3), precedence)
