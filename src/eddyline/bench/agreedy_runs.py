"""What the experiments of the A-Greedy paper share, whatever the filters are.

The filters are predicates in `agreedy.py`, and probes of stored windows in `joins_agreedy.py`. Both
are a `Subject`: it takes rows with known answers and says what they cost.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench.harness import Bench
from eddyline.ordering import AGreedy, Independent, LocalSwaps, Policy, Sweep
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing.synthetic import draw_answers

CHUNK_ROWS = 2_000
CLOSE_ENOUGH = 1.1
SELECTIVITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

Method = type[AGreedy] | type[Sweep] | type[Independent] | type[LocalSwaps]
METHODS: dict[str, Method] = {
    "A-Greedy": AGreedy,
    "Sweep": Sweep,
    "Independent": Independent,
    "LocalSwaps": LocalSwaps,
}
#: The four methods with the paper's settings.
PAPER: dict[str, Callable[[], Policy]] = {name: m.paper for name, m in METHODS.items()}
#: The same with Eddyline's.
OWN: dict[str, Callable[[], Policy]] = {f"{n}, Eddyline's defaults": m for n, m in METHODS.items()}


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


def with_probability(probability: float) -> dict[str, Callable[[], Policy]]:
    """Return the four methods with the paper's settings, but one profiling probability for all."""
    return {name: functools.partial(m.paper, probability) for name, m in METHODS.items()}


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
) -> dict[str, Run]:
    """Note evaluations against the optimum after convergence, median of several seeds.

    Returned are the means of each subject: evaluations, and those to learn, as shares of the
    optimum. A method that misses the best order in some runs is the worse for it.
    """
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
    return {
        name: Run(
            regular := statistics.mean(ratios[name]),
            statistics.mean(with_profiling[name]) - regular,
            float("nan"),
        )
        for name in subjects
    }


def permuted_phases(
    rng: np.random.Generator, phases: int, rows: int, correlation: int = 2
) -> list[BoolArray]:
    """Return phases with the same selectivities, each time of other filters."""
    return [
        draw_answers(rng, rows, rng.permutation(SELECTIVITIES).tolist(), correlation)
        for _ in range(phases)
    ]


def follow(
    bench: Bench,
    label: str,
    subjects: Mapping[str, MakeSubject],
    cost: FloatArray,
    phases: int,
    rows: int,
    seeds: int,
) -> dict[str, float]:
    """Permute the selectivities every so many rows; note the whole work, that to learn included.

    Returned is the mean of each subject, as a multiple of the optimum.
    """
    work: dict[str, list[float]] = {name: [] for name in subjects}
    to_learn: dict[str, list[float]] = {name: [] for name in subjects}
    with bench.progress(label, seeds * len(subjects)) as advance:
        for seed in range(bench.seed, bench.seed + seeds):
            answers = permuted_phases(np.random.default_rng(seed), phases, rows)
            optimum = float(np.mean([optimum_of(phase[:50_000], cost) for phase in answers]))
            for name, make in subjects.items():
                done = simulate(make(cost, seed), answers, cost, counted_from=0)
                work[name].append((done.regular + done.profiled) / optimum)
                to_learn[name].append(done.profiled / optimum)
                advance()
    for name, values in work.items():
        bench.add(
            f"{label}: work, {name} / optimum",
            statistics.median(values),
            "x",
            f"best order of each phase, known beforehand; {seeds} runs from {min(values):.3f} to "
            f"{max(values):.3f}; mean {statistics.mean(values):.3f}, of it to learn "
            f"{statistics.mean(to_learn[name]):.3f}",
        )
    return {name: statistics.mean(values) for name, values in work.items()}


def adapt(
    bench: Bench, subjects: Mapping[str, MakeSubject], rows: int, seeds: int
) -> dict[str, float]:
    """Permute the selectivities once; count rows until the order in use is good again.

    Returned is the mean of each subject: a method that does not get there in some runs has those
    with all rows.
    """
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
    return {name: statistics.mean(values) for name, values in taken.items()}
