"""What was learnt travels as JSON, and what several workers know becomes one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from eddyline.attributes.layout import Layout
from eddyline.errors import EddylineError
from eddyline.fabric.knowledge import (
    ContentKnowledge,
    MeshKnowledge,
    OrderKnowledge,
    PairKnowledge,
    knowledge_from_dict,
    merge_knowledge,
)
from eddyline.mesh import Mesh, RowClass
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node, Tree
from eddyline.profile import RateReference

TUPLES = np.array([[True, False], [True, True], [False, True]])
MESH = Mesh(
    Tree(Node(0, Split("hour", at=6), Node(0), Node(1))),
    (RowClass((1, 0), 0.3, 2.0, 3.0, (1.0, 1.0)), RowClass((0, 1), 0.7, 1.0, 1.0, (1.0, 1.0))),
)


def order(*, first: int = 0, rows: float = 10.0, tuples: np.ndarray = TUPLES) -> OrderKnowledge:
    reference = RateReference((rows, rows / 2), (1.0, 1.0), 0.01)
    return OrderKnowledge((first, 1 - first), (2.0, None), tuples, reference)


def mesh(rows: tuple[int, ...], of: Mesh | None = MESH, **other) -> MeshKnowledge:
    seen = tuple((count, count // 2) for count in rows)
    return MeshKnowledge(order(), of, rows, seen, **other)


def content(first: int, rejected: dict[str, str], attribute: str, rows: int) -> ContentKnowledge:
    layout = Layout(2, 0, is_discrete=False, cuts=(1.5 * rows,))
    pair = PairKnowledge(attribute, layout, (0.5, 0.1, 0.3))
    order, costs_us = (first, 1 - first), (1.0, 3.0 + rows)
    pairs = {"a": attribute}
    return ContentKnowledge(order, costs_us, (pair, None), (0.5, 0.2), rows, rejected, pairs)


EVERY_KIND = [order(), mesh((5, 6, 7), rejected={"id": "constant"}), content(0, {}, "site", 7)]


@pytest.mark.parametrize("knowledge", EVERY_KIND, ids=lambda k: k.kind)
class TestEveryKind:
    def test_travels_as_json(self, knowledge) -> None:
        travelled = knowledge_from_dict(json.loads(json.dumps(knowledge.to_dict())))
        assert travelled == knowledge
        assert travelled.to_dict() == knowledge.to_dict()

    def test_one_part_merges_to_itself(self, knowledge) -> None:
        merged = merge_knowledge([knowledge])
        assert (merged.order, merged.cost_us) == (knowledge.order, knowledge.cost_us)
        assert type(merged) is type(knowledge)

    def test_another_version_is_refused_by_name(self, knowledge) -> None:
        plain = {**knowledge.to_dict(), "version": 99}
        with pytest.raises(EddylineError, match=f"'{knowledge.kind}' has the version 99"):
            knowledge_from_dict(plain)


class TestOrders:
    def test_the_order_that_costs_least_on_all_tuples_wins(self) -> None:
        # The second predicate drops everything, so it should come first.
        drops = np.array([[False, True]] * 5)
        merged = OrderKnowledge.merge([order(tuples=drops), order(first=1, tuples=drops)])
        assert merged.order == (1, 0)

    def test_costs_are_means_of_what_was_measured(self) -> None:
        other = dataclasses.replace(order(), cost_us=(4.0, 6.0))
        assert OrderKnowledge.merge([order(), other]).cost_us == (3.0, 6.0)

    def test_the_reference_that_rests_on_most_rows_of_the_chosen_order_is_kept(self) -> None:
        parts = [order(first=1, rows=rows) for rows in (10.0, 40.0, 20.0)]
        parts.append(order(first=0, rows=900.0))  # of another order, which costs more here
        merged = OrderKnowledge.merge(parts)
        assert merged.order == (1, 0)
        assert merged.expected is not None
        assert merged.expected.seen[0] == 40.0

    def test_tuples_are_bounded_and_of_all_workers(self) -> None:
        many = [order(tuples=np.repeat(TUPLES[[n]], 800, axis=0)) for n in range(3)]
        tuples = OrderKnowledge.merge(many).tuples
        assert len(tuples) <= 1_003
        every = {tuple(row) for row in TUPLES.tolist()}
        assert {tuple(row) for row in tuples.tolist()} == every
        assert {tuple(row) for row in tuples[-200:].tolist()} == every  # a window keeps the newest


class TestMeshes:
    def test_rows_of_all_who_use_the_same_mesh_add_up(self) -> None:
        merged = MeshKnowledge.merge([mesh((1, 2, 3)), mesh((10, 20, 30)), mesh((9,), None)])
        assert merged.class_rows == (11, 22, 33)
        assert merged.class_seen == ((11, 5), (22, 11), (33, 16))
        assert merged.mesh == MESH

    def test_the_mesh_that_most_rows_took_wins(self) -> None:
        other = dataclasses.replace(MESH, overhead_us=1.0)
        merged = MeshKnowledge.merge([mesh((1, 1, 1)), mesh((5, 5, 5), other)])
        assert merged.mesh == other
        assert merged.class_rows == (5, 5, 5)

    def test_a_column_that_classifies_rows_is_not_rejected(self) -> None:
        parts = [mesh((9, 9, 9)), mesh((1,), None, rejected={"hour": "constant", "id": "x"})]
        assert MeshKnowledge.merge(parts).rejected == {"id": "x"}

    def test_reasons_of_all_workers_are_kept(self) -> None:
        parts = [mesh((1, 1, 1), rejected={"a": "x"}), mesh((1, 1, 1), rejected={"b": "y"})]
        assert MeshKnowledge.merge(parts).rejected == {"a": "x", "b": "y"}

    def test_knowledge_of_one_order_counts_for_the_default_route(self) -> None:
        drops = np.array([[False, True]] * 50)
        merged = merge_knowledge([mesh((1, 1, 1)), order(first=1, tuples=drops)])
        assert isinstance(merged, MeshKnowledge)
        assert merged.mesh == MESH
        assert merged.order == (1, 0)


def test_content_takes_everything_but_costs_from_the_worker_with_the_most_rows() -> None:
    parts = [
        content(1, {"x": "long"}, "site", rows=10),
        content(0, {"y": "constant"}, "hour", rows=30),
        content(1, {}, "site", rows=20),
    ]
    merged = merge_knowledge(parts)
    assert dataclasses.replace(merged, cost_us=parts[1].cost_us) == parts[1]
    assert merged.cost_us == (1.0, 23.0)
