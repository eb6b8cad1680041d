"""Query Mesh on a join of ten streams: classes of rows against a single plan and against eddies.

New rows of one stream probe the windows of nine others. The single plan has the best order for all
rows, found by exhaustive search. The eddies route by content (MR + CBR in the paper): each row by
itself, or batches of a hundred. The latter is our router, which takes its time for each batch;
probes of a row, counted, do not depend on that.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 6.2, figures 10 and 11.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, Rows
from eddyline.bench.eddy import TupleEddy
from eddyline.bench.harness import Bench, ratio
from eddyline.bench.joins_workload import Fixed, StarJoin, answering_rows
from eddyline.bench.mesh_data import Data, skewed, uniform
from eddyline.content import ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.joins.class_finder import PROBE_CLASSES
from eddyline.joins.combinations import Combinations
from eddyline.joins.keys import KeyColumn
from eddyline.joins.plan import Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.operators import Batch, ColumnReader, Operator, Outcome
from eddyline.ordering.static import best_ordering

WINDOWS = 9
BATCH_ROWS = 100
MAKE = {"skewed (Poisson)": skewed, "uniform": uniform}
PAPER = {
    "skewed (Poisson)": {
        "single plan": "1.44",
        "eddy, row by row": "1.27",
        "eddy, batches": "1.18",
    },
    "uniform": {"single plan": "0.978", "eddy, row by row": "1.39", "eddy, batches": "1.24"},
}


class WindowProbe(Operator):
    """A one-way join probe as an operator: keeps the rows that have a partner in a window.

    Parameters
    ----------
    stem
        The window.
    key
        Of the new rows, all of them.

    """

    def __init__(self, number: int, stem: SteM, key: KeyColumn) -> None:
        super().__init__(f"S{number}", (0,))
        self._stem = stem
        self._key = key

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Probe the window with rows of a batch; its only column says which rows they are."""
        numbers = batch.columns[0].to_numpy()
        return Outcome(self.has_partner(numbers if rows is None else numbers[rows]))

    def has_partner(self, rows: Rows) -> BoolArray:
        """Return for new rows whether they have a partner."""
        has = np.zeros(len(rows), dtype=bool)
        for probes, _ in self._stem.probe((0,), [self._key.take(rows)], with_new=True):
            has[probes] = True
        return has


class Setup:
    """The rows, and everything that can join them.

    Parameters
    ----------
    data
        Rows: which window has a partner for them, and their attributes.
    seed
        For whatever is drawn.

    """

    def __init__(self, data: Data, seed: int) -> None:
        self.data = data
        self.rows = answering_rows(np.random.default_rng(seed), data.passed, data.attributes)
        best = best_ordering(~data.passed[:50_000], np.ones(WINDOWS))
        self.single = StarJoin(WINDOWS, Fixed(best), seed=seed)
        self.mesh = StarJoin(WINDOWS, classes=PROBE_CLASSES, seed=seed)
        self._probes = [
            WindowProbe(number, self.single.join.stems[number], key)
            for number, key in enumerate(self.rows.keys)
        ]

    def probes_of(self, run: Callable[[], object]) -> int:
        """Return the probes of the windows that a run takes."""
        before = self.single.probes + self.mesh.probes
        run()
        return self.single.probes + self.mesh.probes - before

    def batched(self) -> Callable[[], None]:
        """Return what sends all rows through an eddy in batches."""
        names = list(self.data.attributes)
        router = Router(
            self._probes,
            [ColumnReader("number"), *map(ColumnReader, names)],
            ContentOptions.paper(),
            options=RouterOptions(seed=0, chunk_rows=BATCH_ROWS),
            attributes={name: 1 + position for position, name in enumerate(names)},
        )
        columns = [pa.array(np.arange(len(self.rows))), *self.data.attributes.values()]

        def run() -> None:
            router.route(columns, len(self.rows))

        return run

    def row_by_row(self, rows: int) -> Callable[[], None]:
        """Return what sends some rows through an eddy, each by itself."""
        predicates = [self._predicate(probe) for probe in self._probes]
        eddy = TupleEddy(predicates, [1.0] * WINDOWS, len(self.data.attributes))
        columns = [column.slice(0, rows) for column in self.data.attributes.values()]

        def run() -> None:
            eddy.run(0, columns)

        return run

    def _predicate(self, probe: WindowProbe) -> Callable[[int], bool]:
        return lambda row: bool(probe.has_partner(np.array([row]))[0])


def output_rate(bench: Bench) -> None:
    """Time a trained mesh against its rivals, and its overhead (figures 10 a to c)."""
    trained, rows, alone = (2_000, 2_000, 50) if bench.quick else (400_000, 100_000, 2_000)
    for name, make in MAKE.items():
        rng = np.random.default_rng(bench.seed)
        setup = Setup(make(rng, rows, WINDOWS), bench.seed)
        training = make(rng, trained, WINDOWS)
        setup.mesh.run(answering_rows(rng, training.passed, training.attributes))
        variants: dict[str, Callable[[], object]] = {
            "mesh": functools.partial(setup.mesh.run, setup.rows),
            "single plan": functools.partial(setup.single.run, setup.rows),
            "eddy, batches": setup.batched(),
            "eddy, row by row": setup.row_by_row(alone),
        }
        seconds = bench.in_turn(f"fig 10: {name}", variants)
        counts = dict.fromkeys(variants, rows) | {"eddy, row by row": alone}
        row_us = {v: [1e6 * s / counts[v] for s in own] for v, own in seconds.items()}
        for rival, paper in PAPER[name].items():
            bench.add(
                f"fig 10 a: {name}: output rate, mesh / {rival}",
                ratio(row_us[rival], row_us["mesh"]),
                "x",
                f"{setup.mesh.join.routes()[Role(WINDOWS)].classes} classes in use",
                paper,
            )
        for variant, own in row_us.items():
            bench.add(f"fig 10 b: {name}: time of a row, {variant}", statistics.median(own), "us")
        probes = {v: setup.probes_of(run) / counts[v] for v, run in variants.items()}
        for variant, count in probes.items():
            bench.add(
                f"fig 10: {name}: probes of a row, {variant}",
                count,
                "probes",
                f"{count / probes['mesh']:.3f} times those of the mesh",
            )
        bench.add(
            f"fig 10 c: {name}: classifying, routing and learning",
            _overhead(setup),
            "% of time",
            "of the mesh",
            "2",
        )


def _overhead(setup: Setup) -> float:
    """Return the share of the time that is not probing or making results, in per cent."""
    routes = setup.mesh.join.routes()[Role(WINDOWS)]
    spent = 0.0

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            nonlocal spent
            began = time.perf_counter()
            try:
                return method(*given)
            finally:
                spent += time.perf_counter() - began

        return call

    methods = ("begin", "deal", "learn", "profiled", "add_profile", "conclude")
    for method in methods:
        setattr(routes, method, timed(getattr(routes, method)))
    began = time.perf_counter()
    setup.mesh.run(setup.rows)
    whole = time.perf_counter() - began
    for method in methods:
        delattr(routes, method)
    return 100 * spent / whole


def produced(bench: Bench) -> None:
    """Count the results that were produced after some time, learning included (figure 11)."""
    rows, batches = (1_000, 4) if bench.quick else (50_000, 30)
    for name, make in MAKE.items():
        rng = np.random.default_rng(bench.seed)
        setup = Setup(make(rng, rows, WINDOWS), bench.seed)
        arrivals = [
            answering_rows(rng, data.passed, data.attributes)
            for data in (make(rng, rows, WINDOWS) for _ in range(batches))
        ]
        joins = {"mesh": setup.mesh, "single plan": setup.single}
        made = {variant: _timeline(join, arrivals) for variant, join in joins.items()}
        steps: dict[str, list[tuple[float, int, int]]] = {v: [(0.0, 0, 0)] for v in joins}
        with bench.progress(f"fig 11: {name}", batches) as advance:
            for _ in arrivals:
                for variant, timeline in made.items():
                    steps[variant].append(next(timeline))
                advance()
        totals = {variant: np.cumsum(own, axis=0).T for variant, own in steps.items()}
        for column, what in enumerate(("time", "comparisons")):
            whole = min(float(own[column][-1]) for own in totals.values())
            for share in (0.25, 0.5, 1.0):
                at = {
                    variant: float(np.interp(share * whole, own[column], own[2]))
                    for variant, own in totals.items()
                }
                bench.add(
                    f"fig 11: {name}: results after {share:.0%} of the {what}, mesh / single plan",
                    at["mesh"] / max(at["single plan"], 1.0),
                    "x",
                    f"{at['mesh']:,.0f} results",
                    "significantly larger" if make is skewed else None,
                )


def _timeline(join: StarJoin, arrivals: Sequence[Run]) -> Iterator[tuple[float, int, int]]:
    """Join one micro-batch after the other; yield seconds, comparisons and results of each."""
    for rows in arrivals:
        count = 0

        def emit(found: Combinations) -> None:
            nonlocal count
            count += len(found)

        began, compared = time.perf_counter(), join.comparisons
        join.run(rows, emit)
        yield time.perf_counter() - began, join.comparisons - compared, count
