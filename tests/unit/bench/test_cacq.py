"""The experiments of the paper on CACQ measure what they say."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.bench.cacq_conditions import CONDITIONS, MORE_CONDITIONS, condition_queries
from eddyline.bench.cacq_scaling import (
    SOURCE_QUERIES,
    SOURCES,
    queries_by_source,
)
from eddyline.bench.cacq_workload import COLUMNS, VALUES, make_eddy, make_rows
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas


@pytest.mark.parametrize("sources", SOURCES)
def test_every_source_has_queries_and_every_query_a_source(sources: int) -> None:
    queries = queries_by_source(sources)
    assert len(queries) == sources
    assert min(map(len, queries)) >= 1
    assert sorted(q.number for own in queries for q in own) == list(range(SOURCE_QUERIES))


def test_a_row_comes_out_less_often_the_more_sources_there_are() -> None:
    batch = make_rows(np.random.default_rng(0), 1_000)
    rates = []
    for sources in SOURCES:
        eddies = [make_eddy(queries) for queries in queries_by_source(sources)]
        for eddy in eddies:
            eddy.run(batch)
        matches = sum(sum(eddy.take_counts().values()) for eddy in eddies)
        rates.append(matches / (1_000 * sources))
    assert rates == sorted(rates, reverse=True)


def test_conditions_take_few_bits_a_row() -> None:
    """A clause or a term each; OR of AND had four clauses, which took four times the bits."""
    bits = {}
    for kind in CONDITIONS:
        clauses = [clause for query in condition_queries(kind, 20, 0) for clause in query.clauses]
        own = [len(clause.terms) or 1 for clause in clauses]
        bits[kind] = sum(own) / 20
    assert bits == {
        "AND": 0,
        "OR": 1,
        "NOT": 1,
        "OR of AND": 2,
        "AND of OR": 2,
        "nested": 2,
        "nested with NOT": 2,
    }


def test_queries_of_all_kinds_have_the_same_comparisons() -> None:
    columns = [
        [query.operators for query in condition_queries(kind, 10, seed=3)]
        for kind in (*CONDITIONS, "mixed")
    ]
    assert all(own == columns[0] for own in columns)


@pytest.mark.parametrize("kind", CONDITIONS)
def test_queries_are_those_that_their_texts_compile_to(kind: str) -> None:
    schemas = Schemas({"s": dict.fromkeys(COLUMNS, "int")})
    rng = np.random.default_rng(5)
    for query in condition_queries(kind, 10, seed=5):
        names = rng.permutation(COLUMNS)[:4].tolist()
        signs = rng.choice(["<", "<=", ">", ">="], 4).tolist()
        constants = rng.integers(0, VALUES, 4).tolist()
        literals = [f"{n} {s} {c}" for n, s, c in zip(names, signs, constants, strict=True)]
        text = f"SELECT a FROM s WHERE {CONDITIONS[kind].format(*literals)}"
        assert query == parse(text, schemas).shared(query.number, is_stored=False)


@pytest.mark.parametrize("kind", MORE_CONDITIONS)
def test_kinds_with_more_comparisons_have_those_of_the_queries_with_and(kind: str) -> None:
    """A row that fulfils all comparisons fulfils the condition, unless it has a NOT."""
    queries = condition_queries(kind, 50, 3)
    joined = condition_queries(f"AND, {kind}", 50, 3)
    assert all(query.clauses for query in queries)
    assert not any(query.clauses for query in joined)
    columns = [query.operators for query in queries]
    assert columns == [query.operators for query in joined]
    assert {name for names in columns for name in names} >= set(COLUMNS)
