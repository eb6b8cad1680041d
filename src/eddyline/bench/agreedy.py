"""`eddyline bench agreedy`: the experiments of the A-Greedy paper (its section 9).

Synthetic filters with the paper's correlation model, all policies, the offline optimum, and the
heuristics of other systems. Nearly everything is counted: evaluations a row are exact and do not
depend on the machine. Only the breakdowns of the run time (table 2, figures 13 and 15) are timed.
Where a method that the paper found better is not, a line of the results says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench import agreedy_claims as claims
from eddyline.bench.agreedy_breakdown import TABLE_2, break_down, run_table_2
from eddyline.bench.agreedy_reasons import reasons
from eddyline.bench.agreedy_runs import (
    CHUNK_ROWS,
    OWN,
    PAPER,
    SELECTIVITIES,
    MakeSubject,
    Run,
    adapt,
    converge,
    follow,
    with_probability,
)
from eddyline.bench.agreedy_timeline import timelines
from eddyline.bench.elsewhere import ELSEWHERE
from eddyline.bench.harness import Bench
from eddyline.fabric import Router, RouterOptions
from eddyline.ordering import AsWritten, Lottery, Policy
from eddyline.testing.synthetic import make_filters, to_columns

ARROW_ROWS = 10_000  # of a batch that Spark hands over
PROBES = 60  # of a filter that is timed, for a row: about one microsecond

OTHERS: dict[str, Callable[[], Policy]] = {
    "lottery": Lottery,
    "as written": AsWritten,
    "adjacent trials (DuckDB)": ELSEWHERE["adjacent_trials"],
    "cost per drop (Velox, Trino)": ELSEWHERE["cost_per_drop"],
    "momentum (arXiv 1905.01349)": ELSEWHERE["momentum"],
}
#: Figure 12 has a higher profiling probability, "to better illustrate the differences".
FIG_12_PROBABILITY = 0.05


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
            "profiling": lambda: _more_profiling(bench, scale),
            "costs": lambda: _filter_costs(bench, scale),
            "adaptivity": lambda: _adaptivity(bench, scale),
            "change": lambda: _rate_of_change(bench, scale),
            "reasons": lambda: reasons(bench, scale, _without_budget),
            "overhead": lambda: _overhead(bench, scale),
        }
    )


def _subjects(everyone: bool = True) -> dict[str, MakeSubject]:
    """Return each policy with its budget: the paper's have none, Eddyline's defaults have."""
    subjects = {name: _routed(make, None) for name, make in PAPER.items()}
    budget = RouterOptions().budget
    subjects |= {name: _routed(make, budget) for name, make in OWN.items()}
    if everyone:
        subjects |= {name: _routed(make, None) for name, make in OTHERS.items()}
    return subjects


def _routed(make: Callable[[], Policy], budget: float | None) -> MakeSubject:
    return lambda cost, seed: RoutedFilters(make(), budget, cost, seed)


def _without_budget(make: Callable[[], Policy]) -> MakeSubject:
    return _routed(make, None)


def _converge(
    bench: Bench,
    label: str,
    selectivities: Sequence[float],
    correlation: int,
    cost: FloatArray,
    scale: int,
    subjects: Mapping[str, MakeSubject],
) -> dict[str, Run]:
    seeds = 3 if bench.quick else 5
    rows = 400_000 // scale
    return converge(bench, label, selectivities, correlation, cost, subjects, rows, seeds)


def _work(runs: Mapping[str, Run]) -> dict[str, float]:
    """Return the evaluations of each method, those to learn included."""
    return {name: done.regular + done.profiled for name, done in runs.items()}


def _number_of_filters(bench: Bench, scale: int) -> None:
    for filters in (2, 4, 6, 8, 10):
        label, cost = f"fig 9: n={filters}", np.ones(filters)
        subjects = _subjects(everyone=filters == 8)
        runs = _converge(bench, label, [0.5] * filters, 2, cost, scale, subjects)
        claims.compare(bench, label, _work(runs), claims.FIG_9)


def _selectivity(bench: Bench, scale: int) -> None:
    for selectivity in (0.1, 0.3, 0.7, 0.9):
        label = f"fig 10: selectivity {selectivity}"
        runs = _converge(bench, label, [selectivity] * 8, 2, np.ones(8), scale, _subjects(False))
        if 0.2 < selectivity < 0.8:  # else the paper finds both methods alike
            claims.compare(bench, label, _work(runs), claims.FIG_9)


def _correlation(bench: Bench, scale: int) -> None:
    for correlation in (1, 2, 3, 4, 8):
        label = f"fig 11: correlation factor {correlation}"
        subjects = _subjects(everyone=correlation == 4)
        runs = _converge(bench, label, [0.5] * 8, correlation, np.ones(8), scale, subjects)
        if 1 < correlation < 8:  # else costs do not vary much across orders
            claims.compare(bench, label, _work(runs), claims.FIG_9)
    label = "fig 11, unequal selectivities: correlation factor 4"
    _converge(bench, label, SELECTIVITIES, 4, np.ones(8), scale, _subjects())


def _more_profiling(bench: Bench, scale: int) -> None:
    """Give all methods the same, higher profiling probability; break the time down."""
    policies = with_probability(FIG_12_PROBABILITY)
    subjects = {name: _routed(make, None) for name, make in policies.items()}
    for filters in (2, 4, 6, 8, 10):
        label, cost = f"fig 12, p={FIG_12_PROBABILITY}: n={filters}", np.ones(filters)
        runs = _converge(bench, label, [0.5] * filters, 2, cost, scale, subjects)
        if filters > 2:  # with two filters there is one to evaluate further, whatever the method
            claims.compare(bench, label, _work(runs), claims.FIG_12)
    for filters in (3, 8) if bench.quick else (2, 4, 6, 8, 10):
        label = f"fig 13, p={FIG_12_PROBABILITY}: n={filters}"
        rows, seeds = (20_000, 1) if bench.quick else (200_000, 3)
        shares = break_down(bench, label, policies, [PROBES] * filters, rows, seeds)
        if filters > 2:
            claims.compare(bench, f"{label}, work to learn", shares, claims.FIG_12)


def _filter_costs(bench: Bench, scale: int) -> None:
    for expensive in (1, 10, 50, 100):
        cost = np.array([1.0] * 4 + [float(expensive)] * 4)
        label = f"fig 14: four filters of cost {expensive}"
        runs = _converge(bench, label, [0.5] * 8, 2, cost, scale, _subjects(False))
        if expensive > 1:
            pairs = claims.FIG_14_EXPENSIVE if expensive >= 50 else claims.FIG_14
            claims.compare(bench, label, _work(runs), pairs)
    for expensive in (1, 100) if bench.quick else (1, 10, 50, 100):
        label = f"fig 15: four filters of cost {expensive}"
        rows, seeds = (20_000, 1) if bench.quick else (200_000, 3)
        probes = [PROBES // 10] * 4 + [PROBES // 10 * expensive] * 4
        reported = {"A-Greedy": 25.0} if expensive == 100 else None
        shares = break_down(bench, label, PAPER, probes, rows, seeds, reported)
        claims.compare(bench, f"{label}, work to learn", shares, claims.FIG_15)


def _adaptivity(bench: Bench, scale: int) -> None:
    rows = 300_000 // (2 if scale > 1 else 1)
    taken = adapt(bench, _subjects(), rows, 5 if bench.quick else 15)
    claims.compare(bench, "figs 16-18: rows to adapt, mean", taken, claims.FIGS_16_TO_18)
    settled = timelines(bench, _subjects(False), 2 * rows, 3 if bench.quick else 5)
    claims.compare(bench, "fig 18: evaluations before and after", settled, claims.FIG_9)


def _rate_of_change(bench: Bench, scale: int) -> None:
    """Permute the selectivities again and again; compare the whole work, profiling included."""
    for label, periods, costs in (
        ("fig 19", (20_000, 100_000, 1_000_000), (10,)),
        ("fig 20", (100_000,), (1, 50, 100)),
        ("fig 21", (1_000_000,), (1, 50, 100)),
    )[: 1 if bench.quick else 3]:
        for period in periods:
            for expensive in costs:
                _changing(bench, label, period, float(expensive), scale)


def _changing(bench: Bench, label: str, period: int, expensive: float, scale: int) -> None:
    rows = period // (scale if period > 100_000 else 1)
    changes = max(2, min(10 if scale == 1 else 3, 1_000_000 // rows))
    seeds = 2 if bench.quick else 3 if period > 100_000 else 6
    label = f"{label}: a change every {rows:,} rows, four filters of cost {expensive:.0f}"
    cost = np.array([1.0] * 4 + [expensive] * 4)
    means = follow(bench, label, _subjects(False), cost, changes, rows, seeds)
    pairs = claims.FIG_19_FAST if period <= 100_000 else claims.FIG_19_SLOW
    claims.compare(bench, label, means, pairs)


def _overhead(bench: Bench, scale: int) -> None:
    """Time the parts of A-Greedy with filters of about one microsecond, as table 2 does."""
    for filters, probability in TABLE_2:
        run_table_2(bench, filters, probability, 400_000 // scale, PROBES)
