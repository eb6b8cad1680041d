"""Examples 6 and 7 of the A-Greedy paper: where Independent and LocalSwaps end O(n) worse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.fabric import Router, RouterOptions
from eddyline.operators import ArrowPredicate, ColumnReader
from eddyline.ordering import AGreedy, Independent, LocalSwaps, Policy, Sweep

CHUNK = 2_000
CHUNKS = 120


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
