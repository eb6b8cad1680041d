"""Routers that tell rows apart: the same verdict on every route, and the decisions on record."""

import numpy as np
import pyarrow as pa
import pytest

from eddyline.content import ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.rtoken import RToken, Wheel
from eddyline.fabric.tactics.classes import ClassesInUse
from eddyline.fabric.tactics.content import ContentTactic
from eddyline.fabric.tactics.mesh import MeshTactic
from eddyline.journal import Record
from eddyline.journal.events import (
    ClassesDropped,
    ClassesFound,
    DriftDetected,
    NoClassesFound,
    TrialEnded,
)
from eddyline.mesh import Mesh, RowClass
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node, Tree
from eddyline.operators import Batch, ColumnReader, Operator, Outcome


def trials(router: Router, *verdicts: str, subject: str = "classes") -> list[Record]:
    """Return the records of trials that ended with one of the verdicts."""
    ended = [r for r in router.journal.of(TrialEnded) if r.event.subject == subject]
    return [r for r in ended if r.event.verdict in verdicts]


OPERATORS = 4


class Counted(Operator):
    """Answers with a column, and remembers which rows it was asked about."""

    def __init__(self, name, column):
        super().__init__(name, (column,))
        self.asked = []

    def evaluate(self, batch: Batch, rows) -> Outcome:
        passed = batch.arrow(self.columns[0], rows).to_numpy(zero_copy_only=False)
        ids = batch.arrow(OPERATORS, rows).to_numpy()
        self.asked.append(ids)
        return Outcome(passed)


def make_data(seed, rows, kinds=3, offset=0):
    """Rows of several kinds; each kind is dropped by an operator of its own."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, rows)
    selectivity = np.full((kinds, OPERATORS), 0.95)
    for own in range(kinds):
        selectivity[own, (own + offset) % OPERATORS] = 0.05
    passed = rng.random((rows, OPERATORS)) < selectivity[kind]
    columns = [pa.array(passed[:, n]) for n in range(OPERATORS)]
    columns.append(pa.array(np.arange(rows)))
    columns.append(pa.array([f"k{k}" if k else None for k in kind]))
    columns.append(pa.array(rng.random(rows)))
    return columns, passed


def make_router(policy, seed=0, **options):
    names = [f"p{n}" for n in range(OPERATORS)]
    return Router(
        [Counted(name, n) for n, name in enumerate(names)],
        [ColumnReader(name) for name in (*names, "id", "kind", "noise")],
        policy,
        options=RouterOptions(costs_us=(10.0,) * OPERATORS, seed=seed, **options),
        attributes={"id": OPERATORS, "kind": OPERATORS + 1, "noise": OPERATORS + 2},
    )


def route_all(router, columns, batch_rows=5_000):
    verdicts = []
    for begin in range(0, len(columns[0]), batch_rows):
        part = [column.slice(begin, batch_rows) for column in columns]
        verdicts.append(router.route(part, len(part[0])))
    return np.concatenate(verdicts)


@pytest.mark.parametrize("policy", ["auto", "mesh", "content", ContentOptions.paper()])
@pytest.mark.parametrize("seed", range(3))
def test_every_route_gives_the_same_verdict(policy, seed):
    columns, passed = make_data(seed, 60_000)
    verdict = route_all(make_router(policy, seed), columns)
    assert verdict.tolist() == passed.all(axis=1).tolist()


@pytest.mark.parametrize("policy", ["auto", "content"])
def test_empty_and_tiny_batches(policy):
    columns, passed = make_data(1, 3_000)
    router = make_router(policy)
    for begin, length in ((0, 0), (0, 1), (1, 2), (3, 0), (3, 2_997)):
        part = [column.slice(begin, length) for column in columns]
        expected = passed[begin : begin + length].all(axis=1).tolist()
        assert router.route(part, length).tolist() == expected


class TestAuto:
    def test_classes_are_found_tried_and_kept(self):
        columns, _ = make_data(0, 80_000)
        router = make_router("auto")
        route_all(router, columns)
        found, kept = (
            router.journal.of(ClassesFound),
            trials(router, "kept"),
        )
        assert found
        assert kept
        assert kept[0].numbers["after_us"] < kept[0].numbers["before_us"]
        assert set(found[0].numbers["rejected"]) == {"id", "noise"}
        tactic = router.segments[0].tactic
        assert isinstance(tactic, MeshTactic)
        assert tactic.mesh.tree.attributes == ["kind"]
        # 1.2 evaluations a row with classes; 2.5 in one order.
        assert router.totals.seen.sum() / 80_000 < 1.8

    def test_uniform_rows_stay_in_one_order(self):
        rng = np.random.default_rng(0)
        columns, _ = make_data(0, 60_000)
        passed = rng.random((60_000, OPERATORS)) < [0.9, 0.2, 0.5, 0.7]
        columns[:OPERATORS] = [pa.array(passed[:, n]) for n in range(OPERATORS)]
        router = make_router("auto")
        route_all(router, columns)
        assert not router.journal.of(ClassesFound)
        assert not trials(router, "kept")
        assert router.journal.of(NoClassesFound)
        assert router.segments[0].order[0] == 1

    def test_drift_breaks_the_promise_and_new_classes_take_over(self):
        router = make_router("auto")
        before, first = make_data(0, 60_000)
        after, second = make_data(1, 120_000, offset=1)
        verdict = np.concatenate([route_all(router, before), route_all(router, after)])
        assert verdict.tolist() == np.concatenate([first, second]).all(axis=1).tolist()
        drift = [
            r.event for r in router.journal.of(DriftDetected) if r.event.expected_us is not None
        ]
        assert drift
        assert drift[0].measured_us > drift[0].expected_us
        later = [r for r in trials(router, "kept") if r.at_rows > 60_000]
        assert later
        seen = router.totals.seen.sum()
        route_all(router, make_data(2, 20_000, offset=1)[0])
        assert (router.totals.seen.sum() - seen) / 20_000 < 1.5

    def test_classes_that_stop_paying_are_given_up(self):
        router = make_router("auto")
        route_all(router, make_data(0, 60_000)[0])
        assert router.segments[0].tactic.mesh is not None
        rng = np.random.default_rng(3)
        columns, _ = make_data(3, 150_000)
        passed = rng.random((150_000, OPERATORS)) < [0.9, 0.9, 0.9, 0.1]
        columns[:OPERATORS] = [pa.array(passed[:, n]) for n in range(OPERATORS)]
        route_all(router, columns)
        assert router.segments[0].tactic.mesh is None
        assert router.segments[0].order[0] == 3

    def test_rows_of_an_unknown_class_take_the_default_route(self):
        router = make_router("auto")
        route_all(router, make_data(0, 60_000)[0])
        columns, passed = make_data(5, 5_000)
        columns[5] = pa.array(["never seen before"] * 5_000)
        default_before = router.segments[0].tactic.classes.rows[-1]
        assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
        assert router.segments[0].tactic.classes.rows[-1] - default_before >= 5_000

    def test_what_was_learnt_is_handed_on(self):
        router = make_router("auto")
        columns, _ = make_data(0, 60_000)
        route_all(router, columns)
        heir = make_router("auto")
        heir.restore(router.snapshot())
        assert heir.segments[0].tactic.mesh.to_dict() == router.segments[0].tactic.mesh.to_dict()
        assert (
            heir.segments[0].tactic.class_search.rejected
            == router.segments[0].tactic.class_search.rejected
        )
        route_all(heir, columns)
        assert heir.totals.seen.sum() < router.totals.seen.sum()

    def test_training_on_a_sample_finds_the_classes_beforehand(self):
        router = make_router("mesh")
        columns, _ = make_data(0, 1_000)
        router.train(columns, 1_000)
        assert router.segments[0].tactic.mesh is not None
        assert router.totals.rows == 0


def test_searches_are_debts_and_leave_the_order_watched():
    """Paying for a search at once would leave the order without profiles for long."""
    columns, _ = make_data(3, 1_000, kinds=1)
    router = make_router("auto")
    budget = router.segments[0].ledger.budget
    paid, owed = [], []
    budget.pay, budget.owe = paid.append, owed.append
    router.train(columns, 1_000)
    router.train(columns, 1_000)
    assert paid == []
    assert len(owed) == 2


class TestSwapUnderLoad:
    def test_nothing_is_lost_or_judged_twice(self):
        columns, passed = make_data(0, 60_000)
        router = make_router("auto", budget=0.0)
        verdict = route_all(router, columns, batch_rows=3_000)
        assert verdict.tolist() == passed.all(axis=1).tolist()
        assert trials(router, "kept", "reverted")  # there was a swap
        assert router.totals.rows == 60_000
        assert router.totals.kept == int(passed.all(axis=1).sum())


class TestUncertainRoutes:
    def mesh(self):
        tree = Tree(Node(0, Split("kind", values=("k1",)), Node(0), Node(1)))
        classes = (
            RowClass((1, (0, 3), 2), 0.3, 10.0, 20.0, (1.0,) * 4),
            RowClass(((2, 0, 1), 3), 0.7, 10.0, 20.0, (1.0,) * 4),
        )
        return Mesh(tree, classes)

    def test_each_operator_is_applied_exactly_once_to_a_row_that_passes(self):
        columns, passed = make_data(0, 20_000)
        router = make_router("mesh")
        tactic = router.segments[0].tactic
        tactic._adopt(self.mesh())
        tactic.learns = False
        verdict = route_all(router, columns)
        assert verdict.tolist() == passed.all(axis=1).tolist()
        kept = np.flatnonzero(verdict)
        for operator in router.operators:
            asked = np.concatenate(operator.asked)
            assert len(asked) == len(np.unique(asked))
            assert np.isin(kept, asked).all()

    def test_the_wheel_favours_what_drops_more(self):
        wheel = Wheel(3, seed=0)
        draws = []
        for _ in range(200):
            token = RToken(((0, 1, 2),), wheel)
            first = token.pop()
            token.feed_back(first, 100, [10, 90, 50][first], 1.0)
            draws.append(first)
            rest = {token.pop(), token.pop()}
            assert rest | {first} == {0, 1, 2}
            assert not token
        assert draws[100:].count(1) > draws[100:].count(2) > draws[100:].count(0)

    def test_a_wheel_that_is_certain_still_draws_the_others_at_times(self):
        wheel = Wheel(2, seed=0)
        for _ in range(50):
            wheel.feed_back((0, 1), 0, seen=10_000, dropped=9_000)
            wheel.feed_back((0, 1), 1, seen=10_000, dropped=100)
        draws = [wheel.draw((0, 1)) for _ in range(5_000)]
        assert draws.count(1) == pytest.approx(100, abs=40)  # half of 4 %

    @pytest.mark.parametrize("better", [0, 3])
    def test_the_wheel_of_a_class_remembers_what_earlier_rusters_showed(self, better):
        classes, draws = ClassesInUse(self.mesh(), {"kind": 0}, OPERATORS, seed=0), []
        for _ in range(200):
            token = classes.token(0)
            assert token.pop() == 1
            draws.append(token.pop())
            token.feed_back(draws[-1], 1_000, 900 if draws[-1] == better else 100, 1.0)
        assert draws[100:].count(better) > 90

    @pytest.mark.parametrize("seed", range(8))
    def test_the_wheel_finds_the_better_of_correlated_operators(self, seed):
        """Of 100 rows, 0 drops 50 and 1 drops 60; after the other, each drops few."""
        dropped = {(0,): 50, (1,): 60, (0, 1): 15, (1, 0): 5}
        wheel, draws = Wheel(2, seed), []
        for _ in range(150):
            token = RToken(((0, 1),), wheel)
            first = token.pop()
            token.feed_back(first, 10_000, 100 * dropped[(first,)], 1.0)
            left = 100 - dropped[(first,)]
            second = token.pop()
            token.feed_back(second, 100 * left, 100 * dropped[first, second], 1.0)
            draws.append(first)
        assert draws[50:].count(1) > 90

    def test_the_wheel_counts_costs_wherever_an_operator_stands(self):
        wheel, draws = Wheel(2, seed=0), []
        for _ in range(100):
            token = RToken(((0, 1),), wheel)
            draws.append(token.pop())
            token.feed_back(draws[-1], 10_000, 5_000, [1.0, 100.0][draws[-1]])
            last = token.pop()
            token.feed_back(last, 5_000, 2_500, [1.0, 100.0][last])
        assert draws[1:].count(0) > 90


class TestContent:
    def test_the_right_attribute_is_found(self):
        columns, _ = make_data(0, 60_000)
        router = make_router("content")
        route_all(router, columns)
        tactic = router.segments[0].tactic
        assert isinstance(tactic, ContentTactic)
        assert set(tactic.snapshot().pairs.values()) == {"kind"}
        assert tactic.snapshot().rejected["id"].startswith("grows with arrival order")
        assert router.totals.seen.sum() / 60_000 < 1.35  # 1.2 with classes; 2.5 in one order

    def test_an_attribute_that_told_nothing_at_first_is_looked_at_again(self):
        columns, _ = make_data(0, 30_000)
        columns[OPERATORS + 1] = pa.array(["same"] * 30_000)
        router = make_router("content")
        route_all(router, columns)
        tactic = router.segments[0].tactic
        assert tactic.snapshot().rejected["kind"] == "constant"
        route_all(router, make_data(1, 90_000)[0])
        assert "kind" not in tactic.snapshot().rejected
        assert set(tactic.snapshot().pairs.values()) == {"kind"}

    def test_it_follows_when_the_correlation_moves_to_other_operators(self):
        router = make_router("content")
        route_all(router, make_data(0, 40_000)[0])
        route_all(router, make_data(1, 60_000, offset=1)[0])
        seen = router.totals.seen.sum()
        route_all(router, make_data(2, 20_000, offset=1)[0])
        assert (router.totals.seen.sum() - seen) / 20_000 < 1.7


def test_a_class_that_the_mesh_does_not_know_is_learnt():
    router = make_router("auto")
    route_all(router, make_data(0, 60_000)[0])
    columns, passed = make_data(7, 160_000)
    kinds = columns[5].to_pylist()
    columns[5] = pa.array([f"new {kind}" for kind in kinds])
    assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()
    drift = [r.event.row_class for r in router.journal.of(DriftDetected)]
    assert "too many rows have values that no class was learnt from" in drift
    assert "new k1" in str(router.segments[0].tactic.mesh.words(["a", "b", "c", "d"]))


class TestWhatLearningMustNotBreak:
    def test_a_column_of_the_mesh_that_becomes_constant(self):
        router = make_router("auto")
        route_all(router, make_data(0, 60_000)[0])
        assert router.segments[0].tactic.mesh is not None
        columns, _ = make_data(3, 80_000)
        rng = np.random.default_rng(3)
        passed = rng.random((80_000, OPERATORS)) < [0.9, 0.9, 0.9, 0.2]
        columns[:OPERATORS] = [pa.array(passed[:, n]) for n in range(OPERATORS)]
        columns[5] = pa.array(["k1"] * 80_000)
        assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()

    def test_dates_that_python_cannot_hold(self):
        columns, passed = make_data(0, 20_000)
        columns[6] = pa.array(np.full(20_000, 3_000_000, dtype=np.int32)).cast(pa.date32())
        router = make_router("auto")
        assert route_all(router, columns).tolist() == passed.all(axis=1).tolist()

    @pytest.mark.parametrize("policy", ["auto", "content"])
    def test_knowledge_from_a_plan_with_other_columns(self, policy):
        router = make_router(policy)
        columns, passed = make_data(0, 60_000)
        route_all(router, columns)
        names = [f"p{n}" for n in range(OPERATORS)]
        heir = Router(
            [Counted(name, n) for n, name in enumerate(names)],
            [ColumnReader(name) for name in (*names, "id", "noise")],
            policy,
            options=RouterOptions(costs_us=(10.0,) * OPERATORS, seed=0),
            attributes={"noise": OPERATORS + 1, "id": OPERATORS},
        )
        heir.restore(router.snapshot())
        without_kind = [*columns[:5], columns[6]]
        assert route_all(heir, without_kind).tolist() == passed.all(axis=1).tolist()

    def test_a_column_that_changed_its_type(self):
        router = make_router("auto")
        columns, passed = make_data(0, 60_000)
        route_all(router, columns)
        heir = make_router("auto")
        heir.restore(router.snapshot())
        columns[5] = pa.array(np.arange(60_000) % 3)
        assert route_all(heir, columns).tolist() == passed.all(axis=1).tolist()
        assert heir.journal.of(ClassesDropped)

    def test_a_wheel_that_never_drops_anything(self):
        wheel = Wheel(2, seed=0)
        for _ in range(10_000):
            wheel.feed_back((0, 1), 0, 4_096, 0)
            wheel.feed_back((0, 1), 1, 4_096, 0)
        assert wheel.draw((0, 1)) in (0, 1)

    def test_the_written_order_is_estimated_right_when_batches_have_one_class_each(self):
        router = make_router("auto")
        route_all(router, make_data(0, 60_000)[0])
        assert router.segments[0].tactic.mesh is not None
        columns, passed = make_data(1, 60_000)
        order = np.argsort([kind or "" for kind in columns[5].to_pylist()], kind="stable")
        columns = [column.take(pa.array(order)) for column in columns]
        before = router.totals.written_seen.copy()
        route_all(router, columns)
        written = router.totals.written_seen - before
        assert written[0] == pytest.approx(60_000, rel=0.02)
        reach = np.logical_and.accumulate(passed, axis=1)[:, :-1].sum(axis=0)
        assert written[1:].tolist() == pytest.approx(reach.tolist(), rel=0.3)


def test_running_selectivities_are_not_overwritten_by_old_counts():
    router = make_router("content")
    route_all(router, make_data(0, 40_000)[0])
    rng = np.random.default_rng(4)
    columns, _ = make_data(4, 40_000)
    passed = rng.random((40_000, OPERATORS)) < [0.1, 0.9, 0.9, 0.9]
    columns[:OPERATORS] = [pa.array(passed[:, n]) for n in range(OPERATORS)]
    route_all(router, columns)
    assert router.segments[0].tactic.content.overall[0] == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_change_in_time_is_not_taken_for_classes_of_a_running_number(seed):
    """Rows change every 8,000; right after a change, a number that counts rows looks telling."""
    rng = np.random.default_rng(seed)
    selectivities = np.full((3, OPERATORS), 0.85)
    selectivities[range(3), [3, 1, 2]] = 0.03
    passed = rng.random((24_000, OPERATORS)) < np.repeat(selectivities, 8_000, axis=0)
    router = make_router("auto")
    columns, _ = make_data(seed, 24_000)
    columns[:OPERATORS] = [pa.array(passed[:, n]) for n in range(OPERATORS)]
    assert route_all(router, columns, 2_000).tolist() == passed.all(axis=1).tolist()
    assert router.order()[0] == router.operators[2].name
    assert not router.journal.of(ClassesFound)
    assert len(router.journal.of(DriftDetected)) == 2


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_stay_as_they_are_are_no_drift_while_classes_are_tried(seed):
    router = make_router("auto", seed)
    route_all(router, make_data(seed, 60_000)[0])
    assert trials(router, "kept")
    assert not router.journal.of(DriftDetected)


def test_a_trial_of_classes_that_drift_interrupts_ends_with_an_event() -> None:
    router = make_router("auto", budget=None)
    tactic = router.segments[0].tactic
    columns, _ = make_data(0, 60_000)
    at = 0
    while tactic._trial is None and at < 60_000:
        router.route([column.slice(at, 500) for column in columns], 500)
        at += 500
    assert tactic._trial is not None
    tactic._discard_rows()
    assert trials(router, "interrupted")
    assert tactic._trial is None
