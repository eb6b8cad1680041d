"""`eddyline bench agreedy`: the experiments of the A-Greedy paper (its section 9).

Synthetic filters with the paper's correlation model, all policies, the offline optimum, and the
heuristics of other systems. Nearly everything is counted: evaluations a row are exact and do not
depend on the machine. Only the split of the run time (table 2) is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench.agreedy_runs import (
    CHUNK_ROWS,
    PAPER,
    SELECTIVITIES,
    TABLE_2,
    MakeSubject,
    TimedAGreedy,
    adapt,
    add_table_2,
    converge,
    optimum_of,
    permuted_phases,
    simulate,
    timed_policy,
)
from eddyline.bench.elsewhere import ELSEWHERE
from eddyline.bench.harness import Bench
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.ordering import AGreedy, AsWritten, Lottery, Policy
from eddyline.testing.synthetic import draw_answers, make_filters, to_columns

ARROW_ROWS = 10_000  # of a batch that Spark hands over

OTHERS: dict[str, Callable[[], Policy]] = {
    "lottery": Lottery,
    "as written": AsWritten,
    "adjacent trials (DuckDB)": ELSEWHERE["adjacent_trials"],
    "cost per drop (Velox, Trino)": ELSEWHERE["cost_per_drop"],
    "momentum (arXiv 1905.01349)": ELSEWHERE["momentum"],
}
OWN = "A-Greedy, Eddyline's defaults"


class RoutedFilters:
    """Synthetic filters in a router.

    With a budget, all is as by default: batches of Spark's size, cut as the router cuts them.

    Parameters
    ----------
    policy, budget
        The policy, and the share of the time it may profile for; None for no limit.
    cost
        Of each filter.
    seed
        For whatever is drawn.

    """

    def __init__(self, policy: Policy, budget: float | None, cost: FloatArray, seed: int) -> None:
        filters, readers = make_filters([0] * len(cost))
        chunk_rows = CHUNK_ROWS if budget is None else RouterOptions().chunk_rows
        options = RouterOptions(
            budget=budget, chunk_rows=chunk_rows, costs_us=tuple(cost.tolist()), seed=seed
        )
        self._router = Router(filters, readers, policy, options=options)
        self._budget = budget
        self._cost = cost

    @property
    def order(self) -> tuple[int, ...]:
        """The order in use."""
        return self._router.segments[0].order

    def rows_next(self, begin: int) -> int:
        """Return how many rows the router takes at once."""
        if self._budget is None:
            return CHUNK_ROWS
        return min(self._router._rows_next, ARROW_ROWS - begin % ARROW_ROWS)

    def feed(self, answers: BoolArray) -> tuple[float, float]:
        """Route rows with these answers."""
        totals = self._router.totals
        before = totals.seen.copy(), totals.profiled.copy()
        self._router.route(to_columns(answers), len(answers))
        regular, profiled = totals.seen - before[0], totals.profiled - before[1]
        return float(regular @ self._cost), float(profiled @ self._cost)


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


def _subjects(everyone: bool = True) -> dict[str, MakeSubject]:
    """Return each policy with its budget: the paper's have none, Eddyline's defaults have."""
    policies: dict[str, tuple[Callable[[], Policy], float | None]] = {
        name: (make, None) for name, make in PAPER.items()
    }
    policies[OWN] = (AGreedy, RouterOptions().budget)
    if everyone:
        policies.update({name: (make, None) for name, make in OTHERS.items()})
    return {name: _routed(make, budget) for name, (make, budget) in policies.items()}


def _routed(make: Callable[[], Policy], budget: float | None) -> MakeSubject:
    return lambda cost, seed: RoutedFilters(make(), budget, cost, seed)


def _converge(
    bench: Bench,
    label: str,
    selectivities: Sequence[float],
    correlation: int,
    cost: FloatArray,
    scale: int,
    everyone: bool,
) -> None:
    subjects, seeds = _subjects(everyone), 3 if bench.quick else 5
    converge(bench, label, selectivities, correlation, cost, subjects, 400_000 // scale, seeds)


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


def _adaptivity(bench: Bench, scale: int) -> None:
    rows = 300_000 // (2 if scale > 1 else 1)
    adapt(bench, _subjects(), rows, 5 if bench.quick else 15)


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
                phases = permuted_phases(rng, changes, rows)
                optimum = float(np.mean([optimum_of(p[:50_000], cost) for p in phases]))
                for name, make in _subjects(False).items():
                    done = simulate(make(cost, bench.seed), phases, cost, counted_from=0)
                    bench.add(
                        f"{label}: a change every {rows:,} rows, four filters of cost "
                        f"{expensive}: work, {name} / optimum",
                        (done.regular + done.profiled) / optimum,
                        "x",
                        "best order of each phase, known beforehand",
                    )


def _overhead(bench: Bench, scale: int) -> None:
    """Time the parts of A-Greedy with filters of about one microsecond, as table 2 does."""
    probes = 60
    for filters, probability in TABLE_2:
        rng = np.random.default_rng(bench.seed)
        answers = draw_answers(rng, 400_000 // scale, [0.5] * filters, 2)
        operators, readers = make_filters([probes] * filters)
        options = RouterOptions(budget=None, chunk_rows=10_000, seed=bench.seed)
        router = Router(operators, readers, timed_policy(probability), options=options)
        for begin in range(0, len(answers), 10_000):
            part = answers[begin : begin + 10_000]
            router.route(to_columns(part), len(part))
        tactic = router.segments[0].tactic
        assert isinstance(tactic, SingleOrder)
        policy, totals = tactic.policy, router.totals
        assert isinstance(policy, TimedAGreedy)
        busy_us = float(totals.busy_us.sum())
        add_table_2(bench, filters, probability, policy, busy_us, totals.profiling_us)
