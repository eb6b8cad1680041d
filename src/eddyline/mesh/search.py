"""From sampled rows to a mesh: condense, search, check on rows that the search has not seen.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 4.2 to 4.7.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.mesh.annealing import simulated_annealing
from eddyline.mesh.condense import condense
from eddyline.mesh.cost import MeshProblem, Overheads, Solution, row_costs
from eddyline.mesh.iterative import iterative_improvement
from eddyline.mesh.mesh import Mesh, RowClass, with_uncertainty
from eddyline.mesh.optimal import optimal
from eddyline.mesh.options import MeshOptions
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.mesh.starts import STARTS, continuing
from eddyline.mesh.stop import Stop
from eddyline.mesh.training import TrainingSet
from eddyline.ordering.static import ordering_cost, reach_counts

#: Called with the number of an iteration and the best cost so far.
Progress = Callable[[int, float], None]

ROWS_MIN = 24
TEMPERATURES = 6  # of simulated annealing, for each iteration of iterative improvement


@dataclass(frozen=True)
class SearchResult:
    """The result of a search for a mesh.

    Parameters
    ----------
    mesh
        The mesh, or None if one order for all rows is as good.
    explored
        Meshes whose cost was computed.
    seconds
        Time the search took.
    stopped
        Why it stopped.
    saving_us, noise_us
        What the mesh saves a row on rows it was not made from, and the standard error of that.
    single_us
        What a row costs there in the best single order.
    """

    mesh: Mesh | None
    explored: int
    seconds: float
    stopped: str
    saving_us: float = 0.0
    noise_us: float = 0.0
    single_us: float = 0.0

    def numbers(self) -> dict[str, float | int | str]:
        """Return the numbers that are written to the journal."""
        return {
            "saving_us": round(self.saving_us, 4),
            "noise_us": round(float(self.noise_us), 4),
            "single_us": round(self.single_us, 4),
            "explored": self.explored,
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
        }


def search_solution(
    training: TrainingSet,
    options: MeshOptions,
    rng: np.random.Generator,
    progress: Progress | None = None,
    current: Mesh | None = None,
) -> tuple[Solution, MeshProblem, Stop]:
    """Condense the sample and search for the cheapest mesh; start from the current one, if any."""
    start = STARTS[options.start]
    if current is not None and set(current.tree.attributes) <= set(training.columns):
        start = continuing(current.classify(training.columns))
    condensed = condense(training, options.tuples_max)
    problem = MeshProblem(
        training,
        condensed.tuples,
        ROUTE_FINDERS[options.routes],
        options.overheads or Overheads(),
        options.depth_max,
        condensed.attributes,
    )
    if options.search == "sa":
        stop = _stop_of(options, progress, TEMPERATURES)
        solution = simulated_annealing(problem, start, stop, rng)
    elif options.search == "opt":
        stop = _stop_of(options, progress)
        solution = optimal(problem, stop)
    else:
        stop = _stop_of(options, progress)
        solution = iterative_improvement(problem, start, stop, rng)
    return solution, problem, stop


def _stop_of(options: MeshOptions, progress: Progress | None, factor: int = 1) -> Stop:
    iterations_max = factor * options.iterations_max
    plateau_max = options.plateau_max and factor * options.plateau_max
    return Stop(iterations_max, plateau_max, options.seconds_max, progress)


def find_mesh(
    training: TrainingSet,
    options: MeshOptions | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    current: Mesh | None = None,
) -> SearchResult:
    """Return the best mesh for rows like these, if it beats one order for all of them.

    The mesh is made from two thirds of the rows and judged on the others: with few rows and many
    attributes there is always a mesh that suits the rows it was made from. If it saves enough on
    the others, the search is repeated on all rows, and its mesh is returned. Each of the two
    searches has half of the time, if there is a limit.

    Parameters
    ----------
    training
        Sampled rows.
    options
        Of the search.
    seed
        For everything random.
    progress
        Called after each iteration with its number and the best cost so far.
    current
        A mesh in use, to start from.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds = ["a", "b"] * 60
    >>> drops = np.array([[True, False], [False, True]] * 60)
    >>> found = find_mesh(TrainingSet({"kind": pa.array(kinds)}, drops, [5.0, 5.0]), seed=0)
    >>> found.mesh.words(["first", "second"])
    ['kind = a -> first, second', 'kind != a -> second, first']
    >>> round(found.saving_us, 1)
    2.7

    """
    options = options or MeshOptions()
    rng, began = np.random.default_rng(seed), time.perf_counter()
    if training.rows < ROWS_MIN or training.operators < 2 or not training.attributes:
        return SearchResult(None, 0, 0.0, f"fewer than {ROWS_MIN} rows, 2 operators or 1 attribute")
    shuffled = rng.permutation(training.rows)
    held_back = training.rows // 3
    fitted, judged = training.subset(shuffled[held_back:]), training.subset(shuffled[:held_back])
    half = _with_half_the_time(options)
    tried, tried_problem, tried_stop = search_solution(fitted, half, rng, progress, current)
    single = tried_problem.route_of(tuple(range(len(tried_problem.tuples))))[0]
    # Of equation 2, what one order for all rows does not have: tests, and more routes than one.
    overhead_us = tried.cost_us - float(np.dot(tried.shares, tried.route_us))
    overhead_us -= tried_problem.overheads.route_us
    saved_us = row_costs(judged, single) - _row_costs_in(judged, tried, single) - overhead_us
    single_us = float(row_costs(judged, single).mean())
    saving_us = float(saved_us.mean())
    noise_us = float(saved_us.std()) / np.sqrt(len(saved_us))
    pays = len(tried.routes) > 1 and saving_us - noise_us > options.gain_min * single_us
    if not pays:
        return SearchResult(
            None,
            tried_problem.explored,
            time.perf_counter() - began,
            tried_stop.reason,
            saving_us,
            noise_us,
            single_us,
        )
    solution, problem, stop = search_solution(training, half, rng, progress, current)
    return SearchResult(
        to_mesh(training, solution, problem) if len(solution.tree.labels) > 1 else None,
        tried_problem.explored + problem.explored,
        time.perf_counter() - began,
        stop.reason,
        saving_us,
        noise_us,
        single_us,
    )


def _with_half_the_time(options: MeshOptions) -> MeshOptions:
    limit_s = options.seconds_max
    return options if limit_s is None else replace(options, seconds_max=limit_s / 2)


def to_mesh(training: TrainingSet, solution: Solution, problem: MeshProblem) -> Mesh:
    """Return a solution of the search as a mesh, with what its rows are expected to cost."""
    single = problem.route_of(tuple(range(len(problem.tuples))))[0]
    predicted = solution.tree.classify(training.columns)
    classes = []
    for label, route in enumerate(solution.routes):
        own = training.drops[predicted == label]
        classes.append(
            RowClass(
                with_uncertainty(route, own, training.cost_us) if len(own) else route,
                solution.shares[label],
                solution.route_us[label],
                ordering_cost(single, own, training.cost_us) if len(own) else 0.0,
                _visits(route, own),
                _visits(single, own),
            )
        )
    routes_us = sum(c.share * c.expected_us for c in classes)
    return Mesh(solution.tree, tuple(classes), solution.cost_us - routes_us)


def _visits(route: tuple[int, ...], drops: BoolArray) -> tuple[float, ...]:
    """Return the number of visits to each operator that a row needs on the route, on average."""
    visits = np.ones(len(route))
    if len(drops):
        visits[list(route)] = reach_counts(route, drops) / len(drops)
    return tuple(visits.tolist())


def _row_costs_in(
    training: TrainingSet, solution: Solution, default: tuple[int, ...]
) -> FloatArray:
    """Return what each row costs in a mesh; rows of an unknown class take the default route."""
    predicted = solution.tree.classify(training.columns)
    spent = row_costs(training, default)
    for label, route in enumerate(solution.routes):
        own = np.flatnonzero(predicted == label)
        if len(own):
            spent[own] = row_costs(training.subset(own), route)
    return spent
