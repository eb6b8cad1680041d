"""Classes of new rows, each with its own order in which to ask SteMs.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import IntArray
from eddyline.fabric.tactics.classes import UNCLASSIFIED, ClassesInUse
from eddyline.joins.probe_order import ProbeOrder
from eddyline.journal.events import Names
from eddyline.mesh import Mesh, flat_route
from eddyline.operators import Batch


@dataclass(frozen=True)
class ProbeGroup:
    """Rows of a slice that ask SteMs in the same order.

    Parameters
    ----------
    rows
        Positions among the new rows.
    order
        Their order; it learns from them.
    label
        Their class.
    side
        Of the trial that they take part in: 0 for what is in use, 1 for what is tried.

    """

    rows: IntArray
    order: ProbeOrder
    label: int = UNCLASSIFIED
    side: int = 0


class ClassOrders:
    """The classes of a mesh, or one class of all rows, with the orders in use.

    A class begins with the order that the mesh has for it, which goes on learning from its rows.

    Parameters
    ----------
    mesh
        Classifier and routes over the nodes of the join tree; None for one order.
    default
        The order of rows that belong to no class.
    attributes
        Names of the columns that may classify rows.
    names
        Of the nodes, for events.

    """

    def __init__(
        self, mesh: Mesh | None, default: ProbeOrder, attributes: Sequence[str], names: Names
    ) -> None:
        self.mesh = mesh
        self._default = default
        self._names = names
        # What is uncertain, the policy of the class decides.
        routes = [] if mesh is None else [flat_route(own.route) for own in mesh.classes]
        self._orders = [default.branch(route) for route in routes]
        positions = {name: position for position, name in enumerate(attributes)}
        self._classes = ClassesInUse(mesh, positions, len(names), seed=0)

    def __len__(self) -> int:
        return max(1, len(self._orders))

    def group(self, batch: Batch | None, rows: IntArray, side: int) -> list[ProbeGroup]:
        """Return the rows by class; the batch has the columns that classify them."""
        if batch is None or self.mesh is None:
            return [ProbeGroup(rows, self._default, side=side)]
        self._classes.begin_chunk()
        return [
            ProbeGroup(
                np.asarray(own),
                self._default if label == UNCLASSIFIED else self._orders[label],
                label,
                side,
            )
            for label, own in self._classes.group(batch, rows)
        ]

    def words(self) -> Names:
        """Return which rows ask in which order, in words; nothing for one order."""
        return () if self.mesh is None else tuple(self.mesh.words(self._names))

    def class_words(self, label: int) -> str:
        """Return which rows a class has, in words."""
        assert self.mesh is not None
        paths = [" and ".join(path) for leaf, path in self.mesh.tree.paths() if leaf == label]
        return " or ".join(paths)
