"""Rules of the mesh tactic: rusters, windows of correlated rows, and trials that decide."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric import Router
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.fabric.tactics.class_search import ROWS_WANTED
from eddyline.fabric.tactics.classes import ALL_CLASSES, UNCLASSIFIED, ClassesInUse
from eddyline.fabric.tactics.mesh import SPARE_ROWS, MeshTactic
from eddyline.fabric.totals import Totals
from eddyline.fabric.trials import SplitTrial, split
from eddyline.journal.events import (
    ClassesConfirmed,
    ClassesDropped,
    ClassesFound,
    DriftDetected,
    TrialEnded,
)
from eddyline.mesh import Mesh, MeshOptions, RowClass, SearchResult, TrainingSet
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


#: The worst routes for each kind of rows, and a tree that tells the kinds apart.
WORST = [(1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
KINDS = Tree(
    Node(
        0,
        Split("kind", values=("k1",)),
        Node(1),
        Node(2, Split("kind", values=("k2",)), Node(2), Node(0)),
    )
)


class TestTrialsDecide:
    def bad_mesh(self) -> Mesh:
        """Send every kind along the worst route for it."""
        classes = tuple(RowClass(route, 1 / 3, 1.0, 2.0, (1.0,) * OPERATORS) for route in WORST)
        return Mesh(KINDS, classes)

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


def test_spare_rows_are_profiled_only_until_a_search_has_enough() -> None:
    router = make_router("mesh")
    tactic = router.segments[0].tactic
    assert tactic.profile_demand().spare_rows == SPARE_ROWS
    route_all(router, make_data(0, 20_000)[0])
    assert len(tactic.class_search) >= ROWS_WANTED
    assert tactic.profile_demand().spare_rows == 0


class TestPromises:
    """Classes in use are watched, and doubted as soon as their rows show that they have changed."""

    KINDS = 8

    def classes(self) -> tuple[ClassesInUse, OperatorArray]:
        tree = Tree(Node(0), {"kind": tuple(range(self.KINDS))})
        mesh = Mesh(tree, (RowClass((0, 1), 1 / 8, 1.5, 2.0, (1.0, 0.5)),) * self.KINDS)
        operators = make_router("mesh").operators[:2]
        array = OperatorArray(operators, 0, Totals(2), (1.0, 1.0))
        return ClassesInUse(mesh, {"kind": 0}, 2, 0), array

    def chunks_to_alarm(self, factors: list[float]) -> tuple[int, DriftDetected | None]:
        """Return after how many chunks of 300 rows a class there is an alarm, and the alarm."""
        classes, array = self.classes()
        for chunk in range(1, 30):
            classes.begin_chunk()
            for label, factor in enumerate(factors):
                seen = (np.array([[300, 150], [150, 0]]) * factor).astype(int)
                classes.count(label, RouteTrace(None, 300, [], None, seen, np.zeros(2)))
            drift = classes.broken_promise(array)
            if drift is not None:
                return chunk, drift
        return 30, None

    def test_many_classes_that_change_at_once_are_noticed_together(self) -> None:
        # Twice what was promised: 0.8 too much for 2,400 rows a chunk, against 4,096.
        chunks, drift = self.chunks_to_alarm([2.0] * self.KINDS)
        assert chunks == 3
        assert drift.row_class == ALL_CLASSES
        assert (drift.expected_us, drift.measured_us) == (1.5, 3.0)

    def test_a_class_that_changes_alone_is_named(self) -> None:
        chunks, drift = self.chunks_to_alarm([2.0, *[0.9] * (self.KINDS - 1)])
        assert chunks == 18  # 0.8 too much for 300 rows a chunk
        assert drift.row_class == "class all rows -> p0, p1"

    def test_classes_that_make_up_for_each_other_keep_the_promise(self) -> None:
        assert self.chunks_to_alarm([1.3, 0.7] * 4) == (30, None)


def test_rows_that_cost_more_than_in_one_order_leave_the_classes_at_once() -> None:
    for single, verdict in ((0.6, True), (1.5, False)):
        classes = [RowClass(r, 1 / 3, 12.0, 24.0, (0.3,) * 4, (single,) * 4) for r in WORST]
        router = make_router("mesh", budget=0.0)
        tactic = router.segments[0].tactic
        tactic.class_search.attributes = {"kind": OPERATORS + 1}
        tactic._schedule.allows = lambda search: False
        tactic._adopt(Mesh(KINDS, tuple(classes)))
        columns, passed = make_data(1, 20_000)
        assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
        assert len(router.journal.of(DriftDetected)) >= 1
        assert bool(router.journal.of(ClassesDropped)) == verdict
        assert (tactic.mesh is None) == verdict


class TestSearchesWhileClassesAreInUse:
    SEARCH = SearchResult(None, 5, 0.01, "plateau", 1.0, 0.1, 2.0)

    def tactic(self) -> tuple[Router, MeshTactic]:
        router = make_router("mesh", budget=0.0)
        tactic = router.segments[0].tactic
        tactic.class_search.attributes = {"kind": OPERATORS + 1}
        tactic._schedule.allows = lambda search: False  # no search but this one
        tactic._adopt(self.mesh())
        route_all(router, make_data(0, 5_000)[0])
        return router, tactic

    def mesh(self, visits: float = 0.4, first: int = 0) -> Mesh:
        tree = Tree(
            Node(
                0,
                Split("kind", values=("k1",)),
                Node(1),
                Node(2, Split("kind", values=("k2",)), Node(2), Node(0)),
            )
        )
        routes = [(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1)]
        routes = routes[first:] + routes[:first]
        return Mesh(tree, tuple(RowClass(r, 1 / 3, 12.0, 20.0, (visits,) * 4) for r in routes))

    def search_finds(self, tactic: MeshTactic, mesh: Mesh) -> None:
        tactic.class_search.training_set = lambda cost_us: TrainingSet({}, np.zeros((9, 4)), [1])
        found = dataclasses.replace(self.SEARCH, mesh=mesh)
        tactic.class_search.search = lambda *given: found
        tactic._search(1.0)

    def test_what_is_in_use_is_not_tried_again(self) -> None:
        router, tactic = self.tactic()
        in_use = tactic.mesh
        self.search_finds(tactic, self.mesh(visits=0.35))
        assert tactic._trial is None
        assert tactic.mesh is in_use
        assert len(router.journal.of(ClassesConfirmed)) == 1
        assert not router.journal.of(ClassesFound)

    def test_other_routes_are_tried(self) -> None:
        router, tactic = self.tactic()
        self.search_finds(tactic, self.mesh(first=1))
        assert tactic._trial is not None
        assert router.journal.of(ClassesFound)

    def test_the_same_routes_promise_something_else_once_rows_have_changed(self) -> None:
        _, tactic = self.tactic()
        tactic._is_promise_broken = True
        again = self.mesh(visits=0.35)
        self.search_finds(tactic, again)
        assert tactic._trial is None
        assert tactic.mesh is again
        assert not tactic._is_promise_broken

    def test_rows_that_change_end_a_trial(self) -> None:
        router, tactic = self.tactic()
        self.search_finds(tactic, self.mesh(first=1))
        columns, passed = make_data(1, 30_000, offset=3)  # every class on the worst of its routes
        split_rows = split.SIDE_ROWS
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split, "SIDE_ROWS", 100 * split_rows)
            assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
        assert [r.event.verdict for r in router.journal.of(TrialEnded)][-1] == "interrupted"
        assert len(router.journal.of(DriftDetected)) == 1  # not again while a search is awaited
        assert tactic._schedule.is_urgent

    def test_rows_that_change_end_the_pause_after_reverted_trials(self) -> None:
        router, tactic = self.tactic()
        schedule = tactic._schedule
        schedule.note_trial(is_kept=False)
        assert schedule._paused_until_rows > router.totals.rows + 30_000
        route_all(router, make_data(1, 30_000, offset=3)[0])
        assert router.journal.of(DriftDetected)
        assert schedule._paused_until_rows == 0


class DecidedTrial(SplitTrial):
    """A trial that is over, and better off with what is on trial: one order for all rows."""

    is_over = True

    def verdict(self, cost_us):
        return "kept"


def test_classes_that_have_just_lost_their_trial_keep_no_promise(monkeypatch) -> None:
    """Both may happen in one chunk: drift within classes, and the end of their trial."""
    router = make_router("mesh")
    route_all(router, make_data(0, 40_000)[0])
    tactic = router.segments[0].tactic
    assert tactic.mesh is not None
    tactic._trial = DecidedTrial(("classes",), ("one order",), OPERATORS, (tactic.mesh, None))
    tactic._tried = tactic._classes_of(None)
    drift = DriftDetected(row_class="some class", expected_us=1.0, measured_us=2.0)
    monkeypatch.setattr(ClassesInUse, "broken_promise", lambda self, array: drift)
    columns, passed = make_data(1, 1_000)
    assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
    assert tactic.mesh is None
    assert router.journal.of(TrialEnded)[-1].event.verdict == "kept"
