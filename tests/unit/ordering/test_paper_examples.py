"""The examples of the A-Greedy paper: the running one (2 to 5), and where others end O(n) worse."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.fabric import Router, RouterOptions
from eddyline.operators import ArrowPredicate, ColumnReader
from eddyline.ordering import AGreedy, Evidence, Independent, LocalSwaps, Policy, Sweep
from eddyline.ordering.static import ordering_cost
from tests.unit.ordering.greedy_invariant import matrix_from_scratch, satisfies_greedy_invariant

CHUNK = 2_000
CHUNKS = 120

# --- examples 2 to 5 ------------------------------------------------------------------------------

# Like figure 2 of the paper: with these sets and rows, every number of its text comes out.
SETS = [{1, 2, 3, 5, 6}, {1, 2, 5, 6, 9}, {1, 3, 6, 8, 9}, {1, 4, 5, 9}]
STREAM = [1, 2, 1, 4, 5, 5, 8, 9]
F1, F2, F3, F4 = range(4)


def drops_of(rows: list[int]) -> np.ndarray:
    return np.array([[row not in values for values in SETS] for row in rows])


def dropped(rows: list[int]) -> np.ndarray:
    drops = drops_of(rows)
    return drops[drops.any(axis=1)]


def running_policy() -> AGreedy:
    """Return A-Greedy in the order of example 4, with a window of six tuples."""
    policy = AGreedy(1.0, 6, 1.0, 1, gain_min=0.0, watches_drift=False, prior_drops=0.0)
    policy.start(4, [F3, F1, F2, F4])
    return policy


def learn(policy: AGreedy, rows: list[int]) -> object:
    seen = np.full(4, len(rows))
    return policy.learn(
        Evidence(len(rows), policy.order, seen, seen, np.ones(4), tuples=dropped(rows))
    )


def test_example_2_probes_of_three_orders() -> None:
    def probes(order: tuple[int, ...]) -> float:
        return len(STREAM) * ordering_cost(order, drops_of(STREAM), np.ones(4))

    assert probes((F1, F2, F3, F4)) == 20
    assert probes((F3, F2, F4, F1)) == 18
    assert probes((F3, F1, F2, F4)) == 16
    assert min(map(probes, itertools.permutations(range(4)))) == 16


def test_example_3_a_router_profiles_every_dropped_row() -> None:
    operators = [
        ArrowPredicate(f"F{i}", (0,), lambda v, own=own: pc.is_in(v, pa.array(sorted(own))))
        for i, own in enumerate(SETS)
    ]
    policy = running_policy()
    options = RouterOptions(budget=None, costs_us=(1.0,) * 4, seed=0)
    router = Router(operators, [ColumnReader("value")], policy, options=options)
    router.route([pa.array(STREAM)], len(STREAM))
    window = router.segments[0].tactic.policy.profile()
    assert window.tolist() == dropped(STREAM).tolist()
    assert len(window) == 6


def test_example_4_the_matrix_view_satisfies_the_invariant() -> None:
    policy = running_policy()
    assert learn(policy, STREAM) is None
    assert policy.view.matrix.tolist() == [[4, 3, 2, 2], [0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert satisfies_greedy_invariant(policy.order, dropped(STREAM), np.ones(4))


def test_example_5_two_more_rows_violate_it_at_the_first_position() -> None:
    policy = running_policy()
    learn(policy, STREAM)
    change = learn(policy, [3, 6])
    window = dropped([*STREAM, 3, 6])[2:]  # the earliest two have expired
    assert policy.profile().tolist() == window.tolist()
    assert change.numbers["position"] == 0
    assert policy.order == (F4, F3, F1, F2)
    assert policy.view.matrix.tolist() == matrix_from_scratch(policy.order, window).tolist()


# --- examples 6 and 7 -----------------------------------------------------------------------------


def run_sets(policy: Policy, sets: list[set[int]], seed: int = 0, changed=None) -> float:
    """Run filters that each contain a set of values; return evaluations a row at the end."""
    rng = np.random.default_rng(seed)
    current = [pa.array(sorted(values)) for values in sets]

    def contains(number: int):
        return lambda values: pc.is_in(values, value_set=current[number])

    operators = [ArrowPredicate(f"F{i}", (0,), contains(i)) for i in range(len(sets))]
    router = Router(
        operators,
        [ColumnReader("value")],
        policy,
        options=RouterOptions(
            budget=None, chunk_rows=CHUNK, costs_us=(1.0,) * len(sets), seed=seed
        ),
    )
    evaluations = []
    for chunk in range(CHUNKS):
        if changed is not None and chunk == CHUNKS // 2:
            for number, values in changed.items():
                current[number] = pa.array(sorted(values))
        before = router.totals.seen.sum()
        router.route([pa.array(rng.integers(1, 101, CHUNK))], CHUNK)
        evaluations.append((router.totals.seen.sum() - before) / CHUNK)
    return float(np.mean(evaluations[-20:]))


@pytest.mark.parametrize("filters", [4, 8, 12])
def test_example_6_independent_ends_in_an_order_that_grows_with_n(filters: int) -> None:
    sets = [set(range(1, 50))] * (filters - 1) + [set(range(50, 101))]
    # The drop rates are 51 % and 49 %: a window that can tell them apart.
    sharp = Independent(0.5, window_tuples=20_000, alpha=0.99, tuples_min=10_000)
    independent = run_sets(sharp, sets)
    greedy = run_sets(AGreedy.paper(profile_probability=0.1), sets)
    assert independent == pytest.approx(0.49 * filters + 0.51, rel=0.05)
    assert greedy == pytest.approx(1.49, rel=0.05)


def test_example_6_sweep_reaches_the_order_of_agreedy() -> None:
    sets = [set(range(1, 50))] * 5 + [set(range(50, 101))]
    assert run_sets(Sweep(profile_probability=0.2), sets) == pytest.approx(1.49, rel=0.05)


@pytest.mark.parametrize("filters", [5, 10])
def test_example_7_local_swaps_stays_in_a_local_optimum(filters: int) -> None:
    everything = set(range(1, 101))
    step = 100 // filters
    sets = [everything - set(range(i * step + 1, (i + 1) * step + 1)) for i in range(filters)]
    # The last filter now lets through only what the one before it drops.
    changed = {filters - 1: everything - sets[filters - 2]}
    # All filters are alike before the change: no swaps by chance.
    calm = LocalSwaps(0.2, window_tuples=5_000, alpha=0.7, tuples_min=1_000)
    local = run_sets(calm, sets, changed=changed)
    greedy = run_sets(AGreedy.paper(profile_probability=0.2), sets, changed=changed)
    assert local == pytest.approx((filters + 1) / 2, rel=0.1)
    assert greedy == pytest.approx(1 + 1 / filters, rel=0.05)
