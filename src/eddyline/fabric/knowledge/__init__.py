"""What was learnt, in a form that travels: one class for each tactic, with its merging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eddyline.fabric.knowledge.content import ContentKnowledge, PairKnowledge
from eddyline.fabric.knowledge.mesh import MeshKnowledge
from eddyline.fabric.knowledge.order import OrderKnowledge

Knowledge = OrderKnowledge | MeshKnowledge | ContentKnowledge

_KINDS: dict[str, type[OrderKnowledge] | type[MeshKnowledge] | type[ContentKnowledge]] = {
    cls.kind: cls for cls in (OrderKnowledge, MeshKnowledge, ContentKnowledge)
}


def knowledge_from_dict(plain: dict[str, Any]) -> Knowledge:
    """Read what the `to_dict` of one of the classes wrote."""
    return _KINDS[plain["kind"]].from_dict(plain)


def merge_knowledge(parts: Sequence[Knowledge]) -> Knowledge:
    """Return what several workers know of one segment, as one.

    Workers of the same plan have the same kind of knowledge. After a plan with other columns they
    may differ: classes count for more than one order.
    """
    contents = [part for part in parts if isinstance(part, ContentKnowledge)]
    if contents:
        return ContentKnowledge.merge(contents)
    orders = [part for part in parts if isinstance(part, OrderKnowledge)]
    meshes = [part for part in parts if isinstance(part, MeshKnowledge)]
    if meshes:
        return MeshKnowledge.merge([*meshes, *[MeshKnowledge(order) for order in orders]])
    return OrderKnowledge.merge(orders)


__all__ = [
    "ContentKnowledge",
    "Knowledge",
    "MeshKnowledge",
    "OrderKnowledge",
    "PairKnowledge",
    "knowledge_from_dict",
    "merge_knowledge",
]
