"""One eddy for all queries, against evaluating each query by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.arrays import IntArray
from eddyline.errors import InvalidPolicyError
from eddyline.fabric.shared import eddy as eddy_module
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.learnt import LearntOperator
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.matches import Matches
from eddyline.fabric.shared.operators import SharedOperator
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.fabric.shared.slots import Slots
from eddyline.operators import Batch, ColumnReader, Operator, RowPredicate
from eddyline.operators.bitmaps import set_bits
from eddyline.operators.domain import Whole
from eddyline.operators.grouped_filter import GroupedFilter
from eddyline.ordering import POLICIES, AGreedy, AsWritten, Policy, resolve_policy
from eddyline.ordering.tickets import Tickets

COLUMNS = ["a", "b", "c", "d", "e"]
DOMAINS = {name: Whole() for name in COLUMNS}
PLACES = {name: at for at, name in enumerate(COLUMNS)}
READERS = [ColumnReader(name) for name in COLUMNS]


def above(**bounds: int) -> dict[str, Any]:
    return {name: DOMAINS[name].compare(">", bound) for name, bound in bounds.items()}


TABLE_3 = {
    0: SharedQuery(1, above(a=90)),
    1: SharedQuery(2, above(a=90, b=70)),
    2: SharedQuery(3, above(a=90, b=70, c=50)),
    3: SharedQuery(4, above(a=90, b=70, c=50, d=30)),
    4: SharedQuery(5, above(a=90, b=70, c=50, d=30, e=10)),
}


def make_batch(rng: np.random.Generator, rows: int) -> Batch:
    columns = [pa.array(rng.integers(0, 100, rows), mask=rng.random(rows) < 0.05) for _ in COLUMNS]
    return Batch(columns, READERS)


def odd_sum(calls: list[int]) -> Operator:
    def judge(a: int | None, b: int | None) -> bool | None:
        calls.append(1)
        return None if a is None or b is None else (a + b) % 2 == 1

    return RowPredicate("odd_sum", (0, 1), judge)


def random_query(rng: np.random.Generator, number: int) -> SharedQuery:
    def values(name: str) -> Any:
        low, high = sorted(rng.integers(0, 100, 2).tolist())
        own = DOMAINS[name].compare(">=", low) & DOMAINS[name].compare("<=", high)
        return own if rng.random() < 0.8 else ~own

    def some(most: int) -> dict[str, Any]:
        names = rng.choice(COLUMNS, int(rng.integers(0, most + 1)), replace=False)
        return {str(name): values(str(name)) for name in names}

    def term() -> dict[str, Any]:
        names = rng.choice(COLUMNS, int(rng.integers(2, 4)), replace=False)
        return {str(name): values(str(name)) for name in names}

    def clause() -> Clause:
        if rng.random() < 0.4:
            return Clause(some(1), terms=tuple(term() for _ in range(int(rng.integers(1, 4)))))
        return Clause(some(3), ("odd",) if rng.random() < 0.3 else ())

    clauses = tuple(clause() for _ in range(int(rng.integers(0, 3))))
    return SharedQuery(number, some(3), ("odd",) if rng.random() < 0.2 else (), clauses)


def answer(query: SharedQuery, row: dict[str, Any]) -> bool:
    def odd() -> bool:
        return row["a"] is not None and row["b"] is not None and (row["a"] + row["b"]) % 2 == 1

    return (
        all(values.has(row[name]) for name, values in query.accepts.items())
        and (not query.needs or odd())
        and all(
            any(values.has(row[name]) for name, values in clause.accepts.items())
            or (bool(clause.needs) and odd())
            or any(
                all(values.has(row[name]) for name, values in term.items()) for term in clause.terms
            )
            for clause in query.clauses
        )
    )


@pytest.mark.parametrize("policy", list(POLICIES))
def test_matches_equal_those_of_each_query_alone(policy: str) -> None:
    rng = np.random.default_rng(3)
    eddy = SharedEddy(DOMAINS, resolve_policy(policy), seed=0)
    slots = Slots()
    running: dict[int, SharedQuery] = {}
    for step in range(12):
        added = {
            slots.take(): random_query(rng, 1000 * step + n)
            for n in range(int(rng.integers(0, 40)))
        }
        eddy.take_counts()
        eddy.add(added)
        running |= added
        dropped = [slot for slot in running if rng.random() < 0.3]
        eddy.drop(dropped)
        for slot in dropped:
            del running[slot]
            slots.give_back(slot)
        assert len(eddy) == len(running)
        eddy.bind(PLACES, {"odd": odd_sum([])})
        batch = make_batch(rng, 300)
        matches = eddy.run(batch)
        rows = pa.table(dict(zip(COLUMNS, batch.columns, strict=True))).to_pylist()
        expected = {
            (position, query.number)
            for position, row in enumerate(rows)
            for query in running.values()
            if answer(query, row)
        }
        found = list(zip(matches.rows.tolist(), matches.numbers.tolist(), strict=True))
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert sum(eddy.take_counts().values()) == len(expected)


def record_visits(operator: SharedOperator, visited: set[int]) -> None:
    """Collect the rows that visit an operator."""
    visit = operator.visit

    def recorded(batch: Batch, lineage: Lineage, positions: IntArray) -> None:
        visited.update(lineage.rows[positions].tolist())
        visit(batch, lineage, positions)

    operator.visit = recorded  # type: ignore[method-assign]


def test_a_row_is_done_with_every_operator_its_queries_need() -> None:
    """Except for predicates that are alternatives only: the clause may hold without them."""
    rng = np.random.default_rng(4)
    eddy = SharedEddy(DOMAINS, seed=0)
    queries = {n: random_query(rng, n) for n in range(50)}
    eddy.add(queries)
    eddy.bind(PLACES, {"odd": odd_sum([])})
    visited: list[set[int]] = [set() for _ in eddy.operators]
    for operator, rows in zip(eddy.operators, visited, strict=True):
        record_visits(operator, rows)
    lineage = eddy.route(make_batch(rng, 500), np.arange(500))
    for row, slot in zip(*set_bits(lineage.interested), strict=True):
        completion = eddy.completion(slot)
        assert completion & lineage.done == completion
        needed = [rows for n, rows in enumerate(visited) if completion >> n & 1]
        names = [operator.name for n, operator in enumerate(eddy.operators) if completion >> n & 1]
        for name, rows in zip(names, needed, strict=True):
            assert row in rows or (name == "odd" and not queries[slot].needs)


def test_rows_are_routed_only_while_a_query_is_incomplete() -> None:
    eddy = SharedEddy(DOMAINS, resolve_policy("as_written"), seed=0)
    eddy.add({0: SharedQuery(1, above(a=90)), 1: SharedQuery(2, above(a=90, b=0))})
    eddy.bind(PLACES, {})
    none_above = Batch([pa.array([1, 2])] * 5, READERS)
    by_name = {operator.name: n for n, operator in enumerate(eddy.operators)}
    eddy.policy.adopt([by_name["a"], by_name["b"]])
    assert eddy.route(none_above, np.arange(2)).done == 1 << by_name["a"]
    assert [eddy.completion(slot) for slot in (0, 1)] == [1 << by_name["a"], 0b11]


def test_a_row_that_skips_an_operator_still_visits_the_next_that_a_query_needs() -> None:
    eddy = SharedEddy(DOMAINS, resolve_policy("as_written"), seed=0)
    eddy.add({0: SharedQuery(1, above(a=10, c=50)), 1: SharedQuery(2, above(a=90, b=0))})
    eddy.bind(PLACES, {})
    by_name = {operator.name: n for n, operator in enumerate(eddy.operators)}
    eddy.policy.adopt([by_name[name] for name in "abc"])
    columns = [
        pa.array([50] * 3),
        pa.array([0] * 3),
        pa.array([10, 60, 10]),
        *[pa.array([0] * 3)] * 2,
    ]
    assert eddy.run(Batch(columns, READERS)).rows.tolist() == [1]
    assert eddy.visits == 6, "none of the rows visited b"


def test_operators_that_are_done_already_are_not_visited_again() -> None:
    lineage = Lineage.start(np.arange(2), np.ones(1, dtype=np.uint64), clause_words=1)
    taken = []
    for number in lineage.ready([2, 0, 1]):
        taken.append(number)
        lineage.mark_done(0)
    assert taken == [2, 1]


def test_a_slot_that_is_used_again_shows_nothing_old() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(1, above(a=10), clauses=(Clause(above(b=5, c=5)),))})
    eddy.drop([0])
    eddy.add({0: SharedQuery(2, above(b=90))})
    eddy.bind(PLACES, {})
    batch = Batch([pa.array([50]), pa.array([50]), *[pa.array([50])] * 3], READERS)
    assert len(eddy.run(batch).rows) == 0
    assert eddy.take_counts() == {}
    assert [operator.name for operator in eddy.operators] == ["b"]


def test_a_query_that_only_counts_stores_nothing_at_a_slot_that_another_had() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(1, above(a=10))})
    eddy.drop([0])
    eddy.add({0: SharedQuery(2, above(a=10), is_stored=False)})
    eddy.bind(PLACES, {})
    found = eddy.run(Batch([pa.array([50, 60])] * 5, READERS))
    assert len(found.rows) == 0
    assert eddy.take_counts() == {2: 2}


def test_a_query_keeps_its_first_error() -> None:
    parts = [
        Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), failures)
        for failures in ({}, {9: "first"}, {8: "other", 9: "second"})
    ]
    assert Matches.concat(parts).failures == {9: "first", 8: "other"}


def test_bits_of_clauses_are_used_again() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    for number in range(100):
        terms = (above(a=5, b=5), above(b=6, c=5))
        clauses = (Clause(above(b=5), ("odd",)), Clause(above(b=5, c=5)), Clause(terms=terms))
        eddy.add({0: SharedQuery(number, clauses=clauses)})
        if number < 99:
            eddy.drop([0])
    assert eddy._queries.clauses.words == (1, 1, 1)
    eddy.bind(PLACES, {"odd": odd_sum([])})
    lineage = eddy.route(make_batch(np.random.default_rng(0), 1), np.arange(1))
    assert lineage.fulfilled.shape == (1, 1)


def test_an_operator_counts_the_predicates_that_a_visit_applies() -> None:
    clauses = (
        Clause(above(a=5, b=5)),
        Clause(above(c=5), ("odd",)),
        Clause(terms=(above(a=1, b=2), above(a=3, c=4))),
    )
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(1, above(a=1), clauses=clauses), 1: SharedQuery(2, needs=("odd",))})
    counts = {operator.name: operator.predicates for operator in eddy.operators}
    assert counts == {"a": 4, "b": 2, "c": 2, "odd": 2}


def test_an_eddy_without_queries_adopts_what_another_has_learnt() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.adopt({"a": LearntOperator(1.0, 10.0, 5.0)})
    assert eddy.learnt() == {}


def test_operators_that_another_eddy_does_not_know_come_last() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(1, above(a=10, b=10, c=10))})
    eddy.adopt({name: LearntOperator(1.0, 10.0, 5.0) for name in ("c", "gone", "b")})
    assert list(eddy.learnt()) == ["c", "b", "a"]


def test_slots_and_queries_are_added_once_and_dropped_once() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({3: SharedQuery(1, above(a=10))})
    with pytest.raises(ValueError, match=r"slots are in use already: \[3\]"):
        eddy.add({3: SharedQuery(2, above(a=10))})
    with pytest.raises(ValueError, match=r"a query is here already, or given twice: \[1\]"):
        eddy.add({4: SharedQuery(1, above(a=10))})
    eddy.drop([3])
    with pytest.raises(ValueError, match="no query has slot 3"):
        eddy.drop([3])


def test_python_predicates_see_only_rows_that_some_query_still_wants() -> None:
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({n: SharedQuery(n, above(c=90), ("odd",)) for n in range(100)})
    eddy.bind(PLACES, {"odd": odd_sum(calls)})
    rng = np.random.default_rng(0)
    for _ in range(30):  # the order is learnt from the first of them
        batch = make_batch(rng, 500)
        calls.clear()
        eddy.run(batch)
    wanted = sum(1 for c in batch.columns[2].to_pylist() if c is not None and c > 90)
    assert len(calls) == wanted


def test_a_predicate_that_raises_fails_only_queries_that_nothing_else_rejects() -> None:
    def judge(a: int) -> bool:
        if a == 7:
            raise ValueError("seven")
        return True

    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add(
        {
            0: SharedQuery(1, above(b=50), ("seven",)),
            1: SharedQuery(2, above(b=20), ("seven",)),
            2: SharedQuery(3, above(b=20)),
        }
    )
    eddy.bind(PLACES, {"seven": RowPredicate("is_seven", (0,), judge)})
    columns = [pa.array([7, 8]), pa.array([30, 60]), *[pa.array([0, 0])] * 3]
    matches = eddy.run(Batch(columns, READERS))
    assert list(matches.failures) == [2]
    assert "is_seven raised ValueError: seven" in matches.failures[2]
    counts = eddy.take_counts()
    assert counts[1] == 1
    assert counts[3] == 2


def test_tickets_visit_hardly_more_filters_than_the_best_order() -> None:
    rng = np.random.default_rng(0)
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add(TABLE_3)
    eddy.bind(PLACES, {})
    for _ in range(200):
        columns = [pa.array(rng.integers(0, 100, 1_000)) for _ in COLUMNS]
        eddy.run(Batch(columns, READERS))
    assert eddy.visits / eddy.rows <= 1.25


WORKLOADS = {
    "independent": [{"a": 30}, {"b": 50}, {"c": 10}, {"d": 40}, {"e": 90}],
    "nested": [dict.fromkeys(COLUMNS[: n + 1], 10) for n in range(5)],
    "both": [dict(zip(COLUMNS[: n + 1], (10, 30, 50, 70, 90), strict=False)) for n in range(5)],
}


def run_workload(
    name: str,
    batches: int,
    policy: Policy | None = None,
    order: Sequence[int] | None = None,
    seed: int = 0,
) -> SharedEddy:
    """Run the queries of a workload of CACQ's Table 4."""
    rng = np.random.default_rng(seed)
    eddy = SharedEddy(DOMAINS, policy, seed=seed)
    eddy.add({n: SharedQuery(n, above(**bounds)) for n, bounds in enumerate(WORKLOADS[name])})
    eddy.bind(PLACES, {})
    if order is not None:
        eddy.policy.adopt(list(order))
    for _ in range(batches):
        columns = [pa.array(rng.integers(0, 100, 4_096)) for _ in COLUMNS]
        eddy.run(Batch(columns, READERS))
    return eddy


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_row_visits_hardly_more_filters_than_in_the_best_of_all_orders(name: str) -> None:
    orders = itertools.permutations(range(5))
    best = min((run_workload(name, 1, AsWritten(), order) for order in orders), key=visits_of)
    assert visits_of(run_workload(name, 60)) <= 1.05 * visits_of(best)


def visits_of(eddy: SharedEddy) -> float:
    return eddy.visits / eddy.rows


@pytest.mark.parametrize("seed", range(4))
def test_tickets_have_the_shape_of_the_paper(seed: int) -> None:
    """The most selective filter has most of them; of equal ones, the one with most predicates."""
    shares = shares_of(run_workload("independent", 20, seed=seed))
    assert sorted(shares, key=lambda name: -shares[name]) == ["e", "b", "d", "a", "c"]
    assert shares["e"] == pytest.approx(91 / (91 + 51 + 41 + 31 + 11), abs=0.02)
    shares = shares_of(run_workload("nested", 20, seed=seed))
    assert sorted(shares, key=lambda name: -shares[name]) == COLUMNS
    assert shares["a"] > 3 * shares["e"]


def shares_of(eddy: SharedEddy) -> dict[str, float]:
    assert isinstance(eddy.policy, Tickets)
    return dict(zip([o.name for o in eddy.operators], eddy.policy.shares().tolist(), strict=True))


def test_a_predicate_of_two_queries_is_called_on_rows_that_their_comparisons_leave() -> None:
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, seed=0)
    never = RowPredicate("never", (0,), lambda a: bool(calls.append(1)))
    eddy.add(
        {
            0: SharedQuery(0, above(c=90), ("never",)),
            1: SharedQuery(1, above(d=90), ("never",)),
            2: SharedQuery(2, above(e=10)),
        }
    )
    eddy.bind(PLACES, {"never": never})
    rng, wanted = np.random.default_rng(0), 0
    for _ in range(30):
        batch = make_batch(rng, 500)
        eddy.run(batch)
        c, d = (batch.columns[n].to_pylist() for n in (2, 3))
        wanted += sum((x or 0) > 90 or (y or 0) > 90 for x, y in zip(c, d, strict=True))
    assert wanted <= len(calls) <= 1.1 * wanted


def test_a_python_function_is_called_on_rows_that_comparisons_leave_from_the_first_on() -> None:
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({n: SharedQuery(n, above(c=90, a=20 + n)) for n in range(50)})
    eddy.bind(PLACES, {})
    rng = np.random.default_rng(0)
    eddy.run(make_batch(rng, 500))
    eddy.add({50 + n: SharedQuery(50 + n, above(c=90, a=20 + n), ("odd",)) for n in range(50)})
    eddy.bind(PLACES, {"odd": odd_sum(calls)})  # a new operator in an eddy that has learnt
    wanted = 0
    for _ in range(20):
        batch = make_batch(rng, 500)
        eddy.run(batch)
        a, c = (batch.columns[n].to_pylist() for n in (0, 2))
        wanted += sum(1 for x, y in zip(a, c, strict=True) if x and y and x > 20 and y > 90)
    assert wanted <= len(calls) <= 1.1 * wanted


@pytest.mark.parametrize("with_clauses", [False, True])
def test_the_bitmaps_of_a_chunk_are_bounded(
    monkeypatch: pytest.MonkeyPatch, with_clauses: bool
) -> None:
    """However many queries there are, and however large a batch: rows are routed in parts."""
    monkeypatch.setattr(eddy_module, "CHUNK_WORDS", 512)
    monkeypatch.setattr(eddy_module, "CHUNK_ROWS_MIN", 16)
    clauses = (Clause(above(b=5, c=5)),) if with_clauses else ()
    queries = {n: SharedQuery(n, above(a=50), clauses=clauses) for n in range(200)}
    batch = make_batch(np.random.default_rng(0), 1_000)
    eddy, lineages = SharedEddy(DOMAINS, seed=0), []
    eddy.add(queries)
    eddy.bind(PLACES, {})
    route = eddy.route
    monkeypatch.setattr(
        eddy, "route", lambda b, rows: lineages.append(route(b, rows)) or lineages[-1]
    )
    found = eddy.run(batch)
    words = [
        lineage.interested.size + with_clauses * lineage.fulfilled.size // 2 for lineage in lineages
    ]
    assert max(words) <= 512
    assert len(lineages) <= 2 * -(-sum(words) // 512)
    monkeypatch.undo()
    whole = SharedEddy(DOMAINS, seed=0)
    whole.add(queries)
    whole.bind(PLACES, {})
    expected = whole.run(batch)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.numbers.tolist() == expected.numbers.tolist()


def test_work_adds_up_until_it_is_taken() -> None:
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(1, above(a=10)), 1: SharedQuery(2, above(b=10))})
    eddy.bind(PLACES, {})
    for _ in range(3):
        eddy.run(make_batch(np.random.default_rng(0), 100))
    work = eddy.take_work()
    assert {name: visits for name, (visits, _) in work.items()} == {"a": 300, "b": 300}
    assert all(busy_us > 0 for _, busy_us in work.values())
    assert eddy.take_work() == {"a": (0, 0.0), "b": (0, 0.0)} != work


def test_another_eddy_goes_on_with_what_was_learnt() -> None:
    """The order, what operators cost, and the tickets, also of operators at other places."""
    first = run_workload("independent", 20)
    learnt = first.learnt()
    other = SharedEddy(DOMAINS, seed=1)
    bounds = {n: above(**bounds) for n, bounds in enumerate(WORKLOADS["independent"][::-1])}
    other.add({n: SharedQuery(n, accepts) for n, accepts in bounds.items()})
    other.bind(PLACES, {})
    assert list(other.learnt()) != list(learnt)
    other.adopt(learnt)
    assert list(other.learnt()) == list(learnt)
    for name, own in other.learnt().items():
        assert own.cost_us == pytest.approx(learnt[name].cost_us)
        assert (own.taken, own.finished) == (learnt[name].taken, learnt[name].finished)
    assert shares_of(other) == pytest.approx(shares_of(first), abs=0.02)


def test_costs_are_known_though_operators_come_and_go() -> None:
    eddy = run_workload("independent", 3)
    costs = {name: own.cost_us for name, own in eddy.learnt().items()}
    eddy.drop([0])
    eddy.add({9: SharedQuery(9, above(a=10, b=10))})
    kept = {name: own.cost_us for name, own in eddy.learnt().items()}
    assert kept.pop("a") is None  # it left, and is new
    assert kept == {name: cost for name, cost in costs.items() if name != "a"}


def test_new_comparisons_come_before_all_others_and_new_predicates_behind_them() -> None:
    eddy = SharedEddy(DOMAINS, AsWritten(), seed=0)
    eddy.add({0: SharedQuery(0, above(a=5, b=5))})
    assert list(eddy.learnt()) == ["a", "b"]
    eddy.policy.adopt([1, 0])
    assert list(eddy.learnt()) == ["b", "a"]
    eddy.add({1: SharedQuery(1, above(c=5), ("even",)), 2: SharedQuery(2, above(d=5))})
    assert list(eddy.learnt()) == ["c", "d", "b", "a", "even"]


def test_a_python_function_that_no_row_has_reached_stays_behind_comparisons() -> None:
    """Nothing is known of what it costs; all queries need it, and each comparison only half."""
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, Tickets(lottery_share=1e-9), seed=0)
    eddy.add({n: SharedQuery(n, above(**{"cd"[n % 2]: 1_000}), ("odd",)) for n in range(20)})
    eddy.bind(PLACES, {"odd": odd_sum(calls)})
    for _ in range(10):
        eddy.run(make_batch(np.random.default_rng(0), 500))
    assert not calls


def test_a_python_function_is_not_called_because_earlier_rows_needed_it() -> None:
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, seed=0)
    eddy.add({0: SharedQuery(0, above(c=90), ("odd",))})
    eddy.bind(PLACES, {"odd": odd_sum(calls)})
    for c in (95, 5, 5, 95):  # cheap visits are not checked after a chunk that needed them
        columns = [pa.array([c] * 500)] * 5
        eddy.run(Batch(columns, READERS))
    assert len(calls) == 2 * 500


def test_comparisons_of_many_queries_are_loaded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, each insertion moves all that is there: 6 times the CPU at 2,000 queries."""
    added: list[int] = []
    monkeypatch.setattr(GroupedFilter, "add", lambda self, slot, values: added.append(slot))
    eddy = SharedEddy(DOMAINS, seed=0)
    term = above(a=1, b=2)
    eddy.add(
        {
            n: SharedQuery(n, above(c=n), clauses=(clause(a=n, b=n), Clause(terms=(term, term))))
            for n in range(50)
        }
    )
    assert not added


def clause(*needs: str, **bounds: int) -> Clause:
    return Clause(above(**bounds), needs)


#: What queries compare and call, and on which rows the function is still needed.
CALLING = {
    "(a OR b) AND f": (
        [SharedQuery(0, needs=("odd",), clauses=(clause(a=90, b=95),))],
        lambda a, b, c: (a > 90) | (b > 95),
    ),
    "((a AND b) OR c) AND f": (
        [
            SharedQuery(
                0, needs=("odd",), clauses=(Clause(above(c=97), terms=(above(a=80, b=70),)),)
            )
        ],
        lambda a, b, c: (c > 97) | (a > 80) & (b > 70),
    ),
    "a OR f": ([SharedQuery(0, clauses=(clause("odd", a=10),))], lambda a, b, c: ~(a > 10)),
    "c AND (a OR f), others": (
        [
            SharedQuery(0, above(c=90), clauses=(clause("odd", a=10),)),
            *[SharedQuery(1 + n, above(b=n)) for n in range(30)],
        ],
        lambda a, b, c: (c > 90) & ~(a > 10),
    ),
    "(a OR f) AND b; c AND f": (
        [
            SharedQuery(0, above(b=95), clauses=(clause("odd", a=50),)),
            SharedQuery(1, above(c=95), needs=("odd",)),
        ],
        lambda a, b, c: (b > 95) & ~(a > 50) | (c > 95),
    ),
}


@pytest.mark.parametrize("policy", ["tickets", "random", "agreedy"])
@pytest.mark.parametrize("what", CALLING)
def test_a_python_function_sees_only_rows_that_alternatives_leave(what: str, policy: str) -> None:
    """As for AND: also where only several comparisons together reject a row, or fulfil a query."""
    calls: list[int] = []
    queries, is_wanted = CALLING[what]
    drawn = Tickets(lottery_share=1.0) if policy == "random" else resolve_policy(policy)
    eddy = SharedEddy(DOMAINS, drawn, seed=0)
    eddy.add(dict(enumerate(queries)))
    slow = RowPredicate("slow", (0, 1), lambda a, b: bool(calls.append(1)) or (a or 0) % 2 == 1)
    eddy.bind(PLACES, {"odd": slow})
    rng, wanted = np.random.default_rng(0), 0
    for _ in range(20):
        batch = make_batch(rng, 500)
        eddy.run(batch)
        a, b, c = (
            np.array([-1 if value is None else value for value in column.to_pylist()])
            for column in batch.columns[:3]
        )
        wanted += int(is_wanted(a, b, c).sum())
    # Profile tuples evaluate every operator on a few rows.
    profiled = 0.05 * 20 * 500 if policy == "agreedy" else 0
    assert wanted <= len(calls) <= 1.1 * wanted + profiled


class Forgetful(Policy):
    """Leaves an operator out after the first chunk."""

    name = "forgetful"

    def learn(self, evidence):
        self.order = (0,)


def test_a_policy_that_leaves_an_operator_out_is_refused_by_name() -> None:
    domains = {"a": Whole(), "b": Whole()}
    eddy = SharedEddy(domains, Forgetful(), seed=0)
    query = SharedQuery(1, {name: domain.compare(">", 500) for name, domain in domains.items()})
    eddy.add({0: query})
    eddy.bind({"a": 0, "b": 1}, {})
    rows = Batch([pa.array([600]), pa.array([100])], [ColumnReader("a"), ColumnReader("b")])
    assert len(eddy.run(rows).rows) == 0
    with pytest.raises(InvalidPolicyError, match=r"'forgetful' returned \[0\], which is not a"):
        eddy.run(rows)


class Recording(AGreedy):
    """Remembers the profile tuples that it was shown."""

    def start(self, filters, order=None, seed=None):
        self.shown = []
        super().start(filters, order, seed)

    def learn(self, evidence):
        self.shown.append(evidence.tuples)
        return super().learn(evidence)


def test_a_profiling_policy_is_called_only_with_tuples_of_rejected_rows() -> None:
    policy = Recording(profile_probability=0.5)
    eddy = SharedEddy({"a": Whole()}, policy, seed=0)
    eddy.add({0: SharedQuery(1, {"a": Whole().compare(">", 500)})})
    eddy.bind({"a": 0}, {})
    for values in ([900] * 100, [100, 900] * 100):
        eddy.run(Batch([pa.array(values)], [ColumnReader("a")]))
    assert len(policy.shown) == 1  # nothing to learn from rows that every query accepts
    assert policy.shown[0].any(axis=1).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_shortest_function_comes_after_alternatives_in_a_new_worker(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes 0.06 µs by the clock, less than any Python function does."""
    calls: list[int] = []
    eddy = SharedEddy(DOMAINS, seed=seed)
    clause = Clause(above(a=90, b=95))
    eddy.add({0: SharedQuery(0, {}, ("short",), (clause,))})
    eddy.bind(PLACES, {"short": RowPredicate("short", (2,), lambda c: bool(calls.append(1)))})
    add_cost = eddy._learner.add_cost

    def short(operator: SharedOperator, rows: int, elapsed_us: float) -> None:
        add_cost(operator, rows, 0.06 * rows if operator.is_predicate else elapsed_us)

    monkeypatch.setattr(eddy._learner, "add_cost", short)
    wanted, rng = 0, np.random.default_rng(seed)
    for _ in range(6):
        batch = make_batch(rng, 4_000)
        a, b = (np.array(batch.columns[PLACES[name]].to_pylist(), dtype=float) for name in "ab")
        wanted += int(((a > 90) | (b > 95)).sum())
        eddy.run(batch)
    assert wanted <= len(calls) <= 1.1 * wanted
