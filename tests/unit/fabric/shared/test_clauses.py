"""Clauses: a query keeps a row only if each of its clauses has an alternative that holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.shared.clause_slots import CROWD_MIN, ClauseSlots
from eddyline.fabric.shared.clauses import ClauseTable, make_layers
from eddyline.fabric.shared.eddy import CHUNK_WORDS, SharedEddy
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.operator_table import OperatorTable
from eddyline.fabric.shared.operators import SharedGroupedFilter
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.bitmaps import bit
from eddyline.operators.domain import Whole

TERM: dict[str, Any] = {name: Whole().compare(">", 5) for name in "ab"}
KINDS = [Clause(), Clause(terms=(TERM, TERM)), Clause({"c": TERM["a"]}, terms=(TERM,))]


def is_set(bitmaps: np.ndarray, slot: int) -> np.ndarray:
    word, mask = bit(slot)
    return bitmaps[:, word] & mask != 0


def layers_of(table: ClauseTable, slots: int) -> list[Any]:
    return make_layers(clause for slot in range(slots) for clause in table.of(slot))


def test_rows_are_rejected_for_exactly_the_queries_with_an_unfulfilled_clause() -> None:
    rng = np.random.default_rng(0)
    table = ClauseTable()
    present: set[int] = set()
    for slot in range(400):
        kinds = rng.integers(0, len(KINDS), int(rng.integers(0, 4)))
        table.add({slot: SharedQuery(slot, clauses=tuple(KINDS[kind] for kind in kinds))})
        present.add(slot)
        if slot % 3 == 0:  # bits of clauses are given to others
            gone = int(rng.choice(sorted(present)))
            present.remove(gone)
            table.remove(gone)
    rows = np.arange(50)
    every = np.full(7, ~np.uint64(0))
    lineage = Lineage.start(rows, every, table.words, table.term_words)
    lineage.fulfilled[:] = rng.integers(0, 2**63, lineage.fulfilled.shape, dtype=np.uint64) << 1
    lineage.unrefuted[:] = rng.integers(0, 2**63, lineage.unrefuted.shape, dtype=np.uint64)
    before = lineage.interested.copy()
    for due in table.schedule(["a", "b", "c"], ()).values():
        table.reject_unfulfilled(lineage, due)
    rejected = 0
    for slot in range(400):
        expected = is_set(before, slot)
        for clause in table.of(slot):
            holds = np.zeros(len(rows), dtype=bool)
            if clause.single >= 0:
                holds |= is_set(lineage.fulfilled, clause.single)
            for term in clause.terms:
                holds |= is_set(lineage.unrefuted, term)
            expected = expected & holds
        assert is_set(lineage.interested, slot).tolist() == expected.tolist(), slot
        rejected += int((~expected).sum())
    assert rejected > 1_000


@pytest.mark.parametrize("count", [200, 800, 3_000])
@pytest.mark.parametrize("clauses", [1, 4])
def test_clauses_are_checked_in_as_many_steps_as_a_query_has(count: int, clauses: int) -> None:
    """Not one for each query: 3,000 queries with nested AND and OR cost 65 times those with AND."""
    table = ClauseTable()
    table.add({slot: SharedQuery(slot, clauses=(Clause(),) * clauses) for slot in range(count)})
    words = -(-count // 64)
    layers = layers_of(table, count)
    assert len(layers) == clauses
    assert sum(len(layer.others) for layer in layers) == clauses * words
    assert table.words == clauses * words


@pytest.mark.parametrize("at_once", [True, False])
def test_queries_of_different_kinds_are_checked_in_few_steps(at_once: bool) -> None:
    """Bits that only shared words where there was room took up to 64 steps for each clause."""
    rng = np.random.default_rng(1)
    queries = {}
    for slot in range(3_000):
        kinds = rng.integers(0, len(KINDS), int(rng.integers(0, 4)))
        queries[slot] = SharedQuery(slot, clauses=tuple(KINDS[kind] for kind in kinds))
    table = ClauseTable()
    for added in [queries] if at_once else [{slot: query} for slot, query in queries.items()]:
        table.add(added)
    layers = layers_of(table, 3_000)
    steps = sum(len(layer.others) for layer in layers)
    assert steps <= (30 if at_once else 60) * 3_000 / 64


def test_few_clauses_among_many_queries_share_words() -> None:
    table = ClauseTable()
    with_clauses = set(range(0, 6_400, 101))  # at different places of their words
    table.add(
        {
            slot: SharedQuery(slot, clauses=(Clause(),) if slot in with_clauses else ())
            for slot in range(6_400)
        }
    )
    assert table.words == 1


def test_words_of_bits_are_used_again() -> None:
    slots = ClauseSlots()
    for _ in range(20):
        taken = [slots.take(query, 0) for query in range(64)]
        assert len(set(taken)) == 64
        for slot in taken:
            slots.give_back(slot)
    assert slots.words <= CROWD_MIN + 1


def test_clauses_are_checked_before_the_first_predicate_that_needs_them() -> None:
    table = ClauseTable()
    table.add(
        {
            0: SharedQuery(0, clauses=(Clause(terms=(TERM,)),)),
            1: SharedQuery(1, clauses=(Clause({"c": TERM["a"]}, needs=("f",)),)),
        }
    )
    compared, calling = frozenset("ab"), frozenset("cf")
    assert table.schedule(["a", "b", "c", "f", "g"], {"f", "g"}) == {
        "f": {compared},
        "g": {calling},
        None: frozenset(),
    }
    assert table.schedule(["f", "a", "b", "c"], {"f"}) == {None: {compared, calling}}
    table.remove(0)
    assert table.schedule(["a", "b", "c", "f"], {"f"}) == {None: {calling}}


def test_terms_in_any_order_are_checked_in_one_step_and_visited_in_a_part_of_their_words() -> None:
    values, rng = Whole().compare(">", 5), np.random.default_rng(0)
    terms = [dict.fromkeys(names, values) for names in ("ab", "cd", "ef")]
    queries = {
        slot: SharedQuery(slot, clauses=(Clause(terms=tuple(rng.permutation(terms))),))
        for slot in range(128)
    }
    table, operators = ClauseTable(), OperatorTable(dict.fromkeys("abcdef", Whole()))
    table.add(queries)
    operators.widen(2, table.words, table.term_words)
    operators.add(queries, table)
    assert len(layers_of(table, 128)) == 1
    spans = {operator.name: operator._terms.span for operator in operators}
    thirds = [slice(0, 2), slice(2, 4), slice(4, 6)]
    assert [spans[name] for name in "abcdef"] == [each for each in thirds for _ in range(2)]


def test_terms_have_more_checkpoints_than_comparisons_of_whole_queries() -> None:
    words = 200
    group = SharedGroupedFilter("a", Whole(), words, words, words)
    bounds = np.random.default_rng(0).permutation(64 * words).tolist()
    sets = {slot: Whole().compare(">", bound) for slot, bound in enumerate(bounds)}
    group.add(sets, {}, sets)
    assert len(group._terms._regions) > 3 * len(group._required._regions)


def test_bits_of_clauses_make_chunks_only_half_as_small() -> None:
    above = Whole().compare(">", 5)
    term = dict.fromkeys("ab", above)
    eddy = SharedEddy({"a": Whole(), "b": Whole()})
    clauses = (Clause(terms=(term, term, term, term)),)
    eddy.add({slot: SharedQuery(slot, clauses=clauses) for slot in range(64 * 256)})
    eddy.bind({"a": 0, "b": 1}, {})
    rows = CHUNK_WORDS // (256 + 2 * 256) + 1
    chunks = []
    route = eddy.route
    eddy.route = lambda batch, own: (chunks.append(len(own)), route(batch, own))[1]  # type: ignore[method-assign]
    columns = [pa.array(np.zeros(rows, dtype=np.int64))] * 2
    eddy.run(Batch(columns, [ColumnReader(name) for name in "ab"]))
    assert chunks == [rows - 1, 1]
