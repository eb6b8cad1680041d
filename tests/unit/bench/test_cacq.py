"""The experiments of the paper on CACQ measure what they say."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.bench.cacq_scaling import (
    CONDITIONS,
    SOURCE_QUERIES,
    SOURCES,
    condition_queries,
    queries_by_source,
)
from eddyline.bench.cacq_workload import make_eddy, make_rows


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


def test_only_conditions_without_or_have_no_clauses() -> None:
    clauses = {
        kind: {len(query.clauses) for query in condition_queries(kind, 20, seed=0)}
        for kind in CONDITIONS
    }
    assert clauses == {
        "AND": {0},
        "OR": {1},
        "NOT": {1},
        "nested": {4},
        "nested with NOT": {2},
    }
