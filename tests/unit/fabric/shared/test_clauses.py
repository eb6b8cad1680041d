"""Clauses: a query keeps a row only if each of its clauses has an alternative that holds."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.shared import comparison_check
from eddyline.fabric.shared.clause_bits import BitWords
from eddyline.fabric.shared.clause_slots import CROWD_MIN, ClauseSlots
from eddyline.fabric.shared.clauses import CHECKS_MAX, ClauseTable, make_layers
from eddyline.fabric.shared.comparison_check import BLOCK_WORDS, TABLE_BYTES_MAX, Step, make_steps
from eddyline.fabric.shared.eddy import CHUNK_WORDS, SharedEddy
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.operator_table import OperatorTable
from eddyline.fabric.shared.operators import SharedGroupedFilter
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators import Batch, ColumnReader, RowPredicate
from eddyline.operators.bitmaps import bit
from eddyline.operators.domain import Domain, Whole
from eddyline.operators.region_tables import RegionTable
from eddyline.operators.value_set import NOT_NULL, ONLY_NULL, ValueSet

COLUMNS = "abcd"
TERM: dict[str, Any] = {name: Whole().compare(">", 5) for name in "ab"}
CALLING = Clause(TERM, needs=("f",))
COMPARING = [Clause(), Clause(terms=(TERM, TERM)), Clause({"c": TERM["a"]}, terms=(TERM,))]


def is_set(bitmaps: np.ndarray, slot: int) -> np.ndarray:
    word, mask = bit(slot)
    return bitmaps[:, word] & mask != 0


def layers_of(table: ClauseTable, slots: int) -> list[Any]:
    return make_layers(clause for slot in range(slots) for clause in table.of(slot))


class Tables:
    """Clauses and operators, of queries that come and go."""

    def __init__(self, domain: Domain) -> None:
        self.clauses, self.operators = ClauseTable(), OperatorTable(dict.fromkeys(COLUMNS, domain))
        self.queries: dict[int, SharedQuery] = {}
        self.query_words = 1

    def add(self, queries: dict[int, SharedQuery]) -> None:
        self.clauses.add(queries)
        self.queries |= queries
        self.query_words = max(self.query_words, max(queries) // 64 + 1)
        self.operators.widen(BitWords(self.query_words, *self.clauses.words))
        self.operators.add(queries, self.clauses)
        self.operators.bind({name: at for at, name in enumerate(COLUMNS)}, {"f": None})  # type: ignore[dict-item]

    def drop(self, slot: int) -> None:
        self.operators.remove(slot, self.clauses.remove(slot))
        del self.queries[slot]

    def steps(self) -> list[Step]:
        clauses = (clause for slot in sorted(self.queries) for clause in self.clauses.of(slot))
        return make_steps(clauses, self.operators.tables())

    def check(self, batch: Batch, rng: np.random.Generator) -> tuple[Lineage, Lineage]:
        """Return the lineage before clauses are checked, and after."""
        every = np.full(self.query_words, ~np.uint64(0))
        lineage = Lineage.start(np.arange(batch.rows), every, self.clauses.words.mixed)
        shape = lineage.fulfilled.shape  # as if predicates had fulfilled clauses
        lineage.fulfilled[:] = rng.integers(0, 2**63, shape, dtype=np.uint64) << np.uint64(1)
        for operator in self.operators:
            if isinstance(operator, SharedGroupedFilter):
                operator.visit(batch, lineage, np.arange(batch.rows))
        before = copy.deepcopy(lineage)
        for due in self.clauses.schedule([*COLUMNS, "f"], {"f"}).values():
            self.clauses.reject_unfulfilled(lineage, due, self.operators.tables)
        return before, lineage


def holds(clause: Clause, row: dict[str, int | None]) -> bool:
    """Whether a clause without predicates holds."""
    return any(values.has(row[name]) for name, values in clause.accepts.items()) or any(
        all(values.has(row[name]) for name, values in term.items()) for term in clause.terms
    )


def random_clause(rng: np.random.Generator, domain: Whole, largest: int) -> Clause:
    def values() -> ValueSet:
        kind, constants = rng.integers(5), rng.integers(0, largest, 3).tolist()
        if kind == 0:
            return domain.equal_to_any(constants)
        if kind == 1:
            return ~domain.compare("=", constants[0])
        if kind == 2:
            return ONLY_NULL if constants[0] % 2 else NOT_NULL
        return domain.compare(str(rng.choice(["<", ">", ">="])), constants[0])

    def some(count: int) -> dict[str, ValueSet]:
        return {str(name): values() for name in rng.permutation(list(COLUMNS))[:count]}

    kind = rng.integers(12)
    if kind == 0:
        return Clause()
    if kind < 3:
        return Clause(some(1), needs=("f",))
    terms = tuple(some(int(rng.integers(2, 4))) for _ in range(int(rng.integers(0, 4))))
    return Clause(some(int(rng.integers(0, 3))), terms=terms)


@pytest.mark.parametrize(
    ("largest", "table_bytes_max"),
    [(20, TABLE_BYTES_MAX), (20, 1_000), (1_000, 5_000), (10**12, TABLE_BYTES_MAX), (10**12, 100)],
)
def test_rows_are_rejected_for_exactly_the_queries_with_an_unfulfilled_clause(
    largest: int, table_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_check, "TABLE_BYTES_MAX", table_bytes_max)
    rng, domain = np.random.default_rng(largest), Whole()
    tables = Tables(domain)
    batches = [[rng.integers(0, largest, 50).tolist() for _ in COLUMNS] for _ in range(3)]
    for batch in batches:
        for column in batch:
            column[int(rng.integers(50))] = None
    rejected = 0
    for nth, slot in enumerate(rng.permutation(400).tolist()):
        clauses = (random_clause(rng, domain, largest) for _ in range(int(rng.integers(0, 4))))
        tables.add({slot: SharedQuery(slot, clauses=tuple(clauses))})
        if nth % 3 == 0:  # bits of clauses are given to others
            tables.drop(int(rng.choice(sorted(tables.queries))))
        if nth % 150 < 149 and nth < 399:
            continue
        columns = batches[nth % 3]
        batch = Batch([pa.array(column) for column in columns], [ColumnReader(c) for c in COLUMNS])
        before, after = tables.check(batch, rng)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
        for number, query in tables.queries.items():
            expected = is_set(before.interested, number)
            for clause, bits in zip(query.clauses, tables.clauses.of(number), strict=True):
                if clause.needs:
                    expected = expected & is_set(before.fulfilled, bits.single)
                else:
                    expected = expected & np.array([holds(clause, row) for row in rows])
            assert is_set(after.interested, number).tolist() == expected.tolist(), number
            rejected += int((~expected).sum())
        for number in set(range(max(tables.queries))) - tables.queries.keys():
            assert is_set(after.interested, number).all()
    assert rejected > 3_000


def test_what_clauses_are_checked_by_changes_with_the_queries() -> None:
    above = {value: Whole().compare(">", value) for value in (1, 5)}
    eddy = SharedEddy({"a": Whole(), "b": Whole()})
    batch = Batch([pa.array([3]), pa.array([0])], [ColumnReader(name) for name in "ab"])

    def run(changed: SharedQuery | None) -> set[int]:
        if changed is None:
            eddy.drop([0])
        else:
            eddy.add({changed.number: changed})
        eddy.bind({"a": 0, "b": 1}, {})
        return set(eddy.run(batch).numbers.tolist())

    def either(number: int, value: int) -> SharedQuery:
        return SharedQuery(number, clauses=(Clause(dict.fromkeys("ab", above[value])),))

    assert run(either(0, 5)) == set()
    assert run(either(1, 1)) == {1}
    assert run(None) == {1}
    assert run(SharedQuery(0)) == {0, 1}  # it has the bit of one that rejected the row


def test_tables_of_few_sets_of_clauses_are_kept() -> None:
    tables, rng = Tables(Whole()), np.random.default_rng(0)
    tables.add({0: SharedQuery(0, clauses=(Clause(TERM),))})
    batch = Batch([pa.array([7])] * len(COLUMNS), [ColumnReader(name) for name in COLUMNS])
    tables.check(batch, rng)
    lineage = Lineage.start(np.arange(1), np.ones(1, dtype=np.uint64), 0)
    for n in range(3 * CHECKS_MAX):
        due = frozenset((frozenset("ab"), frozenset([f"other {n}"])))
        tables.clauses.reject_unfulfilled(lineage, due, tables.operators.tables)
        assert 0 < len(tables.clauses._checks) <= CHECKS_MAX


def test_bitmaps_of_clauses_are_made_for_as_many_rows_as_fit_into_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    take = RegionTable.take

    def noting(table: RegionTable, regions: np.ndarray, out: np.ndarray) -> None:
        sizes.append(out.size)
        take(table, regions, out)

    monkeypatch.setattr(RegionTable, "take", noting)
    tables = Tables(Whole())
    tables.add({slot: SharedQuery(slot, clauses=(Clause(TERM),)) for slot in range(640)})
    batch = Batch([pa.array([7] * 10_000)] * 4, [ColumnReader(name) for name in COLUMNS])
    tables.check(batch, np.random.default_rng(0))
    assert max(sizes) == BLOCK_WORDS // 10 * 10
    assert sum(sizes) == 2 * 10_000 * 10


def test_a_clause_has_no_terms_beside_predicates() -> None:
    with pytest.raises(ValueError, match="not both"):
        Clause(needs=("f",), terms=(TERM,))


@pytest.mark.parametrize("count", [200, 800, 3_000])
@pytest.mark.parametrize("clauses", [1, 4])
def test_clauses_are_checked_in_as_many_steps_as_a_query_has(count: int, clauses: int) -> None:
    """Not one for each query: 3,000 queries with nested AND and OR cost 65 times those with AND."""
    table = ClauseTable()
    table.add({slot: SharedQuery(slot, clauses=(CALLING,) * clauses) for slot in range(count)})
    words = -(-count // 64)
    layers = layers_of(table, count)
    assert len(layers) == clauses
    assert sum(len(layer.others) for layer in layers) == clauses * words
    assert table.words == (clauses * words, 0, 0)
    tables = Tables(Whole())
    tables.add({n: SharedQuery(n, clauses=(COMPARING[2],) * clauses) for n in range(count)})
    steps = tables.steps()
    assert len(steps) == clauses
    assert all(len(step.kept) == words and len(step.sources) == 2 for step in steps)


@pytest.mark.parametrize("at_once", [True, False])
def test_queries_of_different_kinds_are_checked_in_few_steps(at_once: bool) -> None:
    """Bits that only shared words where there was room took up to 64 steps for each clause."""
    rng = np.random.default_rng(1)
    queries = {}
    for slot in range(3_000):
        kinds = rng.integers(0, len(COMPARING), int(rng.integers(0, 4))).tolist()
        calling = (CALLING,) * int(rng.integers(0, 4))
        clauses = (*(COMPARING[kind] for kind in kinds), *calling)
        queries[slot] = SharedQuery(slot, clauses=clauses)
    tables = Tables(Whole())
    for added in [queries] if at_once else [{slot: query} for slot, query in queries.items()]:
        tables.add(added)
    bits = [clause for slot in range(3_000) for clause in tables.clauses.of(slot)]
    layers = make_layers(clause for clause in bits if clause.has_predicates)
    words = sum(len(layer.others) for layer in layers)
    assert words <= (10 if at_once else 20) * 3_000 / 64
    steps = make_steps((c for c in bits if not c.has_predicates), tables.operators.tables())
    assert len(steps) == 3  # as many as the most comparing clauses of a query
    assert all(len(step.sources) == 3 for step in steps)  # single alternatives, and two terms


def test_few_clauses_among_many_queries_share_words() -> None:
    table = ClauseTable()
    with_clauses = set(range(0, 6_400, 101))  # at different places of their words
    table.add(
        {
            slot: SharedQuery(slot, clauses=(CALLING,) if slot in with_clauses else ())
            for slot in range(6_400)
        }
    )
    assert table.words == (1, 0, 0)


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


def test_terms_in_any_order_are_checked_in_one_step_by_their_own_columns() -> None:
    values, rng = Whole().compare(">", 5), np.random.default_rng(0)
    terms = [dict.fromkeys(names, values) for names in ("ab", "ac", "cd")]
    tables = Tables(Whole())
    tables.add(
        {
            slot: SharedQuery(slot, clauses=(Clause(terms=tuple(rng.permutation(terms))),))
            for slot in range(128)
        }
    )
    (step,) = tables.steps()
    columns = ["".join(sorted(c.column for c, _ in s.tables)) for s in step.sources]
    assert columns == ["ab", "ac", "cd"]


def test_clauses_in_any_order_are_checked_by_their_own_columns() -> None:
    values, rng = Whole().compare(">", 5), np.random.default_rng(0)
    clauses = [Clause(dict.fromkeys(names, values)) for names in ("ab", "ac", "cd")]
    tables = Tables(Whole())
    tables.add(
        {n: SharedQuery(n, clauses=tuple(rng.permutation(clauses))) for n in range(128)}  # type: ignore[arg-type]
    )
    batch = Batch([pa.array([7])] * len(COLUMNS), [ColumnReader(name) for name in COLUMNS])
    tables.check(batch, rng)
    (check,) = tables.clauses._checks.values()
    columns = [sorted(c.column for s in step.sources for c, _ in s.tables) for step in check.steps]
    assert columns == [["a", "b"], ["a", "c"], ["c", "d"]]


def test_no_table_of_terms_grows_with_the_square_of_the_queries() -> None:
    """Of 1,000 bounds that all differ, a table for all queries would have 128 MB."""
    constants = iter(np.random.default_rng(0).permutation(10**6).tolist())

    def some() -> dict[str, ValueSet]:
        lists = {name: [next(constants) for _ in range(8)] for name in "ab"}
        return {name: Whole().equal_to_any(own) for name, own in lists.items()}

    tables = Tables(Whole())
    queries = {n: SharedQuery(n, clauses=(Clause(terms=(some(), some())),)) for n in range(8_000)}
    tables.add(queries)
    steps = tables.steps()
    assert sum(len(step.kept) for step in steps) == 125
    made = [table for step in steps for source in step.sources for _, table in source.tables]
    assert len(made) == 4 * len(steps)
    assert all(table.bitmaps.nbytes <= TABLE_BYTES_MAX for table in made)


def test_only_bits_of_clauses_with_predicates_make_chunks_smaller() -> None:
    above = Whole().compare(">", 5)
    term = dict.fromkeys("ab", above)
    chunks: list[int] = []
    for clauses, words in (
        ((Clause(terms=(term, term, term, term)), Clause(term)), 256),
        ((CALLING, CALLING), 512),
    ):
        eddy = SharedEddy({"a": Whole(), "b": Whole()})
        eddy.add({slot: SharedQuery(slot, clauses=clauses) for slot in range(64 * 256)})
        eddy.bind({"a": 0, "b": 1}, {"f": RowPredicate("f", (0,), lambda a: True)})
        rows = CHUNK_WORDS // words + 1
        route = eddy.route
        eddy.route = lambda batch, own, route=route: (chunks.append(len(own)), route(batch, own))[1]  # type: ignore[method-assign]
        columns = [pa.array(np.zeros(rows, dtype=np.int64))] * 2
        eddy.run(Batch(columns, [ColumnReader(name) for name in "ab"]))
        assert chunks[-2:] == [rows - 1, 1]
