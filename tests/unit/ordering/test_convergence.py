"""Theorem 4.1 on the adaptive policies: once rows are stable, the order is within 4/alpha."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eddyline.fabric import Router, RouterOptions
from eddyline.ordering import AGreedy, Evidence, Policy, Sweep
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing import make_filters, to_columns
from tests.unit.ordering.greedy_invariant import satisfies_greedy_invariant

TUPLES = 200


def instance(filters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tuples, each dropped by somebody, and costs between 1 and 100."""
    rng = np.random.default_rng(seed)
    shared = rng.random((TUPLES, 1))
    follows = rng.random((TUPLES, filters)) < rng.random()
    drops = np.where(follows, shared, rng.random((TUPLES, filters))) < rng.random(filters) ** 2
    drops[~drops.any(axis=1), rng.integers(filters)] = True
    return drops, 10.0 ** rng.uniform(0, 2, filters)


def worst_order(drops: np.ndarray, cost_us: np.ndarray) -> tuple[int, ...]:
    orders = itertools.permutations(range(drops.shape[1]))
    return max(orders, key=lambda order: ordering_cost(order, drops, cost_us))


def settle(policy: Policy, drops: np.ndarray, cost_us: np.ndarray) -> None:
    """Show the policy the same tuples until it has left the order alone for a whole sweep."""
    seen, calm = np.full(policy.filters, TUPLES), 0
    for _ in range(5_000):
        change = policy.learn(Evidence(TUPLES, policy.order, seen, seen, cost_us, drops))
        calm = 0 if change is not None else calm + 1
        if calm > policy.filters:
            return
    raise AssertionError(f"{policy.name} changes the order for ever")


def paper_settings(policy: type[AGreedy | Sweep], alpha: float) -> AGreedy | Sweep:
    """Return a policy as in the paper, with a window or stage that holds exactly the tuples."""
    made = policy.paper(profile_probability=1.0)
    made.alpha, made.window_tuples, made.tuples_min = alpha, TUPLES, TUPLES
    return made


@pytest.mark.parametrize("policy", [AGreedy, Sweep], ids=lambda policy: policy.name)
@given(st.integers(3, 6), st.integers(0, 2**32), st.sampled_from([1.0, 0.9, 0.5]))
@settings(max_examples=60)
def test_from_an_order_beyond_the_bound_to_one_within_it(policy, filters, seed, alpha) -> None:
    drops, cost_us = instance(filters, seed)
    optimum_us = ordering_cost(best_ordering(drops, cost_us), drops, cost_us)
    bound_us = 4 / alpha * optimum_us
    worst = worst_order(drops, cost_us)
    assume(ordering_cost(worst, drops, cost_us) > bound_us)
    adaptive = paper_settings(policy, alpha)
    adaptive.start(filters, worst)
    settle(adaptive, drops, cost_us)
    assert ordering_cost(adaptive.order, drops, cost_us) <= bound_us + 1e-9
    if alpha == 1.0:
        assert satisfies_greedy_invariant(adaptive.order, drops, cost_us)


@pytest.mark.parametrize("make", [AGreedy.paper, Sweep.paper, AGreedy], ids=["A", "Sweep", "own"])
@pytest.mark.parametrize("seed", range(4))
def test_in_a_router_that_profiles_some_rows_only(make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drops, cost_us = instance(5, seed)
    optimum_us = ordering_cost(best_ordering(drops, cost_us), drops, cost_us)
    worst = list(worst_order(drops, cost_us))  # the filters are written in this order
    drops, cost_us = drops[:, worst], cost_us[worst]
    policy = make()
    bound_us = 4 / policy.alpha * optimum_us
    assert ordering_cost(range(5), drops, cost_us) > bound_us
    filters, readers = make_filters([0] * 5)
    options = RouterOptions(chunk_rows=2_000, costs_us=tuple(cost_us.tolist()), seed=seed)
    router = Router(filters, readers, policy, options=options)
    for _ in range(100):
        router.route(to_columns(~drops[rng.integers(len(drops), size=2_000)]), 2_000)
    assert ordering_cost(router.segments[0].order, drops, cost_us) <= bound_us


# --- how near to the bound ------------------------------------------------------------------------


def tight_instance(alpha: float, tallest: int = 1_000) -> tuple[np.ndarray, list[int], list[int]]:
    """Return drops, an order that satisfies the invariant though it is bad, and a good one.

    The good filters drop disjoint columns of tuples, the i-th of them tallest / i**2. Each of the
    bad ones drops a little more than alpha times the tallest column that is left, from the top of
    all columns. With ever more columns the costs tend to a ratio of 4 / alpha.
    """
    heights = np.array([tallest // i**2 for i in range(1, int(tallest**0.5) + 1)])
    column = np.repeat(np.arange(len(heights)), heights)
    level = np.concatenate([np.arange(height) for height in heights])
    left, bad = np.ones(len(column), dtype=bool), []
    while left.any():
        wanted = int(alpha * np.bincount(column[left]).max()) + 1
        by_level = np.flatnonzero(left)[np.argsort(-level[left], kind="stable")]
        taken = np.zeros(len(column), dtype=bool)
        taken[by_level[:wanted]] = True
        bad.append(taken)
        left &= ~taken
    good = np.eye(len(heights), dtype=bool)[column].T
    drops = np.concatenate([bad, good]).T
    numbers = list(range(drops.shape[1]))
    return drops, numbers, [*numbers[len(bad) :], *numbers[: len(bad)]]


@pytest.mark.parametrize(("alpha", "ratio_min"), [(1.0, 1.8), (0.9, 2.2), (0.5, 3.9)])
def test_an_order_near_the_bound_is_kept_and_is_within_it(alpha: float, ratio_min: float) -> None:
    drops, bad, good = tight_instance(alpha)
    cost_us = np.ones(len(bad))
    good_us = ordering_cost(good, drops, cost_us)  # no less than the optimum
    policy = AGreedy.paper(profile_probability=1.0)
    policy.alpha, policy.window_tuples, policy.tuples_min = alpha, len(drops), len(drops)
    policy.start(len(bad), bad)
    seen = np.full(len(bad), len(drops))
    for _ in range(3):
        evidence = Evidence(len(drops), policy.order, seen, seen, cost_us, drops)
        assert policy.learn(evidence) is None
    kept_us = ordering_cost(policy.order, drops, cost_us)
    assert ratio_min * good_us < kept_us <= 4 / alpha * good_us


def test_an_order_that_a_smaller_alpha_keeps_is_corrected_by_a_larger_one() -> None:
    drops, bad, _ = tight_instance(0.5)
    cost_us, seen = np.ones(len(bad)), np.full(len(bad), len(drops))
    policy = AGreedy.paper(profile_probability=1.0)
    policy.alpha, policy.window_tuples, policy.tuples_min = 1.0, len(drops), len(drops)
    policy.start(len(bad), bad)
    before_us = ordering_cost(bad, drops, cost_us)
    assert policy.learn(Evidence(len(drops), policy.order, seen, seen, cost_us, drops)) is not None
    assert ordering_cost(policy.order, drops, cost_us) < before_us / 2
