"""Classes of new rows with probe orders of their own: found, tried, adopted, dropped; exact."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.arrays import FloatArray
from eddyline.fabric.tactics.class_search import ClassSearch
from eddyline.fabric.trials import SplitTrial, split
from eddyline.joins import join as join_module
from eddyline.joins import probe_routes, row_attributes, search_pace
from eddyline.joins.class_finder import PROBE_CLASSES, ClassFinder
from eddyline.joins.combinations import Combinations
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import JoinQuery
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import (
    ClassProbeOrderChanged,
    ClassSearchFailed,
    Event,
    ProbeClassesAdopted,
    ProbeClassesDropped,
    ProbeClassesFound,
    ProbeClassesReverted,
    Verdict,
)
from eddyline.mesh import Mesh, MeshOptions, Overheads, RowClass, SearchResult, TrainingSet
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node, Tree
from eddyline.ordering import AsWritten
from tests.unit.joins import oracle
from tests.unit.joins.test_probe_order import OTHERS, ROOT, STAR, fixed, make_run
from tests.unit.joins.test_probing import random_query, random_rows, run_batches

SKEWED = np.full((3, 3), 0.95)
np.fill_diagonal(SKEWED, 0.05)
UNIFORM = np.tile([0.2, 0.5, 0.8], (3, 1))


def root_run(rng: np.random.Generator, rows: int, has_partner: FloatArray) -> Run:
    """Return rows of three kinds; a key finds a partner with a chance that depends on the kind.

    Stored keys are even and others odd, so that the keys say nothing.
    """
    kind = rng.integers(0, 3, rows)
    keys = [2 * rng.integers(0, 1000, rows) for _ in OTHERS]
    for column, key in enumerate(keys):
        key[rng.random(rows) >= has_partner[kind, column]] += 1
    noise = rng.random(rows)
    return replace(make_run(*keys), payload=pa.record_batch({"kind": kind, "noise": noise}))


def start(classes: MeshOptions | None = PROBE_CLASSES, seed: int = 1, **options: object) -> Join:
    """Return a join whose other streams have 1,000 rows each."""
    join = Join([STAR], seed=seed, classes=classes, **options)  # type: ignore[arg-type]
    join.run({n: make_run(2 * np.arange(1000)) for n in range(3)}, discard)
    return join


def discard(given: Combinations) -> None:
    pass


def work(join: Join) -> int:
    return sum(stem.counts.probes + stem.counts.candidates for stem in join.stems.values())


def of(events: Sequence[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches come after a few thousand rows, and never slow down."""
    monkeypatch.setattr(search_pace, "PROFILE_WORK", 1 << 12)
    monkeypatch.setattr(search_pace, "SEARCH_WORK", 1 << 14)
    monkeypatch.setattr(search_pace, "FACTOR_MAX", 1)


# --- exact -----------------------------------------------------------------------------------


class RandomFinder(ClassFinder):
    """Finds another mesh after every slice, or none."""

    def find(
        self, costs: FloatArray, current: Mesh | None
    ) -> tuple[SearchResult, TrainingSet] | None:
        rng, nodes = self._rng, len(costs)
        routes = [tuple(rng.permutation(nodes).tolist()) for _ in range(3)]
        if nodes > 2:  # the first two steps are uncertain
            routes[2] = ((routes[2][0], routes[2][1]), *routes[2][2:])
        split = Split(str(rng.choice(self.attributes)), at=int(rng.integers(0, 3)))
        other = Split(str(rng.choice(self.attributes)), at=int(rng.integers(0, 3)))
        tree = Tree(Node(0, split, Node(0), Node(1, other, Node(1), Node(2))))
        mesh = Mesh(tree, tuple(RowClass(route, 1 / 3, 1.0, 1.0) for route in routes))
        drops = np.asarray(rng.random((30, nodes)) < 0.5)
        found = mesh if rng.random() < 0.8 else None
        return SearchResult(found, 1, 0.0, "test"), TrainingSet({}, drops, costs)


class RandomVerdict(SplitTrial):
    """Ends at the next slice, with any verdict."""

    is_over = True  # type: ignore[assignment]

    def verdict(self, cost_us: FloatArray) -> Verdict:
        return "kept" if self.rows[0] % 2 else "reverted"


@settings(max_examples=80)
@given(seed=st.integers(0, 10**9))
def test_results_do_not_depend_on_the_classes(seed: int) -> None:
    rng = random.Random(seed)
    streams, slots, batches = rng.randint(2, 4), rng.randint(1, 4), rng.randint(2, 5)
    queries = [random_query(rng, slot, streams) for slot in range(slots)]
    rows = random_rows(rng, streams, slots, batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_module, "ClassFinder", RandomFinder)
        patch.setattr(probe_routes, "SplitTrial", RandomVerdict)
        join = Join(queries, seed=seed)
        for tree in join._trees:
            tree._slice_rows = rng.randint(1, 3)
        found = run_batches(queries, rows, batches, join)
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


def test_the_random_finder_brings_classes_into_use() -> None:
    seen: set[str] = set()
    for seed in range(60):
        rng = random.Random(seed)
        queries = [random_query(rng, slot, 4) for slot in range(3)]
        rows = random_rows(rng, 4, 3, 5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(join_module, "ClassFinder", RandomFinder)
            patch.setattr(probe_routes, "SplitTrial", RandomVerdict)
            join = Join(queries, seed=seed)
            for tree in join._trees:
                tree._slice_rows = 2
            run_batches(queries, rows, 5, join)
        seen |= {event.kind for event in join.take_events()}
    assert {"ProbeClassesAdopted", "ProbeClassesReverted", "ProbeClassesDropped"} <= seen


# --- what they save ----------------------------------------------------------------------------


def compared(has_partner: FloatArray, rows: int) -> tuple[float, list[Event]]:
    """Return the work in one order over the work with classes, and the events."""
    counts, results = [], []
    for classes in (None, PROBE_CLASSES):
        join = start(classes)
        before, found = work(join), []
        rng = np.random.default_rng(3)
        join.run({3: root_run(rng, rows, has_partner)}, found.append)
        counts.append(work(join) - before)
        results.append(sum(map(len, found)))
    assert results[0] == results[1] > 0
    return counts[0] / counts[1], join.take_events()


def test_classes_pay_on_skewed_rows(fast: None) -> None:
    gain, events = compared(SKEWED, 60_000)
    assert gain >= 1.3
    adopted = of(events, ProbeClassesAdopted)
    assert adopted
    assert isinstance(adopted[0], ProbeClassesAdopted)
    assert adopted[0].role == "stream 3"
    assert adopted[0].after < adopted[0].before
    assert all("kind" in words for words in adopted[0].classes)


def test_uniform_rows_keep_one_order() -> None:
    gain, events = compared(UNIFORM, 250_000)
    assert gain >= 0.98
    assert not of(events, ProbeClassesFound)


def test_searches_become_rarer_where_there_is_nothing_to_find() -> None:
    join = start()
    join.run({3: root_run(np.random.default_rng(3), 250_000, UNIFORM)}, discard)
    finder = join.routes()[ROOT]._finder
    assert finder is not None
    assert finder.pace.factor == 4


def test_rows_that_nothing_tells_apart_are_not_searched(
    fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(self: ClassSearch, *given: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(ClassSearch, "search", search)
    join = start()
    join.run({3: root_run(np.random.default_rng(3), 20_000, UNIFORM)}, discard)
    join = start()
    with pytest.raises(AssertionError, match="searched"):
        join.run({3: root_run(np.random.default_rng(3), 20_000, SKEWED)}, discard)


def test_a_slice_with_few_rows_is_profiled_whole() -> None:
    finder = ClassFinder(seed=1)
    finder.pace.add_work(search_pace.PROFILE_WORK)
    assert finder.choose(np.array([3, 5, 9])).tolist() == [3, 5, 9]
    assert not len(finder.choose(np.arange(9)))  # the next profile comes later
    finder.pace.add_work(search_pace.PROFILE_WORK)
    assert len(finder.choose(np.arange(10_000))) == search_pace.PROFILED_ROWS


def test_classes_that_cost_more_than_they_can_save_are_not_searched_for(
    fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def search(self: ClassSearch, *given: object) -> SearchResult:
        searched.append("searched")
        return SearchResult(None, 0, 0.0, "test")

    monkeypatch.setattr(ClassSearch, "search", search)
    dear = replace(PROBE_CLASSES, overheads=Overheads(test_us=1e3, route_us=1e3))
    for classes, is_searched in ((dear, False), (PROBE_CLASSES, True)):
        join = start(classes)
        join.run({3: root_run(np.random.default_rng(3), 20_000, SKEWED)}, discard)
        assert bool(searched) == is_searched


# --- what they lead to -------------------------------------------------------------------------


def classes_by_kind(routes: Sequence[Sequence[int]]) -> Mesh:
    tree = Tree(
        Node(
            0,
            Split("kind", values=(0,)),
            Node(0),
            Node(1, Split("kind", values=(1,)), Node(1), Node(2)),
        )
    )
    return Mesh(tree, tuple(RowClass(tuple(route), 1 / 3, 1.0, 2.0) for route in routes))


class GivenFinder(ClassFinder):
    """Finds what it is told to, once."""

    result: Mesh | None = None
    has_partner = UNIFORM[0]
    left = 1

    def find(
        self, costs: FloatArray, current: Mesh | None
    ) -> tuple[SearchResult, TrainingSet] | None:
        if not self.left or "kind" not in self.attributes:
            return None
        self.left -= 1
        drops = np.random.default_rng(0).random((60, 3)) >= self.has_partner
        return SearchResult(self.result, 1, 0.0, "test"), TrainingSet({}, drops, costs)


@pytest.fixture
def given_mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[GivenFinder]]:
    monkeypatch.setattr(join_module, "ClassFinder", GivenFinder)
    monkeypatch.setattr(split, "SIDE_ROWS", 2_000)
    yield GivenFinder
    GivenFinder.result = None


GOOD = classes_by_kind([(0, 1, 2), (1, 2, 0), (2, 0, 1)])
BAD = classes_by_kind([(1, 2, 0), (2, 0, 1), (0, 1, 2)])


@pytest.mark.parametrize(
    ("mesh", "kind"), [(GOOD, ProbeClassesAdopted), (BAD, ProbeClassesReverted)]
)
def test_a_trial_decides(given_mesh: type[GivenFinder], mesh: Mesh, kind: type[Event]) -> None:
    given_mesh.result = mesh
    join = start(policy=Steady())
    join.run({3: root_run(np.random.default_rng(4), 12_000, SKEWED)}, discard)
    events = join.take_events()
    assert of(events, ProbeClassesFound)
    assert [event.kind for event in events if event.kind in VERDICTS] == [kind.__name__]
    is_adopted = kind is ProbeClassesAdopted
    assert (join.routes()[ROOT].mesh is not None) == is_adopted


VERDICTS = {"ProbeClassesAdopted", "ProbeClassesReverted", "ProbeClassesDropped"}


class Steady(AsWritten):
    """Keeps every order it is given, but may have classes."""

    learns = True


def adopted(given_mesh: type[GivenFinder]) -> Join:
    """Return a join that has adopted classes by kind."""
    given_mesh.result = GOOD
    join = start()
    join.run({3: root_run(np.random.default_rng(4), 12_000, SKEWED)}, discard)
    assert join.routes()[ROOT].mesh is GOOD
    finder = join.routes()[ROOT]._finder
    assert finder is not None
    assert finder.pace.factor == 4  # the next search may come later
    join.take_events()
    return join


def test_classes_are_dropped_when_one_order_is_better(given_mesh: type[GivenFinder]) -> None:
    given_mesh.result = GOOD
    join = start(policy=Steady())
    join.run({3: root_run(np.random.default_rng(4), 12_000, SKEWED)}, discard)
    finder = join.routes()[ROOT]._finder
    assert isinstance(finder, GivenFinder)
    finder.left, finder.result, finder.has_partner = 1, None, UNIFORM[0, ::-1]  # type: ignore[misc]
    join.run({3: root_run(np.random.default_rng(5), 12_000, UNIFORM[:, ::-1])}, discard)
    assert of(join.take_events(), ProbeClassesDropped)
    assert join.routes()[ROOT].mesh is None
    assert join.routes()[ROOT].default.current == [2, 1, 0]  # what is best for the new rows


def test_the_classes_in_use_are_not_tried_again(given_mesh: type[GivenFinder]) -> None:
    join = adopted(given_mesh)
    finder = join.routes()[ROOT]._finder
    assert isinstance(finder, GivenFinder)
    finder.left = 1
    join.run({3: root_run(np.random.default_rng(5), 12_000, SKEWED)}, discard)
    assert not finder.left
    assert not of(join.take_events(), ProbeClassesFound)


def many_kinds(values: tuple[int, ...]) -> Mesh:
    """Send rows of some kinds along one route; words show six of them."""
    tree = Tree(Node(0, Split("kind", values=values), Node(0), Node(1)))
    return Mesh(tree, tuple(RowClass(route, 1 / 2, 1.0, 2.0) for route in ((0, 1, 2), (2, 1, 0))))


def test_classes_that_only_read_like_those_in_use_are_tried(given_mesh: type[GivenFinder]) -> None:
    join = adopted(given_mesh)
    routes = join.routes()[ROOT]
    in_use, found = many_kinds((0, 10, 11, 12, 13, 14, 15)), many_kinds((0, 10, 11, 12, 13, 14, 2))
    routes._current = routes._make(in_use)
    assert routes._make(found).words() == routes._current.words()
    finder = routes._finder
    assert isinstance(finder, GivenFinder)
    finder.left, finder.result = 1, found  # type: ignore[misc]
    join.run({3: root_run(np.random.default_rng(5), 12_000, SKEWED)}, discard)
    assert of(join.take_events(), ProbeClassesFound)


def test_the_order_of_a_class_follows_its_rows(given_mesh: type[GivenFinder]) -> None:
    join = adopted(given_mesh)
    turned = SKEWED[:, [1, 2, 0]]  # every kind is now dropped by another SteM
    join.run({3: root_run(np.random.default_rng(5), 20_000, turned)}, discard)
    changes = of(join.take_events(), ClassProbeOrderChanged)
    firsts = {}
    for change in changes:
        assert isinstance(change, ClassProbeOrderChanged)
        firsts[change.row_class] = change.after[0]
    assert firsts == {
        "kind = 0": "stream 2 by key 0 = key 2",
        "kind != 0 and kind = 1": "stream 0 by key 0 = key 0",
        "kind != 0 and kind != 1": "stream 1 by key 0 = key 1",
    }


def test_a_later_join_goes_on_with_the_classes(given_mesh: type[GivenFinder]) -> None:
    routes = adopted(given_mesh).routes()
    other = start(routes=routes)
    assert other.routes()[ROOT].mesh is GOOD
    before = work(other)
    other.run({3: root_run(np.random.default_rng(6), 12_000, SKEWED)}, discard)
    alone = start(None)
    alone.run({3: root_run(np.random.default_rng(6), 12_000, SKEWED)}, discard)
    assert work(alone) - before > 1.3 * (work(other) - before)


def test_a_join_of_other_queries_begins_by_itself(given_mesh: type[GivenFinder]) -> None:
    routes = adopted(given_mesh).routes()
    windows = {role: STAR.windows_us[role] for role in (OTHERS[0], ROOT)}
    pair = JoinQuery(0, (OTHERS[0], ROOT), STAR.equalities[:1], windows)
    other = Join([pair], {0: SteM([make_run(2 * np.arange(1000))])}, routes=routes)
    assert other.routes()[ROOT].mesh is None
    rows, found = root_run(np.random.default_rng(6), 1_000, SKEWED), []
    other.run({3: rows}, found.append)
    with_partner = np.isin(rows.keys[0].codes, key_column(pa.array(2 * np.arange(1000))).codes)
    assert sum(map(len, found)) == with_partner.sum() > 0


def test_rows_with_other_columns_are_of_no_class(given_mesh: type[GivenFinder]) -> None:
    join = adopted(given_mesh)
    rows = root_run(np.random.default_rng(7), 1_000, SKEWED)
    join.run({3: replace(rows, payload=pa.record_batch({"other": np.arange(1_000)}))}, discard)
    assert of(join.take_events(), ProbeClassesDropped)
    assert join.routes()[ROOT].mesh is None


def test_a_search_that_fails_does_not_stop_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: ClassFinder, *given: object) -> None:
        raise ValueError("no such day")

    monkeypatch.setattr(ClassFinder, "find", fail)
    found: list[Combinations] = []
    join = start()
    join.run({3: root_run(np.random.default_rng(8), 1_000, SKEWED)}, found.append)
    assert sum(map(len, found))
    failure = of(join.take_events(), ClassSearchFailed)[0]
    assert isinstance(failure, ClassSearchFailed)
    assert failure.reason == "ValueError: no such day"


def test_a_policy_that_never_changes_orders_gets_no_classes(fast: None) -> None:
    join = start(policy=fixed((0, 1, 2)))
    join.run({3: root_run(np.random.default_rng(9), 30_000, SKEWED)}, discard)
    assert not [event for event in join.take_events() if event.changes_routes]


# --- attributes --------------------------------------------------------------------------------


def test_keys_are_attributes_with_their_values() -> None:
    whole = pa.array([-5, None, 2**62], pa.int64())
    words = pa.array(["a", None, "b"])
    run = Run(
        [key_column(whole), key_column(words, pa.array([1, None, 1]))],
        np.zeros(3, dtype=np.int64),
        {},
        pa.record_batch({f"c{n}": [n, n, n] for n in range(20)}),
    )
    names = row_attributes.attribute_names(run)
    assert names[:3] == ("key 0", "key 1", "c0")
    assert len(names) == row_attributes.ATTRIBUTES_MAX
    batch = row_attributes.RowAttributes(run)
    assert batch.arrow(0, None).to_pylist() == whole.to_pylist()
    assert batch.arrow(1, np.array([2, 0])).to_pylist() == ["b", "a"]
    assert batch.arrow(3, np.array([1])).to_pylist() == [1]
