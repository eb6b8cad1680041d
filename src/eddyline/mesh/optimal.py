"""Opt-QM: the cheapest query mesh of all, over every partition of the training tuples.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.6, figure 5.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.arrays import FloatArray
from eddyline.errors import EddylineError
from eddyline.mesh.cost import MeshProblem, Partition, Solution, row_costs
from eddyline.mesh.stop import Stop

TUPLES_MAX = 12  # 4.2 million partitions
BOUNDS_SHARE = 0.5  # of the time, for bounds; the rest is for growing classifiers


def optimal(problem: MeshProblem, stop: Stop | None = None) -> Solution:
    """Return the cheapest mesh, or the best found when time is up.

    The number of partitions is a Bell number, so this is for small training sets. Not every
    classifier has to be grown: none can do better than to send each set of rows that it cannot
    tell apart along the cheapest of the partition's routes. Partitions are looked at in the order
    of that bound, until it exceeds the best mesh.

    Parameters
    ----------
    problem
        The training tuples.
    stop
        Only its time limit is used; None: no limit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from eddyline.mesh.training import TrainingSet
    >>> drops = np.array([[True, False], [False, True]] * 20)
    >>> training = TrainingSet({"kind": pa.array(["a", "b"] * 20)}, drops, [10.0, 10.0])
    >>> problem = MeshProblem(training, [np.arange(0, 40, 2), np.arange(1, 40, 2)])
    >>> found = optimal(problem)
    >>> found.partition, found.routes
    ((0, 1), ((0, 1), (1, 0)))

    """
    tuples = len(problem.tuples)
    if tuples > TUPLES_MAX:
        raise EddylineError(
            f"Opt-QM looks at every partition of the training tuples: {tuples} are too many, "
            f"at most {TUPLES_MAX}; condense the sample further or use another search"
        )
    stop = stop or Stop()
    bound = _Bound(problem)
    best = problem.evaluate((0,) * tuples)
    bounded = []
    is_cut = False
    for partition in partitions(tuples):
        if stop.is_past(BOUNDS_SHARE):
            is_cut = True
            break
        bounded.append((bound.of(partition), partition))
    for bound_us, partition in sorted(bounded):
        if bound_us >= best.cost_us:
            break
        if stop.is_out_of_time:
            is_cut = True
            break
        solution = problem.evaluate(partition)
        if solution.cost_us < best.cost_us:
            best = solution
    stop.reason = "time" if is_cut else "all partitions"
    return best


def partitions(tuples: int) -> Iterator[Partition]:
    """Return every way to divide so many tuples into groups.

    Examples
    --------
    >>> list(partitions(3))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    >>> sum(1 for _ in partitions(4))
    15

    """
    if tuples == 0:
        yield ()
        return
    for shorter in partitions(tuples - 1):
        for group in range(max(shorter, default=-1) + 2):
            yield (*shorter, group)


class _Bound:
    """The least that a mesh with some routes can cost, whatever its classifier."""

    def __init__(self, problem: MeshProblem) -> None:
        self._problem = problem
        self._alike = problem.alike()
        self._spent_us: dict[tuple[int, ...], FloatArray] = {}
        self._bounds: dict[frozenset[tuple[int, ...]], float] = {}

    def of(self, partition: Partition) -> float:
        members: dict[int, list[int]] = {}
        for tuple_, group in enumerate(partition):
            members.setdefault(group, []).append(tuple_)
        routes = frozenset(self._problem.route_of(tuple(own))[0] for own in members.values())
        if routes not in self._bounds:
            cheapest = np.minimum.reduce([self._costs(route) for route in routes])
            spent_us = float(cheapest.sum()) / self._problem.training.rows
            self._bounds[routes] = spent_us + self._problem.overheads.route_us
        return self._bounds[routes]

    def _costs(self, route: tuple[int, ...]) -> FloatArray:
        """Return what each set of rows that are alike costs along the route."""
        if route not in self._spent_us:
            row_us = row_costs(self._problem.training, route)
            self._spent_us[route] = np.bincount(self._alike, row_us).astype(np.float64)
        return self._spent_us[route]
