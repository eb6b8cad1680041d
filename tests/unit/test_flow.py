"""One eddy for all queries, against evaluating each query by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.shared.eddy import Flow
from eddyline.fabric.shared.query import Clause, StandingQuery
from eddyline.operators import Batch, ColumnReader, Operator, RowPredicate
from eddyline.operators.bitmaps import set_bits
from eddyline.operators.domain import Whole
from eddyline.ordering import POLICIES, resolve_policy

COLUMNS = ["a", "b", "c", "d", "e"]
DOMAINS = {name: Whole() for name in COLUMNS}
PLACES = {name: at for at, name in enumerate(COLUMNS)}
READERS = [ColumnReader(name) for name in COLUMNS]


def above(**bounds: int) -> dict[str, Any]:
    return {name: DOMAINS[name].compare(">", bound) for name, bound in bounds.items()}


TABLE_3 = [
    StandingQuery(1, above(a=90)),
    StandingQuery(2, above(a=90, b=70)),
    StandingQuery(3, above(a=90, b=70, c=50)),
    StandingQuery(4, above(a=90, b=70, c=50, d=30)),
    StandingQuery(5, above(a=90, b=70, c=50, d=30, e=10)),
]


def make_batch(rng: np.random.Generator, rows: int) -> Batch:
    columns = [pa.array(rng.integers(0, 100, rows), mask=rng.random(rows) < 0.05) for _ in COLUMNS]
    return Batch(columns, READERS)


def odd_sum(calls: list[int]) -> Operator:
    def judge(a: int | None, b: int | None) -> bool | None:
        calls.append(1)
        return None if a is None or b is None else (a + b) % 2 == 1

    return RowPredicate("odd_sum", (0, 1), judge)


def random_query(rng: np.random.Generator, number: int) -> StandingQuery:
    def values(name: str) -> Any:
        low, high = sorted(rng.integers(0, 100, 2).tolist())
        own = DOMAINS[name].compare(">=", low) & DOMAINS[name].compare("<=", high)
        return own if rng.random() < 0.8 else ~own

    def some(most: int) -> dict[str, Any]:
        names = rng.choice(COLUMNS, int(rng.integers(0, most + 1)), replace=False)
        return {str(name): values(str(name)) for name in names}

    clauses = tuple(
        Clause(some(3), ("odd",) if rng.random() < 0.3 else ())
        for _ in range(int(rng.integers(0, 3)))
    )
    return StandingQuery(number, some(3), ("odd",) if rng.random() < 0.2 else (), clauses)


def answer(query: StandingQuery, row: dict[str, Any]) -> bool:
    def odd() -> bool:
        return row["a"] is not None and row["b"] is not None and (row["a"] + row["b"]) % 2 == 1

    return (
        all(values.has(row[name]) for name, values in query.accepts.items())
        and (not query.needs or odd())
        and all(
            any(values.has(row[name]) for name, values in clause.accepts.items())
            or (bool(clause.needs) and odd())
            for clause in query.clauses
        )
    )


@pytest.mark.parametrize("policy", list(POLICIES))
def test_matches_equal_those_of_each_query_alone(policy: str) -> None:
    rng = np.random.default_rng(3)
    flow = Flow(DOMAINS, resolve_policy(policy), seed=0)
    standing: dict[int, StandingQuery] = {}
    for step in range(12):
        fresh = [random_query(rng, 1000 * step + n) for n in range(int(rng.integers(0, 40)))]
        flow.take_counts()
        flow.add(fresh)
        standing |= {query.number: query for query in fresh}
        gone = [n for n in standing if rng.random() < 0.3]
        flow.drop(gone)
        for number in gone:
            del standing[number]
        flow.bind(PLACES, {"odd": odd_sum([])})
        batch = make_batch(rng, 300)
        matched = flow.run(batch)
        rows = pa.table(dict(zip(COLUMNS, batch.columns, strict=True))).to_pylist()
        expected = {
            (at, query.number)
            for at, row in enumerate(rows)
            for query in standing.values()
            if answer(query, row)
        }
        found = list(zip(matched.rows.tolist(), matched.numbers.tolist(), strict=True))
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert sum(flow.take_counts().values()) == len(expected)


def test_a_row_is_done_with_every_operator_its_queries_need() -> None:
    rng = np.random.default_rng(4)
    flow = Flow(DOMAINS, seed=0)
    queries = [random_query(rng, n) for n in range(50)]
    flow.add(queries)
    flow.bind(PLACES, {"odd": odd_sum([])})
    lineage = flow._route(make_batch(rng, 500), np.arange(500))
    users = [set(set_bits(operator.users[None])[1].tolist()) for operator in flow.operators]
    for row, slot in zip(*set_bits(lineage.interested), strict=True):
        needed = {n for n, own in enumerate(users) if slot in own}
        assert needed <= set(set_bits(lineage.done[row : row + 1])[1].tolist())


def test_a_slot_that_is_used_again_shows_nothing_old() -> None:
    flow = Flow(DOMAINS, seed=0)
    flow.add([StandingQuery(1, above(a=10), clauses=(Clause(above(b=5, c=5)),))])
    flow.drop([1])
    flow.add([StandingQuery(2, above(b=90))])
    flow.bind(PLACES, {})
    batch = Batch([pa.array([50]), pa.array([50]), *[pa.array([50])] * 3], READERS)
    assert len(flow.run(batch).rows) == 0
    assert flow.take_counts() == {}
    assert [operator.name for operator in flow.operators] == ["b"]


def test_python_predicates_see_only_rows_that_some_query_still_wants() -> None:
    calls: list[int] = []
    flow = Flow(DOMAINS, seed=0)
    flow.add([StandingQuery(n, above(c=90), ("odd",)) for n in range(100)])
    flow.bind(PLACES, {"odd": odd_sum(calls)})
    rng = np.random.default_rng(0)
    for _ in range(30):  # the order is learnt from the first of them
        batch = make_batch(rng, 500)
        calls.clear()
        flow.run(batch)
    wanted = sum(1 for c in batch.columns[2].to_pylist() if c is not None and c > 90)
    assert len(calls) == wanted


def test_a_predicate_that_raises_fails_only_queries_that_nothing_else_rejects() -> None:
    def judge(a: int) -> bool:
        if a == 7:
            raise ValueError("seven")
        return True

    flow = Flow(DOMAINS, seed=0)
    flow.add(
        [
            StandingQuery(1, above(b=50), ("seven",)),
            StandingQuery(2, above(b=20), ("seven",)),
            StandingQuery(3, above(b=20)),
        ]
    )
    flow.bind(PLACES, {"seven": RowPredicate("is_seven", (0,), judge)})
    columns = [pa.array([7, 8]), pa.array([30, 60]), *[pa.array([0, 0])] * 3]
    matched = flow.run(Batch(columns, READERS))
    assert list(matched.failures) == [2]
    assert "is_seven raised ValueError: seven" in matched.failures[2]
    counts = flow.take_counts()
    assert counts[1] == 1
    assert counts[3] == 2


def test_tickets_visit_hardly_more_filters_than_the_best_order() -> None:
    rng = np.random.default_rng(0)
    flow = Flow(DOMAINS, seed=0)
    flow.add(TABLE_3)
    flow.bind(PLACES, {})
    for _ in range(200):
        columns = [pa.array(rng.integers(0, 100, 1_000)) for _ in COLUMNS]
        flow.run(Batch(columns, READERS))
    assert flow.visits / flow.rows <= 1.25
