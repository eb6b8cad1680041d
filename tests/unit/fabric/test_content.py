"""Content-based routing: kinds of columns, the benefit check, budgets, costs, handing on."""

from __future__ import annotations

import json
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.bench.cbr_data import KINDS, classes_by_column, rotating, two_classes
from eddyline.bench.stream_star import make_stream, skewed, source_based_calls
from eddyline.content import ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.knowledge import knowledge_from_dict, merge_knowledge
from eddyline.fabric.tactics import content as content_tactic
from eddyline.fabric.tactics import content_counts, content_routes
from eddyline.fabric.tactics.content_check import PAUSE_ROWS
from eddyline.journal.events import BudgetExhausted, ClassifiersChosen, TrialEnded
from eddyline.operators import ColumnReader, RowPredicate
from eddyline.ordering.static import ordering_cost
from eddyline.testing.synthetic import SyntheticFilter, to_columns

BATCH_ROWS = 10_000


def make_router(operators: int, attributes: list[str], policy="content", cost_us=10.0, **options):
    names = [f"p{n}" for n in range(operators)]
    costs_us = tuple(np.broadcast_to(cost_us, operators).tolist())
    return Router(
        [SyntheticFilter(name, n) for n, name in enumerate(names)],
        [ColumnReader(name) for name in (*names, *attributes)],
        policy,
        options=RouterOptions(costs_us=costs_us, seed=3, **options),
        attributes={name: operators + n for n, name in enumerate(attributes)},
    )


def route_all(router: Router, passed: np.ndarray, columns: list[pa.Array]) -> float:
    """Send all rows through; return the evaluations a row took, those for learning included."""
    totals, every = router.totals, to_columns(passed) + columns
    before = (totals.seen + totals.profiled).sum()
    verdicts = []
    for begin in range(0, len(passed), BATCH_ROWS):
        part = [column.slice(begin, BATCH_ROWS) for column in every]
        verdicts.append(router.route(part, len(part[0])))
    assert (np.concatenate(verdicts) == passed.all(axis=1)).all()
    return float((totals.seen + totals.profiled).sum() - before) / len(passed)


@pytest.mark.parametrize("policy", ["content", "auto"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [2_601, 2_602])
def test_every_kind_of_column_tells_classes_apart(kind: str, policy: str, seed: int) -> None:
    passed, column = classes_by_column(np.random.default_rng(seed), kind, 100_000)
    router = make_router(2, ["x"], policy)
    assert route_all(router, passed, [column]) <= 1.15  # 1.05 is possible


class TestRevision:
    def test_columns_that_told_nothing_in_the_first_chunk_are_judged_again(self) -> None:
        rng = np.random.default_rng(41)
        kind = np.concatenate([np.zeros(500, dtype=np.int64), rng.integers(0, 2, 40_000)])
        passed = two_classes(rng, kind == 0)
        router = make_router(2, ["kind"])
        assert route_all(router, passed, [pa.array(kind)]) < 1.3  # 1.5 in one order
        assert router.snapshot()[0].pairs

    def test_ranges_follow_values_that_move(self) -> None:
        rng = np.random.default_rng(42)
        router = make_router(2, ["x"])
        for shift in (0.0, 1e6):
            x = rng.random(80_000)
            passed = two_classes(rng, x < 0.4)
            route_all(router, passed, [pa.array(x + shift)])
        x = rng.random(20_000)
        assert route_all(router, two_classes(rng, x < 0.4), [pa.array(x + 1e6)]) < 1.15

    def test_an_attribute_that_cannot_classify_rows_any_more_is_not_used(self) -> None:
        rng = np.random.default_rng(43)
        kind = rng.integers(0, 2, 40_000)
        router = make_router(2, ["kind"])
        route_all(router, two_classes(rng, kind == 0), [pa.array(kind)])
        assert router.snapshot()[0].pairs
        constant = pa.array(np.zeros(160_000, dtype=np.int64))
        route_all(router, two_classes(rng, np.ones(160_000, dtype=bool)), [constant])
        assert router.snapshot()[0].rejected == {"kind": "constant"}
        assert not router.snapshot()[0].pairs

    def test_an_attribute_that_is_rejected_is_not_used_even_if_it_pays(self, monkeypatch) -> None:
        router = make_router(2, ["kind"])
        route_all(router, *star(58, 40_000, 2))
        assert router.snapshot()[0].pairs
        attributes = router.segments[0].tactic._attributes
        monkeypatch.setattr(attributes, "look", lambda batch, rows: ({0: "constant"}, {}))
        route_all(router, *star(66, 40_000, 2))
        assert router.snapshot()[0].rejected == {"kind": "constant"}
        assert not router.snapshot()[0].pairs


def checks(router: Router, verdict: str) -> list[TrialEnded]:
    ended = [record.event for record in router.journal.of(TrialEnded)]
    return [e for e in ended if e.subject == "attribute" and e.verdict == verdict]


def star(seed: int, rows: int, operators: int = 4) -> tuple[np.ndarray, list[pa.Array]]:
    """Each class has an operator of its own that drops nearly all of its rows."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, operators, rows)
    selectivity = np.full((operators, operators), 0.9)
    np.fill_diagonal(selectivity, 0.05)
    return rng.random((rows, operators)) < selectivity[kind], [pa.array(kind)]


class TestBenefitCheck:
    @pytest.mark.parametrize("options", [ContentOptions(), ContentOptions.paper()])
    def test_every_pair_in_use_has_passed_a_check_of_its_own(self, options) -> None:
        router = make_router(4, ["kind"], options)
        route_all(router, *star(44, 120_000))
        pairs = router.snapshot()[0].pairs
        assert pairs
        passed = {e.after for e in checks(router, "kept")}
        for predicate, column in pairs.items():
            assert (f"{predicate} by {column}",) in passed

    def test_pairs_that_pay_together_are_checked_one_by_one_at_once(self) -> None:
        router = make_router(4, ["kind"])
        route_all(router, *star(44, 120_000))
        ended = [record.event for record in router.journal.of(TrialEnded)]
        together = next(n for n, e in enumerate(ended) if e.verdict == "kept" and len(e.after) > 1)
        pairs = ended[together].after
        following = ended[together + 1 : together + 1 + len(pairs)]
        assert [e.after for e in following] == [(pair,) for pair in pairs]

    def test_what_was_kept_cost_less_and_what_was_reverted_is_not_in_use(self) -> None:
        router = make_router(4, ["kind"])
        route_all(router, *star(45, 120_000))
        assert all(e.after_us < e.before_us for e in checks(router, "kept"))
        last = {e.after: e.verdict for e in (r.event for r in router.journal.of(TrialEnded))}
        for predicate, column in router.snapshot()[0].pairs.items():
            assert last[(f"{predicate} by {column}",)] == "kept"

    @pytest.mark.parametrize("seed", range(46, 52))
    def test_no_pair_stays_where_the_best_order_never_varies(self, seed: int) -> None:
        """The first filter depends on the column, but is the best one for every row."""
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 4, 100_000)
        selectivity = np.array([[0.02, 0.6], [0.1, 0.6], [0.2, 0.6], [0.3, 0.6]])
        passed = rng.random((100_000, 2)) < selectivity[kind]
        router = make_router(2, ["kind"])
        best = ordering_cost((0, 1), ~passed, np.ones(2))
        assert route_all(router, passed, [pa.array(kind)]) < 1.03 * best
        assert checks(router, "reverted")
        assert not checks(router, "kept")
        assert not router.snapshot()[0].pairs

    def test_a_pair_that_saves_less_than_routing_by_it_costs_is_not_used(self, monkeypatch) -> None:
        passed, columns = star(52, 40_000, 2)
        router = make_router(2, ["kind"])
        route_all(router, passed, columns)
        assert router.snapshot()[0].pairs
        monkeypatch.setattr(content_routes, "PARTITION_US", 8.0)  # it saves 4.5 us a row
        router = make_router(2, ["kind"])
        route_all(router, passed, columns)
        assert checks(router, "reverted")
        assert not router.snapshot()[0].pairs

    def test_a_pair_waits_longer_after_each_check_up_to_a_bound(self) -> None:
        router = make_router(2, ["kind"])
        check, ledger = router.segments[0].tactic.check, router.segments[0].ledger
        waits = []
        for _ in range(6):
            check._pause({0: 0})
            check.propose({0: 0})
            assert not check.is_running
            waits.append(next(iter(check._pauses.values()))[0] - ledger.rows)
            ledger.rows += waits[-1]
        assert waits == [PAUSE_ROWS * times for times in (1, 2, 4, 8, 16, 16)]
        check.propose({0: 0})
        assert check.is_running

    @pytest.mark.parametrize(
        ("options", "waits"), [(ContentOptions(), 2), (ContentOptions.paper(), 1)]
    )
    def test_a_pair_that_pays_is_checked_less_often_unless_each_profile_ends_its_use(
        self, options, waits: int
    ) -> None:
        router = make_router(2, ["kind"], options)
        route_all(router, *star(53, 30_000, 2))
        check = router.segments[0].tactic.check
        check._pauses.clear()
        check._start(np.array([-1, -1]), np.array([0, -1]), [0], is_new=True)
        check._end("kept")
        assert check._pauses[frozenset({(0, 0)})][0] == 30_000 + waits * PAUSE_ROWS

    def test_a_pair_that_stops_paying_is_given_up(self) -> None:
        rng = np.random.default_rng(53)
        router = make_router(2, ["kind"])
        route_all(router, *star(53, 40_000, 2))
        assert router.snapshot()[0].pairs
        kind = rng.integers(0, 2, 200_000)
        passed = rng.random((200_000, 2)) < [0.05, 0.9]
        route_all(router, passed, [pa.array(kind)])
        assert not router.snapshot()[0].pairs


@pytest.mark.parametrize(("cost_us", "is_searched"), [(0.1, False), (10.0, True)])
def test_classes_that_could_save_next_to_nothing_are_not_searched_for(cost_us, is_searched) -> None:
    router = make_router(2, ["kind"], cost_us=cost_us)
    route_all(router, *star(64, 60_000, 2))
    assert bool(router.totals.profiled.sum()) == is_searched
    assert bool(router.journal.of(ClassifiersChosen)) == is_searched
    assert bool(router.snapshot()[0].pairs) == is_searched


def test_judging_the_attributes_takes_little_beside_useful_work(monkeypatch) -> None:
    monkeypatch.setattr(content_counts, "LOOK_ADVANCE_US", 1.0)
    looks = {}
    for share in (0.0001, 1e6):
        monkeypatch.setattr(content_counts, "LOOK_SHARE", share)
        router = make_router(2, ["kind"])
        router = Router(
            router.operators,
            router.readers,
            "content",
            options=RouterOptions(seed=3),  # times are measured: judging costs something
            attributes={"kind": 2},
        )
        attributes = router.segments[0].tactic._attributes
        look, calls = attributes.look, []
        attributes.look = lambda batch, rows, look=look, calls=calls: (
            calls.append(len(rows)) or look(batch, rows)
        )
        route_all(router, *star(66, 100_000, 2))
        looks[share] = len(calls)
    assert looks[0.0001] == 1
    assert looks[1e6] >= 5


def test_no_profile_is_concluded_while_all_operators_are_counted(monkeypatch) -> None:
    router = make_router(2, ["noise"], budget=None)
    tactic, was_warming_up = router.segments[0].tactic, []
    conclude = tactic._conclude_profile

    def noted(operator: int) -> None:
        was_warming_up.append(tactic._counts.is_warming_up)
        conclude(operator)

    monkeypatch.setattr(tactic, "_conclude_profile", noted)
    rng = np.random.default_rng(67)
    route_all(router, rng.random((60_000, 2)) < 0.5, [pa.array(rng.random(60_000))])
    assert was_warming_up
    assert not any(was_warming_up)


class TestBudget:
    def learning(self, budget: float | None, options: ContentOptions | None = None) -> Router:
        rng = np.random.default_rng(54)
        passed = rng.random((100_000, 3)) < [0.05, 0.9, 0.9]
        noise = [pa.array(rng.random(100_000))]
        router = make_router(3, ["noise"], options or ContentOptions(), 1_000.0, budget=budget)
        route_all(router, passed, noise)
        return router

    def test_the_first_look_is_as_large_as_the_budget_allows(self) -> None:
        assert self.learning(None).totals.profiled.tolist() == [128] * 3
        assert self.learning(0.0).totals.profiled.tolist() == [32] * 3

    def test_a_few_rows_show_what_the_first_look_costs(self) -> None:
        slow = [RowPredicate(f"p{n}", (0,), lambda x: time.sleep(0.001) or x < 1) for n in range(3)]
        router = Router(slow, [ColumnReader("x")], "content", attributes={"x": 0})
        router.route([pa.array([0, 1] * 32)], rows=64)
        assert router.totals.profiled.tolist() == [32] * 3  # all 64 if a row cost next to nothing

    def test_the_first_look_is_no_larger_than_asked_for(self) -> None:
        options = ContentOptions(first_look_rows=5)
        assert self.learning(None, options).totals.profiled.tolist() == [5] * 3

    def test_a_budget_that_is_used_up_is_on_record_once(self) -> None:
        assert len(self.learning(0.0).journal.of(BudgetExhausted)) == 1
        assert not self.learning(None).journal.of(BudgetExhausted)

    def test_the_share_of_the_profiled_operator_takes_a_detour(self) -> None:
        tactic = make_router(2, ["noise"], budget=None).segments[0].tactic
        tactic._detours.probability, tactic.content.profiled = [0.02, 0.5], 1
        assert tactic._pick_profiled(10_000).mean() == pytest.approx(0.5, abs=0.03)

    def test_detours_end_when_the_budget_is_used_up(self) -> None:
        # A detour to the third filter costs 90 % more; without a budget 6 % of the rows take one.
        paper = ContentOptions.paper()
        seen = {b: self.learning(b, paper).totals.seen.sum() / 1e5 for b in (None, 0.01, 0.0)}
        assert seen[0.0] < seen[0.01] < 1.011 * seen[0.0]
        assert seen[None] > 1.03 * seen[0.0]


def test_operators_are_ordered_by_drops_per_unit_of_time() -> None:
    """The first filter drops a bit more of each class, and costs eight times as much."""
    rng = np.random.default_rng(55)
    kind = rng.integers(0, 2, 60_000)
    selectivity = np.array([[0.1, 0.2], [0.6, 0.7]])
    passed = rng.random((60_000, 2)) < selectivity[kind]
    router = make_router(2, ["kind"], cost_us=(80.0, 10.0))
    route_all(router, passed, [pa.array(kind)])
    seen = router.totals.seen
    assert seen[1] > 0.98 * 60_000  # the cheap one first
    assert seen[0] < 0.52 * 60_000


def test_rows_that_no_attribute_classifies_visit_a_cheap_operator_first() -> None:
    """The first filter drops more, but costs eight times as much."""
    rng = np.random.default_rng(65)
    passed = rng.random((20_000, 2)) < [0.1, 0.5]
    router = make_router(2, ["noise"], cost_us=(80.0, 10.0))
    route_all(router, passed, [pa.array(rng.random(20_000))])
    assert not router.snapshot()[0].pairs
    assert router.order() == ["p1", "p0"]
    assert router.totals.seen[0] < 0.6 * 20_000


class TestGamma:
    def pairs(self, gain_ratio_min: float) -> dict[str, str]:
        options = ContentOptions(gain_ratio_min=gain_ratio_min)
        router = make_router(2, ["kind"], options)
        route_all(router, *star(56, 60_000, 2))
        return dict(router.snapshot()[0].pairs)

    def test_an_attribute_needs_a_gain_ratio_above_the_threshold(self) -> None:
        # 0.05 and 0.9 of the rows pass: a gain ratio of 0.62.
        assert self.pairs(0.5)
        assert not self.pairs(0.7)


class TestHandingOn:
    @pytest.mark.parametrize("kind", ["float", "integer", "text", "timestamp"])
    def test_a_successor_starts_as_good_as_its_predecessor_ended(self, kind: str) -> None:
        passed, column = classes_by_column(np.random.default_rng(57), kind, 110_000)
        router = make_router(2, ["x"])
        route_all(router, passed[:100_000], [column.slice(0, 100_000)])
        plain = json.loads(json.dumps([part.to_dict() for part in router.snapshot()]))
        heir = make_router(2, ["x"])
        heir.restore([knowledge_from_dict(part) for part in plain])
        # The first rows do not show what values there are.
        rest = column.slice(100_000)
        order = np.argsort(pc.rank(rest).to_numpy() > 3_000, kind="stable")
        rest = rest.take(pa.array(order))
        assert route_all(heir, passed[100_000:][order], [rest]) <= 1.11

    def test_a_successor_counts_for_more_than_a_beginner(self) -> None:
        passed, column = classes_by_column(np.random.default_rng(68), "text", 101_000)
        router = make_router(2, ["x"])
        route_all(router, passed[:100_000], [column.slice(0, 100_000)])
        heir, beginner = make_router(2, ["x"]), make_router(2, ["x"])
        heir.restore(router.snapshot())
        route_all(heir, passed[100_000:100_200], [column.slice(100_000, 200)])
        route_all(beginner, passed[100_200:], [column.slice(100_200)])
        parts = [heir.snapshot()[0], beginner.snapshot()[0]]
        assert merge_knowledge(parts).classifier == parts[0].classifier
        assert parts[0].rows == 100_200

    @pytest.mark.parametrize("policy", ["agreedy", "auto"])
    def test_a_successor_that_keeps_one_order_takes_the_order_and_the_costs(
        self, policy: str
    ) -> None:
        passed, columns = star(58, 40_000, 2)
        router = make_router(2, ["kind"], cost_us=(80.0, 10.0))
        route_all(router, passed, columns)
        knowledge = router.snapshot()[0]
        assert knowledge.order == (1, 0)
        heir = make_router(2, ["kind"], policy)
        heir.restore([knowledge])
        assert heir.order() == ["p1", "p0"]
        route_all(heir, passed, columns)

    def test_the_worker_that_saw_most_rows_hands_on_its_pairs(self) -> None:
        workers = [make_router(2, [name]) for name in ("kind", "sort")]
        for router, rows in zip(workers, (40_000, 30_000), strict=True):
            route_all(router, *star(58, rows, 2))
        parts = [router.snapshot()[0] for router in workers]
        assert [part.rows for part in parts] == [40_000, 30_000]
        assert set(parts[1].pairs.values()) == {"sort"}
        assert set(merge_knowledge(parts[::-1]).pairs.values()) == {"kind"}

    def test_another_number_of_partitions_begins_again(self) -> None:
        passed, columns = star(58, 40_000, 2)
        router = make_router(2, ["kind"])
        route_all(router, passed, columns)
        heir = make_router(2, ["kind"], ContentOptions(partitions=8))
        heir.restore(router.snapshot())
        assert not heir.snapshot()[0].pairs
        route_all(heir, passed, columns)

    def test_columns_of_another_type_do_not_stop_the_query(self) -> None:
        rng = np.random.default_rng(58)
        router = make_router(2, ["kind"])
        route_all(router, *star(58, 40_000, 2))
        passed = rng.random((30_000, 2)) < 0.5
        for other in (pa.array(rng.random(30_000)), pa.array(["a", "b", None] * 10_000)):
            heir = make_router(2, ["kind"])
            heir.restore(router.snapshot())
            route_all(heir, passed, [other])


class TestPapersWay:
    def test_a_pair_is_not_used_while_its_operator_is_profiled(self) -> None:
        router = make_router(2, ["kind"], ContentOptions.paper())
        tactic = router.segments[0].tactic
        used_while_profiled = []
        sample = tactic.content.sample

        def watched(partitions: np.ndarray, passed: np.ndarray) -> None:
            used_while_profiled.append(int(tactic.content.classifier[tactic.content.profiled]))
            sample(partitions, passed)

        tactic.content.sample = watched
        route_all(router, *star(59, 120_000, 2))
        assert checks(router, "kept")
        assert len(used_while_profiled) > 4
        assert set(used_while_profiled) == {-1}


@pytest.mark.parametrize("policy", ["auto", "content"])
@pytest.mark.parametrize("period", [2_000, 5_000, 20_000, 100_000])
def test_columns_do_not_make_routing_less_adaptive(policy: str, period: int) -> None:
    passed = rotating(period + 60, period, 400_000)
    rng = np.random.default_rng(61)
    columns = [pa.array(rng.random(400_000)), pa.array(rng.integers(0, 30, 400_000))]
    evaluations = route_all(make_router(4, ["noise", "code"], policy), passed, columns)
    assert evaluations <= ordering_cost(range(4), ~passed, np.ones(4))
    if period >= 20_000 or policy == "content":
        rivals = source_based_calls(np.random.default_rng(0), passed)
        assert evaluations <= (1.1 if policy == "content" else 1.15) * rivals


@pytest.mark.parametrize("filters", [2, 6])
def test_gradual_changes_are_followed(filters: int) -> None:
    """The best filter passes into the next one within 2,000 rows."""
    rng = np.random.default_rng(64)
    away = (np.arange(200_000)[:, None] / 2_000 - np.arange(filters)) % filters
    share = np.maximum(0.0, 1.0 - np.minimum(away, filters - away))
    passed = rng.random(share.shape) < 0.9 - 0.85 * share
    noise = [pa.array(rng.random(200_000))]
    evaluations = route_all(make_router(filters, ["noise"]), passed, noise)
    assert evaluations <= 1.05 * source_based_calls(rng, passed)


def test_a_column_that_rows_are_sorted_by_costs_little_more_than_known_classes() -> None:
    """Each text occurs in 1,000 successive rows, so its class shows only when it has come."""
    rng = np.random.default_rng(65)
    block = np.arange(100_000) // 1_000
    passed = two_classes(rng, (rng.random(100) < 0.5)[block])
    site = pa.array([f"site {number:03d}" for number in block])
    router = make_router(2, ["site"])
    assert route_all(router, passed, [site]) <= 1.18


class TestSlices:
    def rows_of_slices(self, monkeypatch, router: Router, passed, columns) -> np.ndarray:
        slices: list[int] = []
        assign = content_tactic.ContentTactic._assign_regular
        monkeypatch.setattr(
            content_tactic.ContentTactic,
            "_assign_regular",
            lambda self, rows: slices.append(len(rows)) or assign(self, rows),
        )
        route_all(router, passed, columns)
        return np.array(slices)

    def test_they_are_large_where_rows_do_not_change(self, monkeypatch) -> None:
        # The order over all classes is a matter of chance: it says nothing of a change.
        stream = make_stream(np.random.default_rng(1), skewed(4, 0.1), 160_000)
        router, columns = make_router(4, list(stream.attributes)), list(stream.attributes.values())
        assert len(self.rows_of_slices(monkeypatch, router, stream.passed, columns)) < 70

    def test_pairs_that_come_into_use_are_no_change_of_rows(self, monkeypatch) -> None:
        # Rows are routed in other ways from then on, so each operator gets other rows than before.
        stream = make_stream(np.random.default_rng(0), skewed(8, 0.1), 100_000)
        router, columns = make_router(8, list(stream.attributes)), list(stream.attributes.values())
        slices = self.rows_of_slices(monkeypatch, router, stream.passed, columns)
        assert checks(router, "kept")
        assert slices[slices.cumsum() > 10_000].min() > 512

    def test_they_are_small_where_rows_change(self, monkeypatch) -> None:
        passed = rotating(69, 2_000, 100_000)
        noise = [pa.array(np.random.default_rng(70).random(100_000))]
        slices = self.rows_of_slices(monkeypatch, make_router(4, ["noise"]), passed, noise)
        assert np.median(slices) == 512


def test_rows_that_change_are_followed_within_a_chunk(monkeypatch) -> None:
    passed = rotating(62, 10_000, 200_000)
    columns = [pa.array(np.random.default_rng(63).random(200_000))]
    sliced = route_all(make_router(4, ["noise"]), passed, columns)
    monkeypatch.setattr(content_tactic, "SLICE_ROWS", 1 << 20)
    assert sliced < 0.95 * route_all(make_router(4, ["noise"]), passed, columns)


@pytest.mark.parametrize("seed", [68, 69])
def test_classes_that_change_are_followed(seed: int) -> None:
    """After every 20,000 rows both classes swap what drops them; overall nothing changes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, 400_000)
    is_swapped = np.arange(400_000) // 20_000 % 2 == 1
    router = make_router(2, ["kind"])
    assert route_all(router, two_classes(rng, (kind == 0) ^ is_swapped), [pa.array(kind)]) < 1.12
