"""Random workloads and unit costs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from eddyline.index.cost import UnitCosts, Workload
from eddyline.index.index import Pattern


def all_patterns(columns: int) -> list[Pattern]:
    return [p for k in range(columns + 1) for p in combinations(range(columns), k)]


def random_workload(rng: np.random.Generator, columns: int, patterns: int = 31) -> Workload:
    every = all_patterns(columns)
    count = int(rng.integers(1, min(patterns, len(every)) + 1))
    chosen = rng.choice(len(every), count, replace=False)
    shares = rng.dirichlet(np.full(count, rng.choice([0.3, 1.0, 5.0])))
    frequencies = {every[line]: float(share) for line, share in zip(chosen, shares, strict=True)}
    return Workload(
        frequencies,
        requests=float(rng.choice([1, 50, 1000])),
        arrivals=float(rng.choice([1, 30, 1000])),
        window=float(rng.choice([1, 20, 300])),
        batch=int(rng.integers(1, 100)),
    )


def random_costs(rng: np.random.Generator) -> UnitCosts:
    return UnitCosts(
        hash_ns=float(rng.choice([0, 1, 30, 3000])),
        compare_ns=float(rng.choice([1, 5, 20])),
        visit_ns=float(rng.choice([0, 2, 50, 500])),
        call_ns=float(rng.choice([0, 20_000])),
    )
