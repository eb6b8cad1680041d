"""`eddyline bench mesh`: the experiments of the paper on Query Mesh (its section 6).

Operators are filters with a set cost. On skewed data there are three kinds of rows, told apart by
an attribute with a Poisson distribution, and each kind has another best order; on uniform data
there is one kind. Compared are a single plan (the best order for all rows, found by exhaustive
search), an eddy with content-based routing, row by row and in batches, and a mesh.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bench.eddy import TupleEddy
from eddyline.bench.harness import Bench, ratio
from eddyline.bench.mesh_data import OPERATORS, Data, attributes, skewed, uniform
from eddyline.content import ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.mesh import TrainingSet
from eddyline.mesh.annealing import simulated_annealing
from eddyline.mesh.condense import condense
from eddyline.mesh.cost import MeshProblem
from eddyline.mesh.iterative import iterative_improvement
from eddyline.mesh.optimal import optimal
from eddyline.mesh.starts import STARTS
from eddyline.mesh.stop import Stop
from eddyline.operators import ColumnReader
from eddyline.ordering.static import best_ordering
from eddyline.testing.synthetic import INDEX_ENTRIES, SyntheticFilter, probed_table

PROBES = 120
BATCH_ROWS = 4_096
ARROW_ROWS = 10_000  # of a batch that Spark hands over
SAMPLE_ROWS = 1_000
SEARCH_SECONDS = 5.0


def run(bench: Bench) -> None:
    """Run all experiments and note their numbers."""
    rng = np.random.default_rng(bench.seed)
    rows = 300_000 // (10 if bench.quick else 1)
    skewed_rows, uniform_rows = skewed(rng, rows), uniform(rng, rows)
    bench.run_parts(
        {
            "skewed": lambda: _output_rate(bench, skewed_rows, "skewed (Poisson)"),
            "uniform": lambda: _output_rate(bench, uniform_rows, "uniform"),
            "overhead": lambda: _overhead(bench, skewed(rng, 2 * rows)),
            "optimum": lambda: _against_optimum(bench),
            "training": lambda: _training_set_size(bench),
            "starts": lambda: _start_solutions(bench),
        }
    )


# --- figure 10 -------------------------------------------------------------------------------


def _route(
    data: Data,
    policy: RoutingPolicy,
    probes: int = PROBES,
    batch_rows: int = BATCH_ROWS,
    written: tuple[int, ...] = tuple(range(OPERATORS)),
    knowledge: Sequence[Knowledge] | None = None,
) -> Iterator[Router]:
    """Send all rows through a router; `written` is the order in which the filters are given."""
    router = _make_router(data, policy, probes, batch_rows, written)
    if knowledge is not None:
        router.restore(knowledge)
    columns = data.columns
    for begin in range(0, len(data.passed), ARROW_ROWS):
        part = [column.slice(begin, ARROW_ROWS) for column in columns]
        router.route(part, len(part[0]))
        yield router


def _make_router(
    data: Data, policy: RoutingPolicy, probes: int, batch_rows: int, written: tuple[int, ...]
) -> Router:
    filters = [SyntheticFilter(f"Op{n + 1}", n, probes) for n in written]
    names = [f"answer_{n}" for n in range(OPERATORS)] + list(data.attributes)
    return Router(
        filters,
        [ColumnReader(name) for name in names],
        policy,
        options=RouterOptions(seed=0, chunk_rows=batch_rows),
        attributes={name: OPERATORS + n for n, name in enumerate(data.attributes)},
    )


def _train(data: Data, probes: int = PROBES) -> Sequence[Knowledge]:
    """Return what a mesh learns from a sample of the rows before the first is run."""
    router = _make_router(data, "mesh", probes, BATCH_ROWS, tuple(range(OPERATORS)))
    sample = np.sort(np.random.default_rng(1).choice(len(data.passed), SAMPLE_ROWS, replace=False))
    router.train([column.take(pa.array(sample)) for column in data.columns], SAMPLE_ROWS)
    return router.snapshot()


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
    known = _train(data)
    bench.add(
        f"fig 10: {about}: training of the mesh, before the first row",
        time.perf_counter() - began,
        "s",
        f"{SAMPLE_ROWS} sampled rows, every operator on each; search included",
    )
    variants: dict[str, Callable[[], Iterator[object]]] = {
        "single plan": lambda: _route(data, "as_written", written=best),
        "eddy, row by row": lambda: _row_by_row(data),
        "eddy, batches of 100": lambda: _route(data, ContentOptions.paper(), batch_rows=100),
        "mesh": lambda: _route(data, "mesh", knowledge=known),
        "auto": lambda: _route(data, "auto"),
        "one adaptive order": lambda: _route(data, "agreedy"),
        "single plan again": lambda: _route(data, "as_written", written=best),
    }
    seconds = bench.step_by_step(f"fig 10: {about}", variants)
    kept = int(data.passed.all(axis=1).sum())
    rate = kept / statistics.median(seconds["mesh"])
    skewed = about.startswith("skewed")
    papers = ("1.44", "1.27", "1.18") if skewed else ("0.978", "1.39", "1.24")
    others = ("single plan", "eddy, row by row", "eddy, batches of 100")
    for other, paper in zip(others, papers, strict=True):
        bench.add(
            f"fig 10: {about}: output rate, mesh / {other}",
            ratio(seconds[other], seconds["mesh"]),
            "x",
            f"{rate:,.0f} results a second",
            paper,
        )
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


def _overhead(bench: Bench, data: Data) -> None:
    """What classifying, routing and learning take, at several costs of an operator."""
    probes = (150, 200, 480)  # of some 5 us and more
    cost_us: dict[int, list[float]] = {each: [] for each in probes}
    routing: dict[int, list[float]] = {each: [] for each in probes}
    learning: dict[int, list[float]] = {each: [] for each in probes}
    with bench.progress("fig 10 c: overhead", bench.rounds * len(probes)) as advance:
        for _, each in itertools.product(range(bench.rounds), probes):
            *_, router = _route(data, "mesh", each, knowledge=_train(data, each))
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


# --- the searches ----------------------------------------------------------------------------


def _training(seed: int, rows: int = 1_000, kinds: int = 12) -> TrainingSet:
    """A sample with many kinds of rows, for the searches to divide."""
    rng = np.random.default_rng(seed)
    kind = np.minimum(rng.poisson(4.0, rows), kinds - 1)
    selectivity = rng.uniform(0.05, 0.95, (kinds, OPERATORS))
    drops = rng.random((rows, OPERATORS)) >= selectivity[kind]
    return TrainingSet(attributes(rng, kind), drops, rng.uniform(5, 20, OPERATORS))


def _against_optimum(bench: Bench) -> None:
    samples = {4: 5, 6: 5, 8: 5} if bench.quick else {4: 10, 6: 10, 8: 5, 10: 1}
    with bench.progress("searches against Opt-QM", sum(samples.values())) as advance:
        for size, count in samples.items():
            worst = {"II-QM": 1.0, "SA-QM": 1.0}
            for seed in range(bench.seed, bench.seed + count):
                training = _training(seed, rows=250)
                cells = condense(training, size, beyond_chance=False).tuples

                def problem(training: TrainingSet = training, cells: Any = cells) -> MeshProblem:
                    return MeshProblem(training, cells, attributes=["a0"])

                best_us = optimal(problem()).cost_us
                rng, start = np.random.default_rng(seed), STARTS["route"]
                found = {
                    "II-QM": iterative_improvement(problem(), start, Stop(8, 8), rng),
                    "SA-QM": simulated_annealing(problem(), start, Stop(48, 48), rng),
                }
                for name, solution in found.items():
                    worst[name] = max(worst[name], solution.cost_us / best_us)
                advance()
            for name, value in worst.items():
                bench.add(
                    f"{name} / Opt-QM: cost of the mesh found, {size} training tuples, worst",
                    value,
                    "x",
                    f"Opt-QM; {count} samples",
                )


def _training_set_size(bench: Bench) -> None:
    sizes = (8, 16, 32) if bench.quick else (8, 16, 32, 64, 100)
    with bench.progress("fig 12: size of the training set", 2 * len(sizes)) as advance:
        for size in sizes:
            for search in ("ii", "sa"):
                training = _training(bench.seed)
                cells = condense(training, size, beyond_chance=False).tuples
                problem = MeshProblem(training, cells)
                rng = np.random.default_rng(bench.seed)
                began = time.perf_counter()
                if search == "ii":
                    stop = Stop(8, 8, seconds_max=SEARCH_SECONDS)
                    solution = iterative_improvement(problem, STARTS["route"], stop, rng)
                else:
                    stop = Stop(48, 48, seconds_max=SEARCH_SECONDS)
                    solution = simulated_annealing(problem, STARTS["route"], stop, rng)
                seconds = time.perf_counter() - began
                bench.add(
                    f"fig 12: {len(cells)} training tuples, {search.upper()}-QM: search",
                    seconds,
                    "s",
                    f"{problem.explored} meshes explored, stopped by {stop.reason or 'freezing'}; "
                    f"cost {solution.cost_us:.2f} us a row",
                )
                advance()


def _start_solutions(bench: Bench) -> None:
    """The quality of the mesh that a short search reaches from each start."""
    costs: dict[str, list[float]] = {name: [] for name in STARTS}
    seeds = range(bench.seed, bench.seed + (2 if bench.quick else 4))
    with bench.progress("fig 13: start solutions", len(seeds) * len(STARTS)) as advance:
        for seed in seeds:
            training = _training(seed)
            for name in STARTS:
                cells = condense(training, 24, beyond_chance=False).tuples
                problem, rng = MeshProblem(training, cells), np.random.default_rng(seed)
                stop = Stop(1, 1, seconds_max=SEARCH_SECONDS)
                costs[name].append(iterative_improvement(problem, STARTS[name], stop, rng).cost_us)
                advance()
    route = statistics.mean(costs["route"])
    papers = {"content": "1.10", "random": "1.12", "extreme-1": "1.19", "extreme-n": "1.06"}
    for name, own in costs.items():
        bench.add(
            f"fig 13: cost of the mesh found from the start {name} / from route-driven",
            statistics.mean(own) / route,
            "x",
            f"mean of {len(seeds)} samples, at most {SEARCH_SECONDS:.0f} s each",
            papers.get(name),
        )
