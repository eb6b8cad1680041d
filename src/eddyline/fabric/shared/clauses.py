"""The clauses of all queries: which bits they have, and how rows are checked against them.

A clause with predicates has a bit in the lineage of a row, which alternatives that hold set. Any
other clause has a bit for its alternatives on single columns, one for each of its terms, or both;
only the check of such clauses makes bitmaps of these. A clause holds where one of its bits is set
once all of its operators are done.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, BoolArray, IntArray
from eddyline.fabric.shared.clause_bits import ClauseBits, Words, compact
from eddyline.fabric.shared.clause_slots import ClauseSlots
from eddyline.fabric.shared.comparison_check import Step, TablesOf, make_steps
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.fabric.shared.slots import Slots

#: Clauses, by their operators, that are checked before a predicate, or at the end (None).
CheckSchedule = dict[str | None, frozenset[frozenset[str]]]
#: Sets of clauses that are checked at once. Each keeps its tables.
CHECKS_MAX = 8


class ClauseWords(NamedTuple):
    """Words of the bitmaps of clauses; the fields are those of `BitWords`."""

    mixed: int = 0
    singles: int = 0
    terms: int = 0


class ClauseLayer(NamedTuple):
    """Clauses with predicates that are checked in one step: at most one of each query.

    Parameters
    ----------
    queries
        Words of queries.
    bits
        For each of these words, where the bits are: the bits of a clause and of its query have the
        same place in their words.
    others
        For each word of queries, the bits of queries without a clause here.

    """

    queries: Words
    bits: Words
    others: Bitmap


def make_layers(clauses: Iterable[ClauseBits]) -> list[ClauseLayer]:
    """Return the steps in which rows are checked against clauses with predicates.

    About as many as a query has clauses, as the n-th clauses of the queries in a word have their
    bits in the same words.

    Examples
    --------
    >>> [layer] = make_layers([ClauseBits(n, n, (), frozenset()) for n in (0, 2, 65)])
    >>> layer.queries, layer.bits, (~layer.others).tolist()
    (slice(0, 2, 1), slice(0, 2, 1), [5, 2])

    """
    masks: dict[tuple[int, int], int] = {}  # by words: of the query, of the bit
    for clause in clauses:
        words = (clause.query >> 6, clause.single >> 6)
        masks[words] = masks.get(words, 0) | 1 << (clause.query & 63)
    layers: list[dict[tuple[int, int], int]] = []
    depth: dict[int, int] = {}
    for words in sorted(masks):
        nth = depth[words[0]] = depth.get(words[0], -1) + 1
        if nth == len(layers):
            layers.append({})
        layers[nth][words] = masks[words]
    made = []
    for layer in layers:
        queries, bits = (compact(np.array(words)) for words in zip(*layer, strict=True))
        made.append(ClauseLayer(queries, bits, ~np.array(list(layer.values()), dtype=np.uint64)))
    return made


class _Check(NamedTuple):
    """What checks some clauses: those with predicates, and the others."""

    layers: list[ClauseLayer]
    steps: list[Step]


class ClauseTable:
    """Hands out the bits of clauses, and rejects rows for queries with a clause that does not hold.

    Examples
    --------
    >>> table = ClauseTable()
    >>> table.add({5: SharedQuery(1, clauses=(Clause(needs=("f", "g")),))})
    >>> table.of(5)[0].single, table.words.mixed, list(table.schedule(["f", "g", "h"], {"h"}))
    (5, 1, ['h', None])

    """

    def __init__(self) -> None:
        #: Number of words of the bitmaps.
        self.words = ClauseWords()
        self._bits: dict[int, tuple[ClauseBits, ...]] = {}
        self._mixed_slots, self._single_slots, self._term_slots = ClauseSlots(), Slots(), Slots()
        self._checks: dict[frozenset[frozenset[str]], _Check] = {}
        self._open: dict[str, list[ClauseLayer]] = {}
        self._signatures: dict[frozenset[str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._bits)

    def of(self, query_slot: int) -> Sequence[ClauseBits]:
        """Return the bits of a query's clauses, in their order."""
        return self._bits.get(query_slot, ())

    # --- queries come and go -----------------------------------------------------------------

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Hand out the bits of the clauses of queries, given by slot."""
        with_clauses = {slot: query for slot, query in queries.items() if query.clauses}
        if not with_clauses:
            return
        for slot, query in with_clauses.items():
            for nth in range(sum(bool(clause.needs) for clause in query.clauses)):
                self._mixed_slots.expect(slot, nth)
        self._mixed_slots.make_words()
        for slot, query in with_clauses.items():
            self._bits[slot] = tuple(self._take(slot, query.clauses))
            for clause in self._bits[slot]:
                self._signatures[clause.operators] = self._signatures.get(clause.operators, 0) + 1
        self._forget_checks()
        singles, terms = (-(-slots.width // 64) for slots in (self._single_slots, self._term_slots))
        needed = (self._mixed_slots.words, singles, terms)
        self.words = ClauseWords(*map(_with_room, self.words, needed))

    def remove(self, query_slot: int) -> Sequence[ClauseBits]:
        """Take back the bits of a query; return what they were."""
        removed = self._bits.pop(query_slot, ())
        for clause in removed:
            if clause.has_predicates:
                self._mixed_slots.give_back(clause.single)
            elif clause.single >= 0:
                self._single_slots.give_back(clause.single)
            for term in clause.terms:
                self._term_slots.give_back(term)
            self._signatures[clause.operators] -= 1
            if not self._signatures[clause.operators]:
                del self._signatures[clause.operators]
        if removed:
            self._forget_checks()
        return removed

    def _take(self, slot: int, clauses: Sequence[Clause]) -> Iterable[ClauseBits]:
        mixed = itertools.count()
        for clause in clauses:
            single = -1
            if clause.needs:
                single = self._mixed_slots.take(slot, next(mixed), is_expected=True)
            elif clause.accepts or not clause.terms:
                single = self._single_slots.take()
            terms = _ascending(clause.terms, self._term_slots)
            yield ClauseBits(slot, single, terms, frozenset(clause.operators), bool(clause.needs))

    def _forget_checks(self) -> None:
        self._checks, self._open = {}, {}

    # --- rows --------------------------------------------------------------------------------

    def schedule(self, order: Sequence[str], predicates: Collection[str]) -> CheckSchedule:
        """Return which clauses are checked before which predicate, and at the end, under None.

        Clauses are given by their operators. They are checked before the first predicate that comes
        after all of these: a predicate may be dear, and need not see rows that a clause rejects.

        Parameters
        ----------
        order
            Names of the operators, in the order in which rows visit them.
        predicates
            Those of them that are predicates.

        """
        place = {name: n for n, name in enumerate(order)}
        last = {names: max((place[n] for n in names), default=-1) for names in self._signatures}
        scheduled: CheckSchedule = {}
        for n, name in enumerate(order):
            if name in predicates and (
                due := frozenset(names for names, at in last.items() if at < n)
            ):
                scheduled[name] = due
                last = {names: at for names, at in last.items() if names not in due}
        return {**scheduled, None: frozenset(last)}

    def reject_unfulfilled(
        self,
        lineage: Lineage,
        due: frozenset[frozenset[str]],
        tables: Callable[[], TablesOf],
    ) -> None:
        """Reject rows for queries that have a clause of which no alternative holds.

        Parameters
        ----------
        lineage
            The rows.
        due
            The clauses to check, by their operators, all of which are done.
        tables
            Returns what makes the tables of the columns; called after queries have changed.

        """
        if not due:
            return
        check = self._checks.get(due)
        if check is None:
            if len(self._checks) >= CHECKS_MAX:
                self._checks = {}
            checked = [c for own in self._bits.values() for c in own if c.operators in due]
            layers = make_layers(clause for clause in checked if clause.has_predicates)
            compared = [clause for clause in checked if not clause.has_predicates]
            # Where the n-th clauses of queries compare the same columns, fewer tables are read.
            rank = {names: n for n, names in enumerate(sorted(due, key=sorted))}
            compared.sort(key=lambda clause: (clause.query, rank[clause.operators]))
            steps = make_steps(compared, tables()) if compared else []
            check = self._checks[due] = _Check(layers, steps)
        for layer in check.layers:
            holds = lineage.fulfilled[:, layer.bits] | layer.others
            lineage.interested[:, layer.queries] &= holds
        for step in check.steps:
            step.reject(lineage)

    def undecided(self, lineage: Lineage, positions: IntArray, predicate: str) -> BoolArray:
        """Return which rows interest a query with a clause that only a predicate may fulfil yet."""
        if predicate not in self._open:
            clauses = (c for own in self._bits.values() for c in own if predicate in c.operators)
            self._open[predicate] = make_layers(clauses)
        undecided: BoolArray = np.zeros(len(positions), dtype=bool)
        for layer in self._open[predicate]:
            holds = lineage.fulfilled[:, layer.bits][positions] | layer.others
            undecided |= (lineage.interested[:, layer.queries][positions] & ~holds).any(axis=1)
        return undecided


def _with_room(words: int, needed: int) -> int:
    """Return the words of a bitmap; a quarter more than before if there were too few."""
    return words if needed <= words else max(needed, words * 5 // 4)


def _ascending(columns: Sequence[Iterable[str]], slots: Slots) -> tuple[int, ...]:
    """Return a slot for each term; slots ascend as the columns of the terms do.

    The n-th terms of different queries then compare the same columns more often, and fewer columns
    have to be read for them.

    Examples
    --------
    >>> _ascending(["bc", "ad", "c"], Slots())
    (1, 0, 2)

    """
    free = iter(sorted(slots.take() for _ in columns))
    ordered = sorted(range(len(columns)), key=lambda n: sorted(columns[n]))
    slot_of = {n: next(free) for n in ordered}
    return tuple(slot_of[n] for n in range(len(columns)))
