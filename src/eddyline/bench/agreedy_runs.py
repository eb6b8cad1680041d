"""What the experiments of the A-Greedy paper share, whatever the filters are.

The filters are predicates in `agreedy.py`, and probes of stored windows in `joins_agreedy.py`. Both
are a `Subject`: it takes rows with known answers and says what they cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench.harness import Bench
from eddyline.ordering import AGreedy, Independent, LocalSwaps, Policy, Sweep
from eddyline.ordering.matrix_view import MatrixView
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing.synthetic import draw_answers

CHUNK_ROWS = 2_000
CLOSE_ENOUGH = 1.1
SELECTIVITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

PAPER: dict[str, Callable[[], Policy]] = {
    "A-Greedy": AGreedy.paper,
    "Sweep": Sweep,
    "Independent": Independent,
    "LocalSwaps": LocalSwaps,
}


class Subject(Protocol):
    """Filters in an order that a policy decides."""

    @property
    def order(self) -> tuple[int, ...]:
        """The order in use."""

    def rows_next(self, begin: int) -> int:
        """Return how many rows it takes at once, after so many of a phase."""

    def feed(self, answers: BoolArray) -> tuple[float, float]:
        """Take rows with these answers; return what they cost, regularly and for profiling."""


#: Makes a subject from the costs of its filters and a seed.
MakeSubject = Callable[[FloatArray, int], Subject]


@dataclass
class Run:
    """What a run of one policy did, a row, over the rows that count."""

    regular: float
    profiled: float
    rows_to_adapt: float


def simulate(
    subject: Subject, phases: Sequence[BoolArray], cost: FloatArray, counted_from: float = 0.5
) -> Run:
    """Run a policy over phases; count from a share of the last phase on; time the last change."""
    regular = profiled = rows = 0.0
    rows_to_adapt = float("nan")
    for number, answers in enumerate(phases):
        is_last = number == len(phases) - 1
        drops = ~answers[:50_000]
        good_enough = CLOSE_ENOUGH * ordering_cost(best_ordering(drops, cost), drops, cost)
        end = 0
        while end < len(answers):
            begin = end
            end += subject.rows_next(begin)
            part = answers[begin:end]
            spent = subject.feed(part)
            is_open = is_last and np.isnan(rows_to_adapt)
            if is_open and ordering_cost(subject.order, drops, cost) <= good_enough:
                rows_to_adapt = begin + len(part)
            if counted_from == 0 or (is_last and begin >= counted_from * len(answers)):
                regular += spent[0]
                profiled += spent[1]
                rows += len(part)
    if np.isnan(rows_to_adapt):
        rows_to_adapt = float(len(phases[-1]))
    return Run(regular / rows, profiled / rows, rows_to_adapt)


def optimum_of(answers: BoolArray, cost: FloatArray) -> float:
    """Return what a row costs in the best order for these rows."""
    return ordering_cost(best_ordering(~answers, cost), ~answers, cost)


def converge(
    bench: Bench,
    label: str,
    selectivities: Sequence[float],
    correlation: int,
    cost: FloatArray,
    subjects: Mapping[str, MakeSubject],
    rows: int = 400_000,
    seeds: int = 5,
) -> None:
    """Note evaluations against the optimum after convergence, median of several seeds."""
    ratios: dict[str, list[float]] = {name: [] for name in subjects}
    with_profiling: dict[str, list[float]] = {name: [] for name in subjects}
    with bench.progress(label, seeds * len(subjects)) as advance:
        for seed in range(bench.seed, bench.seed + seeds):
            rng = np.random.default_rng(seed)
            shuffled = rng.permutation(list(selectivities)).tolist()
            answers = draw_answers(rng, rows, shuffled, correlation)
            optimum = optimum_of(answers[len(answers) // 2 :], cost)
            for name, make in subjects.items():
                done = simulate(make(cost, seed), [answers], cost)
                ratios[name].append(done.regular / optimum)
                with_profiling[name].append((done.regular + done.profiled) / optimum)
                advance()
    for name in subjects:
        bench.add(
            f"{label}: evaluations, {name} / optimum",
            statistics.median(ratios[name]),
            "x",
            f"offline optimum; with profiling {statistics.median(with_profiling[name]):.3f}",
        )


def permuted_phases(
    rng: np.random.Generator, phases: int, rows: int, correlation: int = 2
) -> list[BoolArray]:
    """Return phases with the same selectivities, each time of other filters."""
    return [
        draw_answers(rng, rows, rng.permutation(SELECTIVITIES).tolist(), correlation)
        for _ in range(phases)
    ]


def adapt(bench: Bench, subjects: Mapping[str, MakeSubject], rows: int, seeds: int) -> None:
    """Permute the selectivities once; count rows until the order in use is good again."""
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    cost = np.ones(len(SELECTIVITIES))
    with bench.progress("figs 16-18", seeds * len(subjects)) as advance:
        for seed in range(bench.seed, bench.seed + seeds):
            phases = permuted_phases(np.random.default_rng(seed), 2, rows)
            for name, make in subjects.items():
                taken[name].append(simulate(make(cost, seed), phases, cost).rows_to_adapt)
                advance()
    for name, values in taken.items():
        never = sum(value >= rows for value in values)
        bench.add(
            f"figs 16-18: rows until the new best order is in use, {name}",
            statistics.median(values),
            "rows",
            f"median of {len(values)} changes; longest {max(values):,.0f}"
            + (f"; {never} never within {rows:,} rows" if never else ""),
        )


# --- table 2: where the time goes -------------------------------------------------------------


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


def timed_policy(probability: float) -> TimedAGreedy:
    """Return A-Greedy as in table 2, with clocks."""
    return TimedAGreedy(
        probability, window_tuples=1000, alpha=0.9, gain_min=0.0, watches_drift=False
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
