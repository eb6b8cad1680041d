"""What the report says of classes: both sides of a saving are priced with the same costs."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.mesh import Mesh, RowClass
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node, Tree
from eddyline.spark.common.class_lines import ClassCounts, class_lines

MESH = Mesh(
    Tree(Node(0, Split("hour", at=6), Node(0), Node(1))),
    (
        RowClass((1, 0), 0.3, 2.0, 3.0, visits=(0.5, 1.0), single_visits=(1.0, 0.8)),
        RowClass((0, 1), 0.7, 1.0, 1.0, visits=(1.0, 0.2), single_visits=(1.0, 0.2)),
    ),
)


def test_without_counts_the_numbers_are_those_of_the_search() -> None:
    first, second = class_lines(MESH, ["p", "q"], "in Spark")
    assert (first.rows_in_words, first.route, first.cost_us, first.single_us) == (
        "hour <= 6",
        "q, p",
        2.0,
        3.0,
    )
    assert second.saving == 0.0


def test_costs_that_have_changed_since_the_search_are_no_loss() -> None:
    rows = np.array([400, 600, 0])
    seen = np.array([[200, 400], [600, 120], [0, 0]])
    # Ten times the costs of the search: the classes are as good as they were.
    counts = ClassCounts(rows, seen, np.array([20.0, 10.0]))
    first, second = class_lines(MESH, ["p", "q"], "in Python", counts)
    assert (first.share, first.cost_us) == (0.4, 20.0)
    assert first.single_us == pytest.approx(28.0)
    assert first.saving == pytest.approx(1 - 20 / 28)
    assert second.saving == pytest.approx(0.0)
