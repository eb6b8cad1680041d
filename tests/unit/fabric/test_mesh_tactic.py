"""Rules of the mesh tactic: rusters, windows of correlated rows, and trials that decide."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.tactics.classes import UNCLASSIFIED, ClassesInUse
from eddyline.fabric.trials import split
from eddyline.journal.events import TrialEnded
from eddyline.mesh import Mesh, MeshOptions, RowClass
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node, Tree
from eddyline.operators import Batch, ColumnReader
from tests.unit.fabric.test_classes import OPERATORS, make_data, make_router, route_all

TREE = Tree(
    Node(
        0,
        Split("kind", values=(0,)),
        Node(0),
        Node(1, Split("kind", values=(1,)), Node(1), Node(2)),
    )
)
MESH = Mesh(TREE, tuple(RowClass((n, 1 - n % 2), 1 / 3, 1.0, 2.0) for n in (0, 1, 0)))


def groups_of(kinds: list[int], options: MeshOptions | None = None) -> dict[int, list[int]]:
    """Return the rows of each ruster, by class."""
    batch = Batch([pa.array(kinds)], [ColumnReader("kind")], len(kinds))
    classes = ClassesInUse(MESH, {"kind": 0}, 2, 0, options)
    return {
        label: list(range(len(kinds))) if rows is None else list(rows)
        for label, rows in classes.group(batch, None)
    }


def sizes(groups: dict[int, list[int]]) -> dict[int, int]:
    return {label: len(rows) for label, rows in groups.items()}


class TestRusterMinimum:
    def test_a_class_with_fewer_rows_than_a_ruster_takes_the_default_route(self) -> None:
        kinds = [0] * 2_000 + [1] * 99 + [2] * 99
        assert sizes(groups_of(kinds)) == {0: 2_000, UNCLASSIFIED: 198}
        kinds = [0] * 2_000 + [1] * 100 + [2] * 100
        assert sizes(groups_of(kinds)) == {0: 2_000, 1: 100, 2: 100}

    def test_too_few_for_the_default_route_too_travel_with_the_largest_class(self) -> None:
        kinds = [0] * 500 + [1] * 1_500 + [2] * 99
        assert sizes(groups_of(kinds)) == {0: 500, 1: 1_599}

    def test_small_batches_have_a_smaller_minimum(self) -> None:
        assert sizes(groups_of([0] * 150 + [1] * 10)) == {0: 150, 1: 10}
        assert sizes(groups_of([0] * 151 + [1] * 9)) == {0: 160}

    def test_it_can_be_set(self) -> None:
        kinds = [0] * 2_000 + [1] * 99 + [2] * 99
        small = MeshOptions(ruster_rows_min=99)
        assert sizes(groups_of(kinds, small)) == {0: 2_000, 1: 99, 2: 99}
        large = MeshOptions(ruster_rows_min=1_000)
        assert sizes(groups_of([0] * 1_500 + [1] * 600 + [2] * 600, large)) == {
            0: 1_500,
            UNCLASSIFIED: 1_200,
        }

    def test_every_row_is_in_one_ruster(self) -> None:
        kinds = np.random.default_rng(0).integers(0, 5, 999).tolist()
        groups = groups_of(kinds, MeshOptions(ruster_rows_min=150))
        assert sorted(row for rows in groups.values() for row in rows) == list(range(999))


class TestCorrelatedRows:
    OPTIONS = MeshOptions(correlated_rows=100, ruster_rows_min=1)

    def test_the_first_row_of_a_window_decides_for_all(self) -> None:
        kinds = [0, *[1] * 99, 1, *[2] * 99, 2, *[0] * 49]
        groups = groups_of(kinds, self.OPTIONS)
        assert groups == {
            0: list(range(100)),
            1: list(range(100, 200)),
            2: list(range(200, 250)),
        }

    def test_one_row_a_window_is_classified(self, monkeypatch: pytest.MonkeyPatch) -> None:
        classified: list[int] = []
        classify = Tree.classify

        def counted(self: Tree, columns: dict[str, pa.Array]) -> np.ndarray:
            classified.append(len(columns["kind"]))
            return classify(self, columns)

        monkeypatch.setattr(Tree, "classify", counted)
        groups_of([0] * 1_000, self.OPTIONS)
        groups_of([0] * 1_000)
        assert classified == [10, 1_000]

    @pytest.mark.parametrize("seed", range(3))
    def test_the_verdict_is_the_same_and_classes_pay_where_rows_come_in_runs(self, seed) -> None:
        columns, passed = make_data(seed, 60_000)
        kinds = np.array([kind or "" for kind in columns[5].to_pylist()])
        # Runs of 200 rows of one kind, ids as they arrive.
        order = np.argsort(kinds, kind="stable")
        runs = np.array_split(order, 300)
        order = np.concatenate([runs[n] for n in np.random.default_rng(seed).permutation(300)])
        columns = [column.take(pa.array(order)) for column in columns]
        columns[4] = pa.array(np.arange(60_000))
        router = make_router(MeshOptions(correlated_rows=50), seed)
        verdict = route_all(router, columns)
        assert verdict.tolist() == passed[order].all(axis=1).tolist()
        assert router.segments[0].tactic.mesh is not None
        assert router.totals.seen.sum() / 60_000 < 1.9


class TestTrialsDecide:
    def bad_mesh(self) -> Mesh:
        """Send every kind along the worst route for it."""
        worst = [(1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
        tree = Tree(
            Node(
                0,
                Split("kind", values=("k1",)),
                Node(1),
                Node(2, Split("kind", values=("k2",)), Node(2), Node(0)),
            )
        )
        classes = tuple(RowClass(route, 1 / 3, 1.0, 2.0, (1.0,) * OPERATORS) for route in worst)
        return Mesh(tree, classes)

    def run_trial(self) -> tuple[object, list[str], weakref.ref[Mesh]]:
        router = make_router("mesh", budget=0.0)
        tactic = router.segments[0].tactic
        tactic.class_search.attributes = {"kind": OPERATORS + 1}
        tactic._schedule.allows = lambda search: False  # no search but this one
        route_all(router, make_data(0, 5_000)[0])
        mesh = self.bad_mesh()
        tactic._start_trial(mesh)
        reference = weakref.ref(mesh)
        del mesh
        columns, passed = make_data(1, 20_000)
        assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
        verdicts = [
            record.event.verdict
            for record in router.journal.of(TrialEnded)
            if record.event.subject == "classes"
        ]
        return tactic, verdicts, reference

    def test_a_mesh_that_costs_more_is_not_adopted(self) -> None:
        tactic, verdicts, _ = self.run_trial()
        assert verdicts == ["reverted"]
        assert tactic.mesh is None

    def test_a_refused_mesh_is_not_kept(self) -> None:
        tactic, _, reference = self.run_trial()
        gc.collect()
        assert tactic is not None
        assert reference() is None

    def test_both_sides_need_enough_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(split, "SIDE_ROWS", 10**9)
        tactic, verdicts, _ = self.run_trial()
        assert verdicts == []
        assert tactic._trial is not None


def test_the_first_search_is_the_first() -> None:
    search = make_router("mesh").segments[0].tactic.class_search
    assert (search.searches, search.searched_rows, len(search)) == (0, 0, 0)
