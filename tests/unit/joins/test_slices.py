"""Rows come in slices whose matches fit into memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.bench.joins_workload import run_of
from eddyline.joins import drop_probing, expansion, searches
from eddyline.joins import stem as stem_module
from eddyline.joins.join import Join
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from tests.unit.joins import oracle
from tests.unit.joins.test_probing import random_query, random_rows, run_batches


@pytest.mark.parametrize("partners", [2, 1_000])
def test_rows_with_many_partners_come_in_small_slices(
    monkeypatch: pytest.MonkeyPatch, partners: int
) -> None:
    sizes: list[int] = []
    find = drop_probing.find_matches

    def finding(*args: Any) -> Any:
        found = find(*args)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(drop_probing, "find_matches", finding)
    roles = (Role(0), Role(1))
    equal = (frozenset(KeyRef(role, 0) for role in roles),)
    join = Join([JoinQuery(0, roles, equal, dict.fromkeys(roles, 10**9))], classes=None)
    keys = np.arange(5)
    results: list[int] = []
    join.run({0: run_of(np.repeat(keys, partners))}, lambda found: results.append(len(found)))
    join.run({1: run_of(np.resize(keys, 600))}, lambda found: results.append(len(found)))
    assert sum(results) == sum(sizes) == 600 * partners
    assert max(sizes) <= drop_probing.MATCHES_MAX
    assert len(sizes) <= (20 if partners == 1_000 else 4)  # and no smaller than they need to be


def limit_slices(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Let everything that comes in slices come in slices of so many rows, or one probe's."""
    patch.setattr(expansion, "TUPLES_MAX", rows)
    patch.setattr(searches, "CANDIDATES_MAX", rows)
    patch.setattr(stem_module, "CANDIDATES_MAX", rows)
    patch.setattr(searches, "RANGES_MAX", rows)


@settings(max_examples=100)
@given(seed=st.integers(0, 10**9))
def test_results_do_not_depend_on_the_size_of_slices(seed: int) -> None:
    rng = random.Random(seed)
    streams, slots, batches = rng.randint(2, 4), rng.randint(1, 3), rng.randint(1, 3)
    queries = [random_query(rng, slot, streams) for slot in range(slots)]
    rows = random_rows(rng, streams, slots, batches)
    with pytest.MonkeyPatch.context() as patch:
        limit_slices(patch, rng.randint(1, 5))
        found = run_batches(queries, rows, batches)
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


def results_in_pieces(query: JoinQuery, partners: int) -> list[int]:
    """Return the sizes in which the results of 600 rows with so many partners each come."""
    join, pieces = Join([query], classes=None), []
    for stream in (0, 1):
        count = 5 * partners if stream == 0 else 600
        join.run({stream: run_of(np.arange(count) % 5)}, lambda found: pieces.append(len(found)))
    return pieces


@pytest.mark.parametrize("has_key", [True, False], ids=["equal keys", "cross join"])
def test_results_come_in_pieces_that_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, has_key: bool
) -> None:
    limit_slices(monkeypatch, 1_000)
    roles = (Role(0), Role(1))
    equal = (frozenset(KeyRef(role, 0) for role in roles),) if has_key else ()
    pieces = results_in_pieces(JoinQuery(0, roles, equal, dict.fromkeys(roles)), 30)
    assert sum(pieces) == 600 * 30 * (1 if has_key else 5)
    assert max(pieces) <= 1_000
    assert max(pieces) > 500  # and no smaller than they need to be
