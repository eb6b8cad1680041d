"""The experiments of the A-Greedy paper with real probes of 10,000-row windows as its filters.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 9: table 2 and
figures 9, 12 and 16 to 18.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.bench.agreedy_breakdown import TABLE_2, TimedAGreedy, add_table_2
from eddyline.bench.agreedy_runs import (
    CHUNK_ROWS,
    PAPER,
    MakeSubject,
    adapt,
    converge,
    with_probability,
)
from eddyline.bench.harness import Bench
from eddyline.bench.joins_workload import StarJoin, answering_rows
from eddyline.joins.plan import Role
from eddyline.joins.stem import SteM
from eddyline.ordering import Policy
from eddyline.testing.synthetic import draw_answers

OWN = "Eddyline's default (tickets)"
#: Figure 12 has a higher profiling probability, "to better illustrate the differences".
FIG_12 = 0.05


class ProbedWindows:
    """Windows as filters: a row without a partner in one of them is dropped.

    Parameters
    ----------
    policy
        Orders the probes; None for the join's own policy.
    windows
        Number of windows.
    seed
        For whatever is drawn.

    """

    def __init__(self, policy: Policy | None, windows: int, seed: int) -> None:
        self._join = StarJoin(windows, policy, seed=seed)
        self._rng = np.random.default_rng(seed)
        #: Probes and seconds of profiling, and seconds of all.
        self.profiled = 0
        self.profiling_s = self.seconds = 0.0
        self._watch_profiling()

    def _watch_profiling(self) -> None:
        tree = next(t for t in self._join.join._trees if t.root == Role(self._join.windows))
        profile = tree._profile

        def watched(stems: Mapping[int, SteM], rows: IntArray) -> BoolArray:
            before, began = self._join.probes, time.perf_counter()
            drops = profile(stems, rows)
            self.profiling_s += time.perf_counter() - began
            self.profiled += self._join.probes - before
            return drops

        tree._profile = watched  # type: ignore[method-assign]
        self.policy = tree.routes.default._policy

    @property
    def order(self) -> tuple[int, ...]:
        """The order in use."""
        return self._join.order

    def rows_next(self, begin: int) -> int:
        """Return how many rows are joined at once."""
        return CHUNK_ROWS

    def feed(self, answers: BoolArray) -> tuple[float, float]:
        """Join rows with these answers; return probes, regular and for profiling."""
        rows = answering_rows(self._rng, answers)
        probes, profiled = self._join.probes, self.profiled
        began = time.perf_counter()
        self._join.run(rows)
        self.seconds += time.perf_counter() - began
        profiled = self.profiled - profiled
        return float(self._join.probes - probes - profiled), float(profiled)


def _subjects(policies: Mapping[str, Callable[[], Policy | None]]) -> dict[str, MakeSubject]:
    return {name: _probed(make) for name, make in policies.items()}


def _probed(make: Callable[[], Policy | None]) -> MakeSubject:
    def subject(cost: FloatArray, seed: int) -> ProbedWindows:
        return ProbedWindows(make(), len(cost), seed)

    return subject


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiments by name."""
    return {
        "overhead": lambda: _overhead(bench),
        "adaptivity": lambda: _adaptivity(bench),
        "windows": lambda: _number_of_windows(bench),
        "profiling": lambda: _more_profiling(bench),
    }


def _overhead(bench: Bench) -> None:
    """Time the parts of A-Greedy (table 2)."""
    rows = 20_000 if bench.quick else 1_000_000
    with bench.progress("table 2", len(TABLE_2)) as advance:
        for windows, probability in TABLE_2:
            rng = np.random.default_rng(bench.seed)
            subject = ProbedWindows(TimedAGreedy.paper(probability), windows, bench.seed)
            answers = draw_answers(rng, rows, [0.5] * windows, 2)
            for begin in range(0, rows, 10 * CHUNK_ROWS):
                subject.feed(answers[begin : begin + 10 * CHUNK_ROWS])
            policy = subject.policy
            assert isinstance(policy, TimedAGreedy)
            others_s = subject.profiling_s + sum(policy.spent.values())
            processing_us = (subject.seconds - others_s) * 1e6
            add_table_2(
                bench, windows, probability, policy, processing_us, subject.profiling_s * 1e6
            )
            advance()


def _adaptivity(bench: Bench) -> None:
    """Count rows until the new best order is in use (figures 16 to 18)."""
    policies: dict[str, Callable[[], Policy | None]] = {**PAPER, OWN: lambda: None}
    if bench.quick:
        policies = {name: policies[name] for name in ("A-Greedy", OWN)}
    rows, seeds = (8_000, 1) if bench.quick else (150_000, 5)
    adapt(bench, _subjects(policies), rows, seeds)


def _number_of_windows(bench: Bench) -> None:
    """Count probes against the optimum, with more and more windows (figure 9)."""
    policies: dict[str, Callable[[], Policy | None]] = {
        "A-Greedy": PAPER["A-Greedy"],
        "Independent": PAPER["Independent"],
        OWN: lambda: None,
    }
    _converge(bench, "fig 9", policies)


def _more_profiling(bench: Bench) -> None:
    """Count probes against the optimum, with more profiling (figure 12)."""
    _converge(bench, f"fig 12, p={FIG_12}", with_probability(FIG_12))


def _converge(
    bench: Bench, label: str, policies: Mapping[str, Callable[[], Policy | None]]
) -> None:
    rows, seeds = (10_000, 1) if bench.quick else (150_000, 3)
    for windows in (2,) if bench.quick else (2, 4, 6, 8, 10):
        converge(
            bench,
            f"{label}: n={windows}",
            [0.5] * windows,
            2,
            np.ones(windows),
            _subjects(policies),
            rows,
            seeds,
        )
