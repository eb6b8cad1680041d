"""`eddyline bench agreedy`: the experiments of the A-Greedy paper (its section 9).

Synthetic filters with the paper's correlation model, all policies, the offline optimum, and the
heuristics of other systems. Nearly everything is counted: evaluations a row are exact and do not
depend on the machine. Only the split of the run time (table 2) is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.bench.elsewhere import ELSEWHERE
from eddyline.bench.harness import Bench
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.ordering import AGreedy, AsWritten, Independent, LocalSwaps, Lottery, Policy, Sweep
from eddyline.ordering.matrix_view import MatrixView
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing.synthetic import draw_answers, make_filters, to_columns

CHUNK_ROWS = 2_000
ARROW_ROWS = 10_000  # of a batch that Spark hands over
CLOSE_ENOUGH = 1.1
SELECTIVITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

PAPER: dict[str, Callable[[], Policy]] = {
    "A-Greedy": AGreedy.paper,
    "Sweep": Sweep,
    "Independent": Independent,
    "LocalSwaps": LocalSwaps,
}
OTHERS: dict[str, Callable[[], Policy]] = {
    "lottery": Lottery,
    "as written": AsWritten,
    "adjacent trials (DuckDB)": ELSEWHERE["adjacent_trials"],
    "cost per drop (Velox, Trino)": ELSEWHERE["cost_per_drop"],
    "momentum (arXiv 1905.01349)": ELSEWHERE["momentum"],
}
OWN = "A-Greedy, Eddyline's defaults"


@dataclass
class Run:
    """What a run of one policy did, a row, over the rows that count."""

    regular: float
    profiled: float
    rows_to_adapt: float


def run(bench: Bench) -> None:
    """Run all experiments and note their numbers."""
    scale = 5 if bench.quick else 1
    bench.run_parts(
        {
            "filters": lambda: _number_of_filters(bench, scale),
            "selectivity": lambda: _selectivity(bench, scale),
            "correlation": lambda: _correlation(bench, scale),
            "costs": lambda: _filter_costs(bench, scale),
            "adaptivity": lambda: _adaptivity(bench, scale),
            "change": lambda: _rate_of_change(bench, scale),
            "overhead": lambda: _overhead(bench, scale),
        }
    )


def _policies(everyone: bool = True) -> dict[str, tuple[Callable[[], Policy], float | None]]:
    """Return each policy with its budget: the paper's have none, Eddyline's defaults have."""
    policies: dict[str, tuple[Callable[[], Policy], float | None]] = {
        name: (make, None) for name, make in PAPER.items()
    }
    policies[OWN] = (AGreedy, RouterOptions().budget)
    if everyone:
        policies.update({name: (make, None) for name, make in OTHERS.items()})
    return policies


def _simulate(
    make: Callable[[], Policy],
    budget: float | None,
    phases: Sequence[BoolArray],
    cost: np.ndarray,
    seed: int,
    counted_from: float = 0.5,
) -> Run:
    """Run a policy over phases; count from a share of the last phase on; time the last change.

    With a budget, all is as by default: batches of Spark's size, cut as the router cuts them.
    """
    filters, readers = make_filters([0] * len(cost))
    chunk_rows = CHUNK_ROWS if budget is None else RouterOptions().chunk_rows
    options = RouterOptions(
        budget=budget, chunk_rows=chunk_rows, costs_us=tuple(cost.tolist()), seed=seed
    )
    router = Router(filters, readers, make(), options=options)
    regular = profiled = rows = 0.0
    rows_to_adapt = float("nan")
    for number, answers in enumerate(phases):
        is_last = number == len(phases) - 1
        drops = ~answers[:50_000]
        good_enough = CLOSE_ENOUGH * ordering_cost(best_ordering(drops, cost), drops, cost)
        end = 0
        while end < len(answers):
            begin = end
            left_of_batch = ARROW_ROWS - begin % ARROW_ROWS
            end += CHUNK_ROWS if budget is None else min(router._rows_next, left_of_batch)
            part = answers[begin:end]
            before = router.totals.seen.copy(), router.totals.profiled.copy()
            router.route(to_columns(part), len(part))
            if is_last and np.isnan(rows_to_adapt):
                order = router.segments[0].order
                if ordering_cost(order, drops, cost) <= good_enough:
                    rows_to_adapt = begin + len(part)
            if counted_from == 0 or (is_last and begin >= counted_from * len(answers)):
                regular += float((router.totals.seen - before[0]) @ cost)
                profiled += float((router.totals.profiled - before[1]) @ cost)
                rows += len(part)
    if np.isnan(rows_to_adapt):
        rows_to_adapt = float(len(phases[-1]))
    return Run(regular / rows, profiled / rows, rows_to_adapt)


def _optimum(answers: BoolArray, cost: np.ndarray) -> float:
    return ordering_cost(best_ordering(~answers, cost), ~answers, cost)


def _converge(
    bench: Bench,
    label: str,
    selectivities: Sequence[float],
    correlation: int,
    cost: np.ndarray,
    scale: int,
    everyone: bool,
) -> None:
    """Note evaluations against the optimum after convergence, median of several seeds."""
    policies = _policies(everyone)
    ratios: dict[str, list[float]] = {name: [] for name in policies}
    with_profiling: dict[str, list[float]] = {name: [] for name in policies}
    for seed in range(bench.seed, bench.seed + (3 if bench.quick else 5)):
        rng = np.random.default_rng(seed)
        answers = draw_answers(
            rng, 400_000 // scale, rng.permutation(list(selectivities)).tolist(), correlation
        )
        optimum = _optimum(answers[len(answers) // 2 :], cost)
        for name, (make, budget) in policies.items():
            done = _simulate(make, budget, [answers], cost, seed)
            ratios[name].append(done.regular / optimum)
            with_profiling[name].append((done.regular + done.profiled) / optimum)
    for name in policies:
        bench.add(
            f"{label}: evaluations, {name} / optimum",
            statistics.median(ratios[name]),
            "x",
            f"offline optimum; with profiling {statistics.median(with_profiling[name]):.3f}",
        )


def _number_of_filters(bench: Bench, scale: int) -> None:
    for filters in (2, 4, 6, 8, 10):
        cost = np.ones(filters)
        _converge(bench, f"fig 9, 12: n={filters}", [0.5] * filters, 2, cost, scale, filters == 8)


def _selectivity(bench: Bench, scale: int) -> None:
    for selectivity in (0.1, 0.3, 0.7, 0.9):
        label = f"fig 10: selectivity {selectivity}"
        _converge(bench, label, [selectivity] * 8, 2, np.ones(8), scale, False)


def _correlation(bench: Bench, scale: int) -> None:
    for correlation in (1, 2, 3, 4, 8):
        label = f"fig 11: correlation factor {correlation}"
        _converge(bench, label, [0.5] * 8, correlation, np.ones(8), scale, correlation == 4)
    label = "fig 11, unequal selectivities: correlation factor 4"
    _converge(bench, label, SELECTIVITIES, 4, np.ones(8), scale, True)


def _filter_costs(bench: Bench, scale: int) -> None:
    for expensive in (1, 10, 50, 100):
        cost = np.array([1.0] * 4 + [float(expensive)] * 4)
        label = f"fig 14: four filters of cost {expensive}"
        _converge(bench, label, [0.5] * 8, 2, cost, scale, False)


def _permuted_phases(
    rng: np.random.Generator, phases: int, rows: int, correlation: int = 2
) -> list[BoolArray]:
    return [
        draw_answers(rng, rows, rng.permutation(SELECTIVITIES).tolist(), correlation)
        for _ in range(phases)
    ]


def _adaptivity(bench: Bench, scale: int) -> None:
    """Permute the selectivities once; count rows until the order in use is good again."""
    rows = 300_000 // (2 if scale > 1 else 1)
    taken: dict[str, list[float]] = {name: [] for name in _policies()}
    for seed in range(bench.seed, bench.seed + (5 if bench.quick else 15)):
        phases = _permuted_phases(np.random.default_rng(seed), 2, rows)
        for name, (make, budget) in _policies().items():
            done = _simulate(make, budget, phases, np.ones(8), seed)
            taken[name].append(done.rows_to_adapt)
    for name, values in taken.items():
        never = sum(value >= rows for value in values)
        bench.add(
            f"figs 16-18: rows until the new best order is in use, {name}",
            statistics.median(values),
            "rows",
            f"median of {len(values)} changes; longest {max(values):,.0f}"
            + (f"; {never} never within {rows:,} rows" if never else ""),
        )


def _rate_of_change(bench: Bench, scale: int) -> None:
    """Permute the selectivities again and again; compare the whole work, profiling included."""
    for label, periods, costs in (
        ("fig 19", (20_000, 100_000, 1_000_000), (10,)),
        ("fig 20", (100_000,), (1, 50, 100)),
        ("fig 21", (1_000_000,), (1, 50, 100)),
    )[: 1 if bench.quick else 3]:
        for period in periods:
            for expensive in costs:
                cost = np.array([1.0] * 4 + [float(expensive)] * 4)
                rng = np.random.default_rng(bench.seed)
                rows = period // (scale if period > 100_000 else 1)
                changes = max(2, min(10 if scale == 1 else 3, 1_000_000 // rows))
                phases = _permuted_phases(rng, changes, rows)
                optimum = float(np.mean([_optimum(p[:50_000], cost) for p in phases]))
                for name, (make, budget) in _policies(False).items():
                    done = _simulate(make, budget, phases, cost, bench.seed, counted_from=0)
                    bench.add(
                        f"{label}: a change every {rows:,} rows, four filters of cost "
                        f"{expensive}: work, {name} / optimum",
                        (done.regular + done.profiled) / optimum,
                        "x",
                        "best order of each phase, known beforehand",
                    )


# --- table 2: where the time goes -------------------------------------------------------------


class _TimedAGreedy(AGreedy):
    """A-Greedy with a clock on each part of its upkeep."""

    def reset(self) -> None:
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


_TABLE_2 = {
    (3, 0.01): (98.77, 0.88, 0.20, 0.15, 0.0),
    (3, 0.05): (94.17, 4.17, 0.93, 0.73, 0.0),
    (8, 0.01): (96.62, 2.92, 0.20, 0.22, 0.04),
    (8, 0.05): (84.77, 13.34, 0.91, 0.98, 0.0),
}


def _overhead(bench: Bench, scale: int) -> None:
    """Time the parts of A-Greedy with filters of about one microsecond, as table 2 does."""
    probes = 60
    for (filters, probability), paper in _TABLE_2.items():
        rng = np.random.default_rng(bench.seed)
        answers = draw_answers(rng, 400_000 // scale, [0.5] * filters, 2)
        operators, readers = make_filters([probes] * filters)
        policy = _TimedAGreedy(
            probability, window_tuples=1000, alpha=0.9, gain_min=0.0, watches_drift=False
        )
        options = RouterOptions(budget=None, chunk_rows=10_000, seed=bench.seed)
        router = Router(operators, readers, policy, options=options)
        for begin in range(0, len(answers), 10_000):
            part = answers[begin : begin + 10_000]
            router.route(to_columns(part), len(part))
        tactic = router.segments[0].tactic
        assert isinstance(tactic, SingleOrder)
        own = tactic.policy
        assert isinstance(own, _TimedAGreedy)
        upkeep = [own.spent[part] * 1e6 for part in ("window", "view", "violations")]
        parts = [float(router.totals.busy_us.sum()), router.totals.profiling_us, *upkeep]
        labels = (
            "tuple processing",
            "profile tuples",
            "profile window",
            "view update",
            "view violations",
        )
        for label, spent_us, reported in zip(labels, parts, paper, strict=True):
            bench.add(
                f"table 2: n={filters}, p={probability}: {label}",
                100 * spent_us / sum(parts),
                "% of time",
                None,
                reported,
            )
