"""Start solutions: where a search for a query mesh begins.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.7.

Examples
--------
Four training tuples, two of each kind; the kinds are dropped by different operators:

>>> import pyarrow as pa
>>> from eddyline.mesh.training import TrainingSet
>>> drops = np.array([[True, False], [False, True]] * 20)
>>> training = TrainingSet({"kind": pa.array(["a", "b"] * 20)}, drops, [10.0, 10.0])
>>> problem = MeshProblem(training, [np.arange(first, 40, 4) for first in range(4)])
>>> for name in ("content", "route", "extreme-1", "extreme-n"):
...     print(name, STARTS[name](problem, np.random.default_rng(0)))
content (0, 1, 0, 1)
route (0, 1, 0, 1)
extreme-1 (0, 0, 0, 0)
extreme-n (0, 1, 2, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.mesh.cost import MeshProblem, Partition
from eddyline.mesh.training import BinnedAttribute

SIMILAR = 0.25
RANDOM_PICKS = 10

Start = Callable[[MeshProblem, np.random.Generator], Partition]


def content_driven(problem: MeshProblem, rng: np.random.Generator) -> Partition:
    """Group training tuples whose attributes have similar values.

    A tuple joins the first group whose leader (its first tuple) is similar in every attribute that
    the classifier may test. Numbers and times are similar if they lie less than a quarter of the
    attribute's domain apart; texts and other values if less than a quarter of the rows would have
    to change their value for the tuples to have the same ones.
    """
    contents = [_content_of(attribute, problem.tuples) for attribute in problem.testable]
    leaders: list[int] = []
    partition = []
    for number in range(len(problem.tuples)):
        for group, leader in enumerate(leaders):
            distances = (np.abs(own[number] - own[leader]).sum() for own in contents)
            if all(distance < SIMILAR for distance in distances):
                partition.append(group)
                break
        else:
            partition.append(len(leaders))
            leaders.append(number)
    return tuple(partition)


def _content_of(attribute: BinnedAttribute, tuples: Sequence[IntArray]) -> FloatArray:
    """Return a row of numbers for each tuple; the sum of their differences is the distance."""
    if attribute.has_magnitude:
        ranks = attribute.ranks() / max(attribute.bins - 1, 1)
        return np.array([[ranks[attribute.codes[rows]].mean()] for rows in tuples])
    counts = [np.bincount(attribute.codes[rows], minlength=attribute.bins) for rows in tuples]
    return np.array([own / (2.0 * own.sum()) for own in counts])


def route_driven(problem: MeshProblem, rng: np.random.Generator) -> Partition:
    """Group training tuples that have the same best route of their own."""
    groups: dict[tuple[int, ...], int] = {}
    return tuple(
        groups.setdefault(problem.route_of((number,))[0], len(groups))
        for number in range(len(problem.tuples))
    )


def random_partition(tuples: int, rng: np.random.Generator) -> Partition:
    """Return a random partition."""
    groups = int(rng.integers(1, tuples + 1))
    return tuple(rng.integers(0, groups, tuples).tolist())


def random_pick(problem: MeshProblem, rng: np.random.Generator) -> Partition:
    """Return the cheapest of some random partitions."""
    picks = [random_partition(len(problem.tuples), rng) for _ in range(RANDOM_PICKS)]
    return min(picks, key=lambda partition: problem.evaluate(partition).cost_us)


def continuing(labels: IntArray) -> Start:
    """Start from a mesh that is in use: group training tuples as it classifies most of their rows.

    Parameters
    ----------
    labels
        The class that the mesh in use gives to each training row.
    """

    def start(problem: MeshProblem, rng: np.random.Generator) -> Partition:
        groups: dict[int, int] = {}
        partition = []
        for rows in problem.tuples:
            values, counts = np.unique(labels[rows], return_counts=True)
            most = int(values[np.argmax(counts)])
            partition.append(groups.setdefault(most, len(groups)))
        return tuple(partition)

    return start


def extreme_1(problem: MeshProblem, rng: np.random.Generator) -> Partition:
    """One route for everything."""
    return (0,) * len(problem.tuples)


def extreme_n(problem: MeshProblem, rng: np.random.Generator) -> Partition:
    """A group for each training tuple.

    Its mesh costs what that of the route-driven start costs, since rows with the same route travel
    together; but a search goes on from groups of one tuple each.
    """
    return tuple(range(len(problem.tuples)))


STARTS: dict[str, Start] = {
    "content": content_driven,
    "route": route_driven,
    "random": random_pick,
    "extreme-1": extreme_1,
    "extreme-n": extreme_n,
}
