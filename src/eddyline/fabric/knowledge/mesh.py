"""What is known where classes of rows have routes of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eddyline.fabric.knowledge.order import Costs, OrderKnowledge, check_version
from eddyline.mesh import Mesh


@dataclass(frozen=True)
class MeshKnowledge:
    """A mesh, what its classes have cost, and the order of rows that belong to no class.

    Parameters
    ----------
    default
        What is known of the default route.
    mesh
        The mesh in use; None while one order is as good.
    class_rows
        Rows of each class; those of no known class last.
    class_seen
        Evaluations of each predicate, by class in the same order.
    rejected
        Columns that cannot classify rows, and why.
    searches, searched_rows
        Number of class searches so far, and the rows of the last one.

    """

    kind: ClassVar[str] = "mesh"
    version: ClassVar[int] = 1

    default: OrderKnowledge
    mesh: Mesh | None = None
    class_rows: tuple[int, ...] = ()
    class_seen: tuple[tuple[int, ...], ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    searches: int = 0
    searched_rows: int = 0

    @property
    def order(self) -> tuple[int, ...]:
        """The order of rows that belong to no class."""
        return self.default.order

    @property
    def cost_us(self) -> Costs:
        """Cost of each predicate, in microseconds a row."""
        return self.default.cost_us

    @property
    def attributes(self) -> tuple[str, ...]:
        """Columns that rows are classified by."""
        return () if self.mesh is None else tuple(self.mesh.tree.attributes)

    @classmethod
    def merge(cls, parts: Sequence[MeshKnowledge]) -> MeshKnowledge:
        """Return the classes that most rows were routed by, with the rows of all who use them."""
        best = max(parts, key=lambda part: sum(part.class_rows) if part.mesh else -1)
        alike = [part for part in parts if part.mesh is not None and part.mesh == best.mesh]
        return cls(
            OrderKnowledge.merge([part.default for part in parts]),
            best.mesh,
            _sum([part.class_rows for part in alike]) if alike else best.class_rows,
            tuple(map(tuple, _sum([part.class_seen for part in alike])))
            if alike
            else best.class_seen,
            {
                name: why
                for part in parts
                for name, why in part.rejected.items()
                if name not in best.attributes
            },
            best.searches,
            best.searched_rows,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "default": self.default.to_dict(),
            "mesh": None if self.mesh is None else self.mesh.to_dict(),
            "class_rows": list(self.class_rows),
            "class_seen": [list(seen) for seen in self.class_seen],
            "rejected": dict(self.rejected),
            "searches": self.searches,
            "searched_rows": self.searched_rows,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> MeshKnowledge:
        """Read what `to_dict` wrote."""
        check_version(cls, plain)
        return cls(
            OrderKnowledge.from_dict(plain["default"]),
            None if plain["mesh"] is None else Mesh.from_dict(plain["mesh"]),
            tuple(plain["class_rows"]),
            tuple(tuple(seen) for seen in plain["class_seen"]),
            dict(plain["rejected"]),
            plain["searches"],
            plain["searched_rows"],
        )


def _sum(parts: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(np.sum([np.array(part) for part in parts], axis=0).tolist())
