"""`eddyline bench mesh`: the experiments of the paper on Query Mesh (its section 6).

Operators are filters with a set cost. On skewed data there are three kinds of rows, told apart by
an attribute with a Poisson distribution, and each kind has another best order; on uniform data
there is one kind. Compared are a single plan (the best order for all rows, found by exhaustive
search), an eddy with content-based routing, row by row and in batches, and a mesh. The eddy in
batches is our router with the paper's parameters, which takes its time for each small batch;
evaluations a row, counted, do not depend on that.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eddyline.bench import mesh_classes, mesh_searches
from eddyline.bench.eddy import TupleEddy
from eddyline.bench.harness import Bench, ratio
from eddyline.bench.mesh_data import OPERATORS, Data, skewed, uniform
from eddyline.bench.mesh_dependent import dependent
from eddyline.bench.mesh_routing import (
    ARROW_ROWS,
    BATCH_ROWS,
    EDDY_ROWS,
    SAMPLE_ROWS,
    Step,
    counted_variants,
    evaluations_a_row,
    feed,
    learn_mesh,
    make_router,
)
from eddyline.content import ContentOptions
from eddyline.fabric import Router
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.ordering.static import best_ordering
from eddyline.testing.synthetic import INDEX_ENTRIES, probed_table

PROBES = 120
SKEWED = "skewed (Poisson)"
PAPER = {
    SKEWED: {
        "single plan": "1.44",
        "eddy, row by row": "1.27",
        "eddy, batches of 100": "1.18",
    },
    "uniform": {
        "single plan": "0.978",
        "eddy, row by row": "1.39",
        "eddy, batches of 100": "1.24",
    },
}


def run(bench: Bench) -> None:
    """Run all experiments and note their numbers."""
    rng = np.random.default_rng(bench.seed)
    rows = 300_000 // (10 if bench.quick else 1)
    skewed_rows, uniform_rows = skewed(rng, rows), uniform(rng, rows)
    parts: dict[str, Callable[[], None]] = {}
    if (data := bench.data) is not None:
        parts["lab"] = lambda: mesh_classes.lab(bench, data)
    bench.run_parts(
        {
            "skewed": lambda: _output_rate(bench, skewed_rows, SKEWED),
            "uniform": lambda: _output_rate(bench, uniform_rows, "uniform"),
            "overhead": lambda: _overhead(bench, skewed(rng, 2 * rows)),
            "columns": lambda: mesh_classes.by_two_columns(bench),
            "dependent": lambda: dependent(bench),
            "optimum": lambda: mesh_searches.against_optimum(bench),
            "training": lambda: mesh_searches.training_set_size(bench),
            "starts": lambda: mesh_searches.start_solutions(bench),
            **parts,
        }
    )


# --- figure 10 -------------------------------------------------------------------------------


def _route(
    data: Data,
    policy: RoutingPolicy,
    probes: int = PROBES,
    batch_rows: int = BATCH_ROWS,
    written: Sequence[int] | None = None,
    knowledge: Sequence[Knowledge] | None = None,
) -> Iterator[Router]:
    """Send all rows through a router; `written` is the order in which the filters are given."""
    router = make_router(data, policy, probes, batch_rows, written)
    if knowledge is not None:
        router.restore(knowledge)
    yield from feed(router, data)


def _row_by_row(data: Data) -> Iterator[None]:
    """Run the eddy over the same rows; its operators do the same work, called with one row."""
    table = probed_table()

    def predicate(answers: list[bool]) -> Callable[[int], bool]:
        def judge(row: int) -> bool:
            at = row % INDEX_ENTRIES
            for _ in range(PROBES):
                at = table[at]
            return answers[row]

        return judge

    predicates = [predicate(data.passed[:, n].tolist()) for n in range(OPERATORS)]
    eddy, kept = TupleEddy(predicates, [1.0] * OPERATORS, len(data.attributes)), 0
    for begin in range(0, len(data.passed), ARROW_ROWS):
        part = [column.slice(begin, ARROW_ROWS) for column in data.attributes.values()]
        kept += len(eddy.run(begin, part))
        yield
    assert kept == int(data.passed.all(axis=1).sum())


def _output_rate(bench: Bench, data: Data, about: str) -> None:
    best = best_ordering(~data.passed, np.ones(OPERATORS))
    began = time.perf_counter()
    known = learn_mesh(data, PROBES)
    bench.add(
        f"fig 10: {about}: training of the mesh, before the first row",
        time.perf_counter() - began,
        "s",
        f"{SAMPLE_ROWS} sampled rows, every operator on each; search included",
    )
    variants: dict[str, Callable[[], Iterator[object]]] = {
        "single plan": lambda: _route(data, "as_written", written=best),
        "eddy, row by row": lambda: _row_by_row(data),
        "eddy, batches of 100": lambda: _route(data, ContentOptions.paper(), batch_rows=EDDY_ROWS),
        "mesh": lambda: _route(data, "mesh", knowledge=known),
        "auto": lambda: _route(data, "auto"),
        "one adaptive order": lambda: _route(data, "agreedy"),
        "single plan again": lambda: _route(data, "as_written", written=best),
    }
    seconds = bench.step_by_step(f"fig 10: {about}", variants)
    kept = int(data.passed.all(axis=1).sum())
    rate = kept / statistics.median(seconds["mesh"])
    for other, paper in PAPER[about].items():
        bench.add(
            f"fig 10: {about}: output rate, mesh / {other}",
            ratio(seconds[other], seconds["mesh"]),
            "x",
            f"{rate:,.0f} results a second",
            paper,
        )
    _evaluations(bench, data, about)
    bench.add(
        f"fig 10: {about}: time, auto / one adaptive order",
        ratio(seconds["auto"], seconds["one adaptive order"]),
        "x",
        "A-Greedy",
    )
    bench.add(
        f"fig 10: {about}: time, single plan / single plan (control)",
        ratio(seconds["single plan again"], seconds["single plan"]),
        "x",
        "the same again",
    )


def _evaluations(bench: Bench, data: Data, about: str) -> None:
    """Count what the systems need for the same rows, whatever their calls cost."""
    made = {name: [Step(0, 0, 0), *steps] for name, steps in counted_variants(data).items()}
    counted = {name: evaluations_a_row(iter(steps)) for name, steps in made.items()}
    for name, evaluations in counted.items():
        bench.add(
            f"fig 10: {about}: evaluations a row, {name}",
            evaluations,
            "evaluations",
            f"{evaluations / counted['mesh']:.3f} times those of the mesh",
        )
    if about == SKEWED:
        of_one_stream = {name: [steps] for name, steps in made.items()}
        mesh_classes.results_over_work(bench, f"fig 11 a: {about}", of_one_stream)


def _overhead(bench: Bench, data: Data) -> None:
    """What classifying, routing and learning take, at several costs of an operator."""
    probes = (150, 200, 480)  # of some 5 us and more
    cost_us: dict[int, list[float]] = {each: [] for each in probes}
    routing: dict[int, list[float]] = {each: [] for each in probes}
    learning: dict[int, list[float]] = {each: [] for each in probes}
    with bench.progress("fig 10 c: overhead", bench.rounds * len(probes)) as advance:
        for _, each in itertools.product(range(bench.rounds), probes):
            *_, router = _route(data, "mesh", each, knowledge=learn_mesh(data, each))
            totals = router.totals
            busy_us = float(totals.busy_us.sum())
            whole_us = busy_us + totals.overhead_us
            cost_us[each].append(busy_us / float(totals.seen.sum()))
            routing[each].append(100 * totals.routing_us / whole_us)
            learning_us = totals.profiling_us + totals.deciding_us
            learning[each].append(100 * learning_us / whole_us)
            advance()
    for each in probes:
        label = f"fig 10 c: operators of {statistics.median(cost_us[each]):.1f} us"
        shares = {"classification and routing": routing[each], "learning": learning[each]}
        for what, measured in shares.items():
            bench.add(
                f"{label}: {what}",
                statistics.median(measured),
                "% of time",
                f"{len(data.passed):,} rows",
                "2" if measured is routing[each] else None,
            )
