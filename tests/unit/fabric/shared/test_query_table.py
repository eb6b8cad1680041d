"""Clauses: a query keeps a row only if each of its clauses has an alternative that holds."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.fabric.shared.query_table import QueryTable, layer_clauses
from eddyline.operators.bitmaps import bit


def test_rows_are_rejected_for_exactly_the_queries_with_an_unfulfilled_clause() -> None:
    rng = np.random.default_rng(0)
    table = QueryTable()
    for slot in range(300):
        clauses = (Clause(),) * int(rng.integers(0, 4))
        table.add({slot: SharedQuery(slot, clauses=clauses)})
        if slot % 3 == 0:  # slots of clauses are given to others
            table.remove(int(rng.integers(0, slot // 3 + 1)) if slot == 0 else slot - 1)
    rows = np.arange(50)
    lineage = Lineage.start(rows, table.active, table.clause_words)
    lineage.fulfilled[:] = rng.integers(0, 2**63, lineage.fulfilled.shape, dtype=np.uint64)
    lineage.fulfilled |= rng.integers(0, 2**63, lineage.fulfilled.shape, dtype=np.uint64)
    before = lineage.interested.copy()
    table.reject_unfulfilled(lineage)
    for slot in range(300):
        word, mask = bit(slot)
        own = [bit(clause) for clause in table.clause_slots.get(slot, [])]
        holds = [all(lineage.fulfilled[row, w] & m for w, m in own) for row in rows]
        expected = (before[:, word] & mask != 0) & np.array(holds)
        assert (lineage.interested[:, word] & mask != 0).tolist() == expected.tolist()


@pytest.mark.parametrize("count", [200, 800, 3_000])
@pytest.mark.parametrize("clauses", [1, 4])
def test_clauses_are_checked_in_as_many_steps_as_a_query_has(count: int, clauses: int) -> None:
    """Not one for each query: 3,000 queries with nested AND and OR cost 65 times those with AND."""
    table = QueryTable()
    table.add({slot: SharedQuery(slot, clauses=(Clause(),) * clauses) for slot in range(count)})
    layers = layer_clauses(table.clause_slots)
    assert len(layers) == clauses
    assert sum(len(layer.query_words) for layer in layers) == clauses * table.words
    assert table.clause_words == clauses * table.words


def test_few_clauses_among_many_queries_share_words() -> None:
    table = QueryTable()
    with_clauses = set(range(0, 6_400, 101))  # at different places of their words
    table.add(
        {
            slot: SharedQuery(slot, clauses=(Clause(),) if slot in with_clauses else ())
            for slot in range(6_400)
        }
    )
    assert table.clause_words == 1
