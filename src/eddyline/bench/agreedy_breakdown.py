"""Where the time of the A-Greedy experiments goes: table 2, figures 13 and 15.

Evaluations that serve only to learn are counted as well as timed: their share of the work is exact
and does not depend on the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.bench.harness import Bench
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.ordering import AGreedy, Policy
from eddyline.ordering.matrix_view import MatrixView
from eddyline.testing.synthetic import draw_answers, make_filters, to_columns

BATCH_ROWS = 10_000

# --- figures 13 and 15: all methods ---------------------------------------------------------------


def route_all(policy: Policy, answers: BoolArray, probes: Sequence[int], seed: int) -> Router:
    """Route rows with these answers through filters of so many probes a row."""
    operators, readers = make_filters(probes)
    options = RouterOptions(
        budget=None, chunk_rows=BATCH_ROWS, costs_us=tuple(map(float, probes)), seed=seed
    )
    router = Router(operators, readers, policy, options=options)
    for begin in range(0, len(answers), BATCH_ROWS):
        part = answers[begin : begin + BATCH_ROWS]
        router.route(to_columns(part), len(part))
    return router


def break_down(
    bench: Bench,
    label: str,
    policies: Mapping[str, Callable[[], Policy]],
    probes: Sequence[int],
    rows: int,
    seeds: int,
    paper: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Note where the time of each method goes; return the counted share of the work to learn.

    Parameters
    ----------
    bench, label
        Where the results go, and what they are called.
    policies
        The methods by name.
    probes
        Of each filter, for a row.
    rows, seeds
        Rows of each run, and runs.
    paper
        Share of the time that is overhead in the paper, in percent, by method.

    """
    counted: dict[str, float] = {}
    cost = np.array(probes, dtype=float)
    with bench.progress(label, len(policies) * seeds) as advance:
        for name, make in policies.items():
            parts: list[tuple[float, float, float]] = []
            shares: list[float] = []
            for seed in range(bench.seed, bench.seed + seeds):
                rng = np.random.default_rng(seed)
                answers = draw_answers(rng, rows, [0.5] * len(probes), 2)
                totals = route_all(make(), answers, probes, seed).totals
                busy_us = float(totals.busy_us.sum())
                parts.append((busy_us, totals.profiling_us, totals.deciding_us))
                regular, profiled = float(totals.seen @ cost), float(totals.profiled @ cost)
                shares.append(100 * profiled / (regular + profiled))
                advance()
            counted[name] = statistics.median(shares)
            percent = [100 * statistics.median(p[i] / sum(p) for p in parts) for i in range(3)]
            bench.add(
                f"{label}: time to learn, {name}",
                percent[1] + percent[2],
                "% of time",
                f"tuple processing {percent[0]:.1f}, profile tuples {percent[1]:.1f}, window, view "
                f"and violations {percent[2]:.1f}; counted in probes: {counted[name]:.1f} % to "
                f"learn",
                (paper or {}).get(name),
            )
    return counted


# --- table 2: A-Greedy part by part ---------------------------------------------------------------


class TimedAGreedy(AGreedy):
    """A-Greedy with a clock on each part of its upkeep."""

    def reset(self) -> None:
        """Start with an empty window, and all clocks at zero."""
        super().reset()
        self.spent: dict[str, float] = {"window": 0.0, "view": 0.0, "violations": 0.0}
        self.window.insert = self._timed("window", self.window.insert)  # type: ignore[method-assign]
        self._watch(self.view)

    def _watch(self, view: MatrixView) -> MatrixView:
        copy = view.copy
        for part, method in (
            ("view", "insert"),
            ("view", "delete"),
            ("violations", "violation"),
            ("violations", "correct"),
        ):
            setattr(view, method, self._timed(part, getattr(view, method)))
        view.copy = lambda: self._watch(copy())  # type: ignore[method-assign]
        return view

    def _timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.spent[part] += time.perf_counter() - began

        return call


#: By number of filters and profiling probability, the shares of the parts in the paper.
TABLE_2 = {
    (3, 0.01): (98.77, 0.88, 0.20, 0.15, 0.0),
    (3, 0.05): (94.17, 4.17, 0.93, 0.73, 0.0),
    (8, 0.01): (96.62, 2.92, 0.20, 0.22, 0.04),
    (8, 0.05): (84.77, 13.34, 0.91, 0.98, 0.0),
}
TABLE_2_PARTS = (
    "tuple processing",
    "profile tuples",
    "profile window",
    "view update",
    "view violations",
)


def add_table_2(
    bench: Bench,
    filters: int,
    probability: float,
    policy: TimedAGreedy,
    processing_us: float,
    profiling_us: float,
) -> None:
    """Note the shares of the parts of the run time beside those of the paper."""
    upkeep = [policy.spent[part] * 1e6 for part in ("window", "view", "violations")]
    parts = [processing_us, profiling_us, *upkeep]
    paper = TABLE_2[filters, probability]
    for label, spent_us, reported in zip(TABLE_2_PARTS, parts, paper, strict=True):
        bench.add(
            f"table 2: n={filters}, p={probability}: {label}",
            100 * spent_us / sum(parts),
            "% of time",
            None,
            reported,
        )


def run_table_2(bench: Bench, filters: int, probability: float, rows: int, probes: int) -> None:
    """Time the parts of A-Greedy with filters of so many probes each."""
    rng = np.random.default_rng(bench.seed)
    answers = draw_answers(rng, rows, [0.5] * filters, 2)
    policy = TimedAGreedy.paper(probability)
    router = route_all(policy, answers, [probes] * filters, bench.seed)
    tactic, totals = router.segments[0].tactic, router.totals
    assert isinstance(tactic, SingleOrder)
    assert isinstance(tactic.policy, TimedAGreedy)
    busy_us = float(totals.busy_us.sum())
    add_table_2(bench, filters, probability, tactic.policy, busy_us, totals.profiling_us)
