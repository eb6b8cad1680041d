"""The searches for a mesh: against the optimum, by size of the training set, by start solution.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 6.2, figures 12 and 13.
"""

from __future__ import annotations

import functools
import statistics
import time
from dataclasses import replace

import numpy as np

from eddyline.arrays import FloatArray
from eddyline.bench.harness import Bench
from eddyline.bench.mesh_data import Data, many_kinds
from eddyline.bench.mesh_routing import feed, make_router
from eddyline.fabric import Router
from eddyline.fabric.knowledge import MeshKnowledge
from eddyline.fabric.tactics.mesh import MeshTactic
from eddyline.mesh import Mesh, MeshOptions, TrainingSet
from eddyline.mesh.annealing import simulated_annealing
from eddyline.mesh.condense import condense
from eddyline.mesh.cost import MeshProblem
from eddyline.mesh.iterative import iterative_improvement
from eddyline.mesh.optimal import optimal
from eddyline.mesh.search import TEMPERATURES, to_mesh
from eddyline.mesh.starts import STARTS
from eddyline.mesh.stop import Stop

SAMPLE_ROWS = 1_000
START_TUPLES = 24
PROBES_A_US = 24


def _sample(seed: int, rows: int) -> TrainingSet:
    data, cost_us = many_kinds(np.random.default_rng(seed), rows)
    return TrainingSet(data.attributes, ~data.passed, cost_us)


def against_optimum(bench: Bench) -> None:
    """Compare what the searches find with the best of all meshes."""
    samples = {4: 5, 6: 5, 8: 5} if bench.quick else {4: 10, 6: 10, 8: 5, 10: 1}
    with bench.progress("searches against Opt-QM", sum(samples.values())) as advance:
        for size, count in samples.items():
            worst = {"II-QM": 1.0, "SA-QM": 1.0}
            for seed in range(bench.seed, bench.seed + count):
                training = _sample(seed, rows=250)
                cells = condense(training, size, beyond_chance=False).tuples
                best_us = optimal(MeshProblem(training, cells, attributes=["a0"])).cost_us
                rng, start = np.random.default_rng(seed), STARTS["route"]
                for name, search, iterations in (
                    ("II-QM", iterative_improvement, 8),
                    ("SA-QM", simulated_annealing, 8 * TEMPERATURES),
                ):
                    problem = MeshProblem(training, cells, attributes=["a0"])
                    solution = search(problem, start, Stop(iterations), rng)
                    worst[name] = max(worst[name], solution.cost_us / best_us)
                advance()
            for name, value in worst.items():
                bench.add(
                    f"{name} / Opt-QM: cost of the mesh found, {size} training tuples, worst",
                    value,
                    "x",
                    f"Opt-QM; {count} samples",
                )


def training_set_size(bench: Bench) -> None:
    """Time both searches, without a limit, for training sets of several sizes (figure 12)."""
    sizes = (4, 8) if bench.quick else (8, 16, 32, 64, 100)
    iterations = MeshOptions.paper().iterations_max
    training = _sample(bench.seed, 250 if bench.quick else SAMPLE_ROWS)
    with bench.progress("fig 12: size of the training set", 2 * len(sizes)) as advance:
        for size in sizes:
            cells = condense(training, size, beyond_chance=False).tuples
            attributes = condense(training, size).attributes
            for name, search, start, stop in (
                ("II-QM", iterative_improvement, "route", Stop(iterations)),
                ("SA-QM", simulated_annealing, "content", Stop(TEMPERATURES * iterations)),
            ):
                problem = MeshProblem(training, cells, attributes=attributes)
                began = time.perf_counter()
                solution = search(problem, STARTS[start], stop, np.random.default_rng(bench.seed))
                seconds = time.perf_counter() - began
                label = f"fig 12: {len(cells)} training tuples, {name}"
                about = f"no limit of time; {iterations} iterations; {start}-driven start"
                bench.add(f"{label}: search", seconds, "s", about)
                bench.add(
                    f"{label}: meshes whose cost was computed",
                    problem.explored,
                    "meshes",
                    f"cost of the best {solution.cost_us:.2f} us a row",
                )
                advance()


def start_solutions(bench: Bench) -> None:
    """Run rows through the mesh that a descent reaches from each start (figure 13)."""
    seeds = range(bench.seed, bench.seed + (2 if bench.quick else 8))
    rows, tuples = (2_000, 8) if bench.quick else (20_000, START_TUPLES)
    results: dict[str, list[float]] = {name: [] for name in STARTS}
    seconds: dict[str, list[float]] = {name: [] for name in STARTS}
    for number, seed in enumerate(seeds, 1):
        data, cost_us = many_kinds(np.random.default_rng(seed), SAMPLE_ROWS + rows)
        sample, fresh = data.until(SAMPLE_ROWS), data.after(SAMPLE_ROWS)
        training = TrainingSet(sample.attributes, ~sample.passed, cost_us)
        cells = condense(training, tuples, beyond_chance=False).tuples
        attributes = condense(training, tuples).attributes
        routers = {}
        for name, start in STARTS.items():
            problem = MeshProblem(training, cells, attributes=attributes)
            found = iterative_improvement(problem, start, Stop(1), np.random.default_rng(seed))
            routers[name] = _router_of(fresh, cost_us, to_mesh(training, found, problem))
        variants = {
            name: functools.partial(_run_all, router, fresh) for name, router in routers.items()
        }
        timed = bench.in_turn(f"fig 13: start solutions, {number} of {len(seeds)}", variants)
        for name, router in routers.items():
            seconds[name].append(statistics.median(timed[name]))
            results[name].append(router.totals.kept / float(router.totals.seen @ cost_us))
    papers = {"content": "1.10", "random": "1.12", "extreme-1": "1.19", "extreme-n": "1.06"}
    for name in STARTS:
        if name == "route":
            continue
        ratios = zip(results["route"], results[name], strict=True)
        times = zip(seconds[name], seconds["route"], strict=True)
        bench.add(
            f"fig 13: output rate, mesh from route-driven / from {name}, results by work counted",
            statistics.mean(own / other for own, other in ratios),
            "x",
            f"mean of {len(seeds)} samples, one descent each, {rows:,} fresh rows",
            papers[name],
        )
        bench.add(
            f"fig 13: output rate, mesh from route-driven / from {name}, results by time",
            statistics.median(own / other for own, other in times),
            "x",
            f"median of {len(seeds)} samples",
            papers[name],
        )


def _run_all(router: Router, data: Data) -> None:
    for _ in feed(router, data):
        pass


def _router_of(data: Data, cost_us: FloatArray, mesh: Mesh) -> Router:
    """Return a router that routes by the mesh and learns nothing more."""
    probes = np.round(PROBES_A_US * cost_us).astype(int).tolist()
    router = make_router(data, "mesh", probes, costs_us=cost_us)
    (knowledge,) = router.snapshot()
    assert isinstance(knowledge, MeshKnowledge)
    router.restore([replace(knowledge, mesh=mesh)])
    tactic = router.segments[0].tactic
    assert isinstance(tactic, MeshTactic)
    tactic.learns = False
    return router
