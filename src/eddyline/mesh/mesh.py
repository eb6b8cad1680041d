"""A query mesh: a classifier, a route for each class, and their expected costs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.mesh.tree import Node, Tree

Step = int | tuple[int, ...]
Route = tuple[Step, ...]

NOISE_DEVIATIONS = 1.0
UNCERTAIN_ROWS_MIN = 16


@dataclass(frozen=True)
class RowClass:
    """A class of rows.

    Parameters
    ----------
    route
        The operators in the order they are visited; a tuple in it is an uncertain step.
    share
        Of all rows, as expected.
    expected_us
        What a row of the class costs along its route, as expected by the search.
    single_us
        What it would cost in the best order for all rows.
    visits, single_visits
        Expected visits to each operator that a row needs on the route, and in the best order for
        all rows.
    """

    route: Route
    share: float
    expected_us: float
    single_us: float
    visits: tuple[float, ...] = ()
    single_visits: tuple[float, ...] = ()


@dataclass(frozen=True)
class Mesh:
    """A classifier and its classes.

    Parameters
    ----------
    tree
        Its labels are positions in `classes`.
    classes
        The classes, each with its route.
    overhead_us
        What classifying and several routes cost a row, as expected.

    Examples
    --------
    >>> from eddyline.mesh.split import Split
    >>> from eddyline.mesh.tree import Node
    >>> mesh = Mesh(Tree(Node(0, Split("hour", at=6), Node(0), Node(1))),
    ...             (RowClass((1, 0), 0.3, 2.0, 3.0), RowClass((0, 1), 0.7, 1.0, 1.0)))
    >>> mesh.words(["light", "heat"])
    ['hour <= 6 -> heat, light', 'hour > 6 -> light, heat']
    >>> round(mesh.cost_us, 2), round(mesh.single_us, 2)
    (1.3, 1.6)
    >>> Mesh.from_dict(mesh.to_dict()) == mesh
    True

    """

    tree: Tree
    classes: tuple[RowClass, ...]
    overhead_us: float = 0.0

    @property
    def cost_us(self) -> float:
        """What a row costs, as expected by the search."""
        return sum(c.share * c.expected_us for c in self.classes) + self.overhead_us

    @property
    def single_us(self) -> float:
        """What a row would cost in the best single order."""
        return sum(c.share * c.single_us for c in self.classes)

    def classify(self, columns: Mapping[str, pa.Array]) -> IntArray:
        """Return the class of each row, -1 for rows with values that are not in the sample."""
        return self.tree.classify(columns)

    def is_like(self, other: Mesh) -> bool:
        """Whether rows take the same routes as in another mesh, whatever they are said to cost.

        Examples
        --------
        >>> from eddyline.mesh.split import Split
        >>> classes = RowClass((0, 1), 0.5, 2.0, 3.0), RowClass((1, 0), 0.5, 1.0, 1.0)
        >>> mesh = Mesh(Tree(Node(0, Split("hour", at=6), Node(0), Node(1))), classes)
        >>> later = Mesh(Tree(Node(1, Split("hour", at=6), Node(1), Node(0))), classes[::-1])
        >>> mesh.is_like(later), mesh.is_like(Mesh(mesh.tree, classes[::-1]))
        (True, False)

        """
        return self._decisions() == other._decisions()

    def _decisions(self) -> tuple[object, ...]:
        """Return what decides about the route of a row."""

        def below(node: Node) -> tuple[object, ...]:
            if node.split is None or node.left is None or node.right is None:
                return self.classes[node.label].route
            return (*node.split.meaning, below(node.left), below(node.right))

        known = {name: frozenset(values) for name, values in self.tree.known.items()}
        return (known, below(self.tree.root))

    def words(self, names: Sequence[str]) -> list[str]:
        """Return a line of text for each leaf of the tree: its rows, and the route they take."""
        return [
            f"{' and '.join(path) or 'all rows'} -> {route_words(self.classes[label].route, names)}"
            for label, path in self.tree.paths()
        ]

    def uncertain_words(self, names: Sequence[str]) -> list[str]:
        """Return the uncertain steps of the routes as text, each once."""
        steps = [s for own in self.classes for s in own.route if isinstance(s, tuple)]
        return list(dict.fromkeys(route_words((step,), names) for step in steps))

    def settled(self) -> Mesh:
        """Return the mesh without uncertain steps, for a plane that cannot choose on the way.

        The operators of a step stay in the order that was the cheapest on the sample.
        """
        classes = tuple(replace(own, route=flat_route(own.route)) for own in self.classes)
        return replace(self, classes=classes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "tree": self.tree.to_dict(),
            "classes": [
                {
                    "route": [list(s) if isinstance(s, tuple) else s for s in c.route],
                    "share": round(c.share, 6),
                    "expected_us": round(c.expected_us, 6),
                    "single_us": round(c.single_us, 6),
                    "visits": [round(v, 6) for v in c.visits],
                    "single_visits": [round(v, 6) for v in c.single_visits],
                }
                for c in self.classes
            ],
            "overhead_us": self.overhead_us,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Mesh:
        """Read what `to_dict` wrote."""
        classes = tuple(
            RowClass(
                tuple(tuple(s) if isinstance(s, list) else s for s in c["route"]),
                c["share"],
                c["expected_us"],
                c["single_us"],
                tuple(c["visits"]),
                tuple(c["single_visits"]),
            )
            for c in plain["classes"]
        )
        return cls(Tree.from_dict(plain["tree"]), classes, plain["overhead_us"])


def flat_route(route: Route) -> tuple[int, ...]:
    """Return a route with the operators of uncertain steps in the order they are written.

    Examples
    --------
    >>> flat_route((2, (3, 1), 0))
    (2, 3, 1, 0)

    """
    return tuple(
        number for step in route for number in ((step,) if isinstance(step, int) else step)
    )


def route_words(route: Route, names: Sequence[str]) -> str:
    """Return a route as the names of its operators.

    Examples
    --------
    >>> route_words((1, (0, 2)), ["a", "b", "c"])
    'b, a|c'

    """
    return ", ".join(
        names[step] if isinstance(step, int) else "|".join(names[n] for n in step) for step in route
    )


def with_uncertainty(route: Sequence[int], drops: BoolArray, cost_us: FloatArray) -> Route:
    """Mark neighbours on a route whose order makes no difference beyond the noise of the sample.

    Parameters
    ----------
    route
        Found for these rows.
    drops
        What each operator does to each of the rows.
    cost_us
        Of each operator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drops = rng.random((400, 3)) < [0.9, 0.3, 0.3]
    >>> with_uncertainty((0, 1, 2), drops, np.ones(3))
    (0, (1, 2))

    """
    steps: list[list[int]] = [[int(route[0])]]
    alive = np.ones(len(drops), dtype=bool)
    for before, after in itertools.pairwise(route):
        here = drops[alive]
        if _differ(here[:, before], here[:, after], cost_us[before], cost_us[after]):
            steps.append([int(after)])
        else:
            steps[-1].append(int(after))
        alive &= ~drops[:, before]
    return tuple(step[0] if len(step) == 1 else tuple(step) for step in steps)


def _differ(drops_a: BoolArray, drops_b: BoolArray, cost_a: float, cost_b: float) -> bool:
    """Return True if a before b costs clearly less than b before a on these rows."""
    if len(drops_a) < UNCERTAIN_ROWS_MIN:
        return True  # too few get this far for the order to matter
    saved = (cost_b + ~drops_b * cost_a) - (cost_a + ~drops_a * cost_b)
    noise = float(saved.std()) / np.sqrt(len(saved))
    return bool(float(saved.mean()) > NOISE_DEVIATIONS * noise)
