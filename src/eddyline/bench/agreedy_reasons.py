"""Why some methods are not in the A-Greedy paper's order: what the reason names is changed.

Decision 35 gives the reasons. Here each experiment is repeated without what a reason blames, so
that the numbers beside those of the figure itself show whether it is one.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 9.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eddyline.bench.agreedy_runs import PAPER, MakeSubject, converge, follow
from eddyline.bench.harness import Bench
from eddyline.ordering import Policy

#: Profiling probability of Independent in the paper; the others have twice as much.
PROBABILITY = 0.005
WINDOWS = (1_000, 200, 100)
STAGE_MINIMA = (50, 150, 300, 500)
FAST_ROWS = 20_000
SLOW_ROWS = 3_000_000


def reasons(
    bench: Bench, scale: int, routed: Callable[[Callable[[], Policy]], MakeSubject]
) -> None:
    """Repeat the experiments whose order differs, without what is blamed for it.

    Parameters
    ----------
    bench, scale
        Where results go, and by how much there are fewer rows.
    routed
        Makes a subject of a policy.

    """

    def changed(method: str, **settings: float) -> MakeSubject:
        def make() -> Policy:
            policy = PAPER[method]()
            for name, value in settings.items():
                setattr(policy, name, value)
            return policy

        return routed(make)

    seeds = 3 if bench.quick else 5
    both = {
        method: changed(method, profile_probability=PROBABILITY)
        for method in ("A-Greedy", "Independent")
    }
    for selectivity in (0.1, 0.9):
        label = f"fig 10: selectivity {selectivity}, p={PROBABILITY} for both"
        rows, cost = 400_000 // scale, np.ones(8)
        converge(bench, label, [selectivity] * 8, 2, cost, both, rows, seeds)

    label = "fig 14: four filters of cost 100"
    sweeps = {
        f"Sweep, moves on {tuples} tuples or more": changed("Sweep", tuples_min=tuples)
        for tuples in STAGE_MINIMA
    }
    rows, cost = 400_000 // scale, np.array([1.0] * 4 + [100.0] * 4)
    converge(bench, label, [0.5] * 8, 2, cost, sweeps, rows, seeds)

    windows = {
        f"A-Greedy, a window of {tuples:,}": changed("A-Greedy", window_tuples=tuples)
        for tuples in WINDOWS
    }
    label = f"fig 19: a change every {FAST_ROWS:,} rows"
    phases, seeds = (3, 2) if bench.quick else (10, 6)
    cost = np.array([1.0] * 4 + [10.0] * 4)
    follow(bench, label, {**windows, "Sweep": changed("Sweep")}, cost, phases, FAST_ROWS, seeds)

    slow = {method: changed(method) for method in ("A-Greedy", "Sweep")}
    rows = SLOW_ROWS // scale**2
    for expensive in (10.0, 1.0):
        label = f"figs 19, 21: a change every {rows:,} rows, four filters of cost {expensive:.0f}"
        cost = np.array([1.0] * 4 + [expensive] * 4)
        follow(bench, label, slow, cost, 2, rows, seeds=2)
