"""Filters for which one order is best, but hard to find: what learning costs in all, counted.

Eight filters depend on each other or are of all strengths, and columns tell little or nothing.
Classes cannot save much, so a router should take little more than the best static order, found
afterwards by exhaustive search. Every evaluation counts, those that only serve to learn included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.bench.harness import Bench
from eddyline.bench.mesh_data import Data
from eddyline.bench.mesh_routing import count_routed, make_router
from eddyline.ordering.static import best_ordering, ordering_cost

FILTERS = 8
ROWS = 100_000
COSTS_US = (1.0, 20.0, 200.0)
POLICIES = ("mesh", "auto", "agreedy")
SEEDS = 8


def hidden_factors(rng: np.random.Generator, rows: int) -> Data:
    """Each filter judges a mixture of two hidden factors and chance."""
    weights = rng.uniform(-0.9, 0.9, (2, FILTERS))
    judged = rng.standard_normal((rows, 2)) @ weights + rng.normal(0.0, 0.6, (rows, FILTERS))
    return _data(
        judged < rng.normal(0.4, 0.5, FILTERS), rng.random(rows), rng.integers(0, 40, rows)
    )


def repeated(rng: np.random.Generator, rows: int) -> Data:
    """Each filter repeats the answer of another one on half of the rows."""
    passed = rng.random((rows, FILTERS)) < rng.uniform(0.35, 0.9, FILTERS)
    for number in range(1, FILTERS):
        same = rng.random(rows) < 0.5
        passed[same, number] = passed[same, number - 1]
    return _data(passed[:, rng.permutation(FILTERS)], rng.integers(0, 12, rows), rng.random(rows))


def independent(rng: np.random.Generator, rows: int) -> Data:
    """Independent filters of all strengths."""
    passed = rng.random((rows, FILTERS)) < rng.beta(2, 1, FILTERS)
    return _data(passed, rng.integers(0, 7, rows), rng.integers(0, 100_000, rows))


def weak_classes(rng: np.random.Generator, rows: int) -> Data:
    """Three classes of rows that hardly differ: to tell them apart hardly pays."""
    kind = rng.integers(0, 3, rows)
    rates = rng.uniform(0.5, 0.8, FILTERS) + rng.normal(0.0, 0.03, (3, FILTERS))
    return _data(rng.random((rows, FILTERS)) < rates.clip(0.05, 0.98)[kind], kind, rng.random(rows))


def coarse_column(rng: np.random.Generator, rows: int) -> Data:
    """Half of the answers depend on one hidden factor, which a column shows coarsely."""
    factor = rng.random(rows)
    is_own = rng.random((rows, FILTERS)) < 0.5
    judged = np.where(is_own, rng.random((rows, FILTERS)), factor[:, None])
    shown = (4 * factor + rng.normal(0.0, 1.5, rows)).astype(int)
    return _data(judged < rng.uniform(0.4, 0.9, FILTERS), shown, rng.integers(0, 50_000, rows))


def _data(passed: BoolArray, *columns: np.ndarray) -> Data:
    return Data(passed, {f"c{n}": pa.array(values) for n, values in enumerate(columns)})


GENERATORS: dict[str, Callable[[np.random.Generator, int], Data]] = {
    "two hidden factors": hidden_factors,
    "filters that repeat others": repeated,
    "independent filters": independent,
    "classes that hardly pay": weak_classes,
    "a column that shows little": coarse_column,
}


def dependent(bench: Bench) -> None:
    """Compare the work of some policies with that of the best static order."""
    rows, seeds = (20_000, 2) if bench.quick else (ROWS, SEEDS)
    for name, make in GENERATORS.items():
        work: dict[tuple[float, str], list[float]] = {}
        with bench.progress(name, seeds) as advance:
            for seed in range(bench.seed, bench.seed + seeds):
                data = make(np.random.default_rng(seed), rows)
                for cost_us in COSTS_US:
                    for policy in POLICIES:
                        ratio = _work(data, policy, cost_us)
                        work.setdefault((cost_us, policy), []).append(ratio)
                advance()
        for (cost_us, policy), ratios in work.items():
            bench.add(
                f"{name}, {FILTERS} filters of {cost_us:g} us: work, {policy} / best static order",
                float(np.mean(ratios)),
                "x",
                f"mean of {seeds} inputs of {rows:,} rows, highest {max(ratios):.3f}",
            )


def _work(data: Data, policy: str, cost_us: float) -> float:
    """Return the evaluations of a policy, as a multiple of those of the best static order."""
    costs_us = np.full(FILTERS, cost_us)
    *_, last = count_routed(data, make_router(data, policy, costs_us=costs_us))
    drops = ~data.passed
    ones = np.ones(FILTERS)
    best = ordering_cost(best_ordering(drops, ones), drops, ones)
    return last.evaluations / (best * len(drops))
