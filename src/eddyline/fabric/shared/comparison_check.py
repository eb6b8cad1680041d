"""Checks rows against the clauses that only compare columns with constants.

What a comparison says about a row follows from the region of the row's value. So visits only note
the regions, and clauses are decided here, all at once: for as many rows as fit into the cache, the
bitmaps of all alternatives are made, combined and forgotten. Kept while the rows go from column to
column, they would have to be read and written for each column.

A step checks at most one clause of each query. Its sources give each clause a bit at the place that
the query has: one source for alternatives on single columns, and one for each term. The OR of all
sources says for which queries the clause holds.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.fabric.shared.clause_bits import ClauseBits, Words, compact
from eddyline.fabric.shared.lineage import Compared, Lineage
from eddyline.operators.bitmaps import bitmap_of
from eddyline.operators.region_tables import RegionTable, RegionTables

#: Words that are combined at once. Three times as many should fit into a core's cache.
BLOCK_WORDS = 1 << 15
#: Of the largest table of a step. Half of the queries have half of the bounds in half of the words.
TABLE_BYTES_MAX = 1 << 20
#: What makes the tables of each column.
TablesOf = Mapping[Compared, RegionTables]


class Source(NamedTuple):
    """A bit for each clause: that of its alternatives on single columns, or of one term.

    Parameters
    ----------
    tables
        For each column that these bits depend on, what it says about them.
    combine
        OR for alternatives on single columns, AND for terms.

    """

    tables: tuple[tuple[Compared, RegionTable], ...]
    combine: np.ufunc

    def write(self, lineage: Lineage, rows: slice, out: Bitmaps) -> None:
        """Write for some rows which bits are set."""
        for n, (compared, table) in enumerate(self.tables):
            regions = lineage.regions_of(compared)[rows]
            if not n:
                table.take(regions, out)
                spare = np.empty_like(out)
            else:
                table.take(regions, spare)
                self.combine(out, spare, out=out)


class Step(NamedTuple):
    """Clauses of some queries, at most one of each.

    Parameters
    ----------
    queries
        Words of queries.
    sources
        The bits of the clauses. Those in `kept` are set in them too.
    kept
        Bitmap of the queries in these words that have no clause here.

    """

    queries: Words
    sources: tuple[Source, ...]
    kept: Bitmap

    def reject(self, lineage: Lineage) -> None:
        """Reject rows for queries whose clause does not hold."""
        interested = lineage.interested
        if not self.sources:  # clauses without alternatives
            interested[:, self.queries] &= self.kept
            return
        block_rows = max(1, BLOCK_WORDS // len(self.kept))
        for first in range(0, len(interested), block_rows):
            rows = slice(first, min(first + block_rows, len(interested)))
            holds = np.empty((rows.stop - first, len(self.kept)), dtype=np.uint64)
            self.sources[0].write(lineage, rows, holds)
            bits = np.empty_like(holds)
            for source in self.sources[1:]:
                source.write(lineage, rows, bits)
                np.bitwise_or(holds, bits, out=holds)
            interested[rows, self.queries] &= holds


@dataclass
class _Layer:
    """Clauses of different queries, by the bits of these, which ascend.

    Parameters
    ----------
    queries
        The queries.
    bits
        For each source, whether it consists of terms, and its number of that kind: the queries that
        have a bit there, and these bits.

    """

    queries: list[int] = field(default_factory=list)
    bits: dict[tuple[bool, int], tuple[list[int], list[int]]] = field(default_factory=dict)

    def add(self, clause: ClauseBits) -> None:
        self.queries.append(clause.query)
        singles = () if clause.single < 0 else (clause.single,)
        for is_term, slots in ((False, singles), (True, sorted(clause.terms))):
            for nth, slot in enumerate(slots):
                queries, bits = self.bits.setdefault((is_term, nth), ([], []))
                queries.append(clause.query)
                bits.append(slot)


class _Bits(NamedTuple):
    """Bits of one source, by the bits of their queries."""

    is_term: bool
    queries: IntArray
    slots: IntArray

    def among(self, words: IntArray) -> _Bits:
        """Return those whose queries are in some words, which ascend; given by place there."""
        own = slice(*np.searchsorted(self.queries >> 6, [words[0], words[-1] + 1]))
        queries = self.queries[own]
        places = np.searchsorted(words, queries >> 6) * 64 + (queries & 63)
        return _Bits(self.is_term, places, self.slots[own])


def make_steps(clauses: Iterable[ClauseBits], tables_of: TablesOf) -> list[Step]:
    """Return the steps in which rows are checked against the n-th clauses of all queries.

    Parameters
    ----------
    clauses
        The clauses, by ascending bits of their queries.
    tables_of
        What makes the tables of the columns.

    """
    depth: dict[int, int] = {}
    layers: list[_Layer] = []
    for clause in clauses:
        nth = depth[clause.query] = depth.get(clause.query, -1) + 1
        if nth == len(layers):
            layers.append(_Layer())
        layers[nth].add(clause)
    steps = []
    for layer in layers:
        queries = np.array(layer.queries)
        bits = [
            _Bits(is_term, *map(np.array, own)) for (is_term, _), own in sorted(layer.bits.items())
        ]
        checked = _Bits(False, queries, queries)
        steps += _make_steps(np.unique(queries >> 6), checked, bits, tables_of)
    return steps


def _make_steps(
    words: IntArray, checked: _Bits, bits: Sequence[_Bits], tables_of: TablesOf
) -> list[Step]:
    """Return the steps for some words of queries: one, or more if its tables were too large."""
    own = [source.among(words) for source in bits]
    lines = [
        tables.lines_max(source.slots)
        for source in own
        for compared, tables in tables_of.items()
        if compared.is_term == source.is_term
    ]
    if 8 * len(words) * max(lines, default=0) > TABLE_BYTES_MAX and len(words) > 1:
        parts = np.array_split(words, 2)
        return [step for part in parts for step in _make_steps(part, checked, bits, tables_of)]
    kept = ~bitmap_of(checked.among(words).queries.tolist(), len(words))
    sources: list[Source] = []
    for source in own:
        tables = _tables(source, tables_of, kept)
        if tables:
            sources.append(Source(tables, np.bitwise_and if source.is_term else np.bitwise_or))
    return [Step(compact(words), tuple(sources), kept)]


def _tables(
    source: _Bits, tables_of: TablesOf, kept: Bitmap
) -> tuple[tuple[Compared, RegionTable], ...]:
    """Return the tables of a source; the bits in `kept` are set in every region."""
    made: list[tuple[Compared, RegionTable]] = []
    for compared, tables in tables_of.items():
        if compared.is_term == source.is_term:
            table = tables.table(source.slots, source.queries, len(kept))
            if table is not None:
                table.bitmaps |= kept
                made.append((compared, table))
    return tuple(made)
