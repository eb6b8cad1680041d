"""What a query mesh costs a row: its routes, its classifier, and having several routes at all.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.5, equation 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.mesh.routes import RouteFinder, by_dynamic_programming
from eddyline.mesh.training import BinnedAttribute, TrainingSet
from eddyline.mesh.tree import Tree, grow_tree
from eddyline.ordering.static import ordering_cost

Partition = tuple[int, ...]


@dataclass(frozen=True)
class Overheads:
    """What classifying and several routes cost, in microseconds for each row.

    The defaults are what the Arrow plane takes for batches of some thousand rows.

    Parameters
    ----------
    test_us
        One test of the classifier.
    route_us
        One more route: splitting a batch, calling each operator once more. (The paper counts the
        leaves of the tree. Here rows of all leaves with the same route travel together.)
    """

    test_us: float = 0.04
    route_us: float = 0.05


@dataclass(frozen=True)
class Solution:
    """A query mesh as the search sees it.

    Parameters
    ----------
    partition
        For each training tuple the number of its group.
    tree
        The classifier; its labels are positions in `routes`.
    routes
        The different routes of the groups.
    shares
        The share of the rows that the classifier sends along each route.
    route_us
        What a row costs along each route, on the rows that the classifier sends there.
    cost_us
        What a row costs altogether (equation 2).
    """

    partition: Partition
    tree: Tree
    routes: tuple[tuple[int, ...], ...]
    shares: tuple[float, ...]
    route_us: tuple[float, ...]
    cost_us: float


@dataclass
class MeshProblem:
    """Training tuples to divide into groups, each with its route, and what each division costs.

    Parameters
    ----------
    training
        The sampled rows.
    tuples
        The condensed training tuples, as the rows that each stands for.
    find_route
        How the route of a group is found.
    overheads
        Of classifying and routing.
    depth_max
        Of the classifier.
    attributes
        Names of those that the classifier may test. None: all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> values = pa.array(["a", "b"] * 20)
    >>> drops = np.array([[True, False], [False, True]] * 20)
    >>> training = TrainingSet({"kind": values}, drops, [10.0, 10.0])
    >>> problem = MeshProblem(training, [np.arange(0, 40, 2), np.arange(1, 40, 2)])
    >>> round(problem.evaluate((0, 0)).cost_us, 2), round(problem.evaluate((0, 1)).cost_us, 2)
    (15.05, 10.14)

    """

    training: TrainingSet
    tuples: Sequence[IntArray]
    find_route: RouteFinder = by_dynamic_programming
    overheads: Overheads = field(default_factory=Overheads)
    depth_max: int = 4
    attributes: Sequence[str] | None = None
    explored: int = 0

    def __post_init__(self) -> None:
        self._routes: dict[tuple[int, ...], tuple[tuple[int, ...], float]] = {}
        self._solutions: dict[Partition, Solution] = {}
        self._tuple_of_row = np.empty(self.training.rows, dtype=np.int64)
        for number, rows in enumerate(self.tuples):
            self._tuple_of_row[rows] = number
        self._testable = self.training
        if self.attributes is not None:
            self._testable = self.training.with_attributes(self.attributes)

    def route_of(self, group: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Return the best route of a group of training tuples, and what its rows cost along it."""
        if group not in self._routes:
            rows = np.concatenate([self.tuples[number] for number in group])
            drops, cost_us = self.training.drops[rows], self.training.cost_us
            route = self.find_route(drops, cost_us)
            self._routes[group] = route, ordering_cost(route, drops, cost_us) * len(rows)
        return self._routes[group]

    @property
    def testable(self) -> list[BinnedAttribute]:
        """The attributes that the classifier may test."""
        return self._testable.attributes

    def alike(self) -> IntArray:
        """Return a number for each row: rows with the same one go to the same leaf of any tree."""
        if not self._testable.attributes:
            return np.zeros(self.training.rows, dtype=np.int64)
        codes = np.stack([attribute.codes for attribute in self._testable.attributes])
        alike: IntArray = np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1)
        return alike

    def bound_us(self, partition: Partition) -> float:
        """Return what the routes of a partition cost, with the least overhead there can be."""
        members: dict[int, list[int]] = {}
        for tuple_, group in enumerate(partition):
            members.setdefault(group, []).append(tuple_)
        found = [self.route_of(tuple(group)) for group in members.values()]
        routes = len({route for route, _ in found})
        spent_us = sum((us for _, us in found), 0.0) / self.training.rows
        tests_us = self.overheads.test_us if routes > 1 else 0.0
        return float(spent_us) + routes * self.overheads.route_us + tests_us

    def evaluate(self, partition: Partition) -> Solution:
        """Return the mesh of a partition: routes, classifier, cost.

        Groups with the same route are one class of the mesh, as rows with the same route travel
        together. The solution keeps the partition as it is, so that a search goes on from there.
        """
        merged = self.merged(partition)
        if merged not in self._solutions:
            self._solutions[merged] = self._build(merged)
            self.explored += 1
        solution = self._solutions[merged]
        return solution if partition == merged else replace(solution, partition=partition)

    def merged(self, partition: Partition) -> Partition:
        """Return the partition with groups that have the same route put together."""
        by_route: dict[tuple[int, ...], int] = {}
        numbers: dict[int, int] = {}
        for group in dict.fromkeys(partition):
            members = tuple(t for t, own in enumerate(partition) if own == group)
            numbers[group] = by_route.setdefault(self.route_of(members)[0], len(by_route))
        return tuple(numbers[group] for group in partition)

    def _build(self, partition: Partition) -> Solution:
        training = self.training
        groups = max(partition) + 1
        routes = []
        for group in range(groups):
            members = tuple(t for t, own in enumerate(partition) if own == group)
            routes.append(self.route_of(members)[0])
        labels = np.array(partition)[self._tuple_of_row]
        tree, predicted, depths = grow_tree(self._testable, labels, self.depth_max)
        shares, route_us = [], []
        for group, route in enumerate(routes):
            own = training.drops[predicted == group]
            shares.append(len(own) / training.rows)
            route_us.append(ordering_cost(route, own, training.cost_us) if len(own) else 0.0)
        in_use = len(tree.labels)
        cost_us = (
            sum(share * us for share, us in zip(shares, route_us, strict=True))
            + float(depths.mean()) * self.overheads.test_us
            + in_use * self.overheads.route_us
        )
        return Solution(
            partition, tree, tuple(routes), tuple(shares), tuple(route_us), float(cost_us)
        )


def row_costs(training: TrainingSet, order: tuple[int, ...]) -> FloatArray:
    """Return what each row costs along the order, in microseconds."""
    spent = np.zeros(training.rows)
    alive = np.ones(training.rows, dtype=bool)
    for operator in order:
        spent[alive] += training.cost_us[operator]
        alive &= ~training.drops[:, operator]
    return spent
