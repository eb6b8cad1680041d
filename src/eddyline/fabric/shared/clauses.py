"""The clauses of all queries: which bits they have, and how rows are checked against them.

A clause has a bit that an alternative sets where it holds, or a bit for each of its terms, which
each comparison of the term clears where it fails, or both. It holds where one of these bits is set
once all of its operators are done.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray
from eddyline.fabric.shared.clause_slots import ClauseSlots
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.query import Clause, SharedQuery

#: Words of a bitmap: an array of their numbers, or a slice where they are evenly spaced.
Words = IntArray | slice
#: Clauses, by their operators, that are checked before a predicate, or at the end (None).
CheckSchedule = dict[str | None, frozenset[frozenset[str]]]
LAYER_SETS_MAX = 64


class ClauseBits(NamedTuple):
    """The bits of one clause.

    Parameters
    ----------
    query
        The bit of its query.
    single
        Set where an alternative holds that is one column's values or a predicate; -1 if the clause
        has terms only.
    terms
        One bit for each term.
    operators
        Names of the operators that it needs.

    """

    query: int
    single: int
    terms: tuple[int, ...]
    operators: frozenset[str]


class ClauseLayer(NamedTuple):
    """Clauses that are checked in one step: at most one of each query.

    Parameters
    ----------
    queries
        Words of queries.
    single, terms
        For each of these words, where the bits are: the bits of a clause and of its query have the
        same place in their words. `single` is None for clauses that have terms only.
    others
        For each word of queries, the bits of queries without a clause here.

    """

    queries: Words
    single: Words | None
    terms: tuple[Words, ...]
    others: Bitmap

    def fulfilled(self, lineage: Lineage) -> Bitmaps:
        """Return, for the words of this layer, the queries whose clause holds, and all others."""
        sources = [lineage.unrefuted[:, words] for words in self.terms]
        if self.single is not None:
            sources.append(lineage.fulfilled[:, self.single])
        holds = sources[0] | self.others
        for source in sources[1:]:
            np.bitwise_or(holds, source, out=holds)
        return holds


def make_layers(clauses: Iterable[ClauseBits]) -> list[ClauseLayer]:
    """Return the steps in which rows are checked against clauses.

    About as many as a query has clauses, as the n-th clauses of the queries in a word have their
    bits in the same words.

    Examples
    --------
    >>> [layer] = make_layers([ClauseBits(n, n, (), frozenset()) for n in (0, 2, 65)])
    >>> layer.queries, layer.single, (~layer.others).tolist()
    (slice(0, 2, 1), slice(0, 2, 1), [5, 2])

    """
    masks: dict[tuple[int, ...], int] = {}  # by words: of the query, of `single`, of the terms
    for query, single, terms, _ in clauses:
        words = (query >> 6, single >> 6, *sorted(term >> 6 for term in terms))
        masks[words] = masks.get(words, 0) | 1 << (query & 63)
    layers: dict[tuple[bool, int, int], dict[tuple[int, ...], int]] = {}
    depth: dict[tuple[bool, int, int], int] = {}
    for words in sorted(masks):
        kind = (words[1] < 0, len(words), words[0])
        n = depth[kind] = depth.get(kind, -1) + 1
        layers.setdefault((kind[0], kind[1], n), {})[words] = masks[words]
    made = []
    for (has_terms_only, _, _), layer in layers.items():
        columns = [_compact(np.array(words, dtype=np.int64)) for words in zip(*layer, strict=True)]
        single_words = None if has_terms_only else columns[1]
        others = ~np.array(list(layer.values()), dtype=np.uint64)
        made.append(ClauseLayer(columns[0], single_words, tuple(columns[2:]), others))
    return made


def _compact(words: IntArray) -> Words:
    """Return evenly spaced words as a slice, which is read without a copy."""
    steps = np.diff(words)
    step = int(steps[0]) if len(steps) else 1
    if step < 1 or (steps != step).any():
        return words
    return slice(int(words[0]), int(words[-1]) + 1, step)


class ClauseTable:
    """Hands out the bits of clauses, and rejects rows for queries with a clause that does not hold.

    Examples
    --------
    >>> table = ClauseTable()
    >>> table.add({5: SharedQuery(1, clauses=(Clause(needs=("f", "g")),))})
    >>> table.of(5)[0].single, table.words, list(table.schedule(["f", "g", "h"], {"h"}))
    (5, 1, ['h', None])

    """

    def __init__(self) -> None:
        #: Number of words of a bitmap of clauses, and of terms.
        self.words, self.term_words = 1, 0
        self._bits: dict[int, tuple[ClauseBits, ...]] = {}
        self._single_slots, self._term_slots = ClauseSlots(), ClauseSlots()
        self._layers: dict[frozenset[frozenset[str]], list[ClauseLayer]] = {}
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
            for nth in range(sum(_has_single(clause) for clause in query.clauses)):
                self._single_slots.expect(slot, nth)
            for nth in range(sum(len(clause.terms) for clause in query.clauses)):
                self._term_slots.expect(slot, nth)
        self._single_slots.make_words()
        self._term_slots.make_words()
        for slot, query in with_clauses.items():
            self._bits[slot] = tuple(self._take(slot, query.clauses))
            for clause in self._bits[slot]:
                self._signatures[clause.operators] = self._signatures.get(clause.operators, 0) + 1
        self._forget_layers()
        if self._single_slots.words > self.words:
            self.words = max(self._single_slots.words, self.words * 5 // 4)
        if self._term_slots.words > self.term_words:
            self.term_words = max(self._term_slots.words, self.term_words * 5 // 4)

    def remove(self, query_slot: int) -> Sequence[ClauseBits]:
        """Take back the bits of a query; return what they were."""
        removed = self._bits.pop(query_slot, ())
        for clause in removed:
            if clause.single >= 0:
                self._single_slots.give_back(clause.single)
            for term in clause.terms:
                self._term_slots.give_back(term)
            self._signatures[clause.operators] -= 1
            if not self._signatures[clause.operators]:
                del self._signatures[clause.operators]
        if removed:
            self._forget_layers()
        return removed

    def _take(self, slot: int, clauses: Sequence[Clause]) -> Iterable[ClauseBits]:
        singles, terms = iter(_single_places(clauses)), iter(_term_places(clauses))
        for clause in clauses:
            single = -1
            if _has_single(clause):
                single = self._single_slots.take(slot, next(singles), is_expected=True)
            term_slots = tuple(
                self._term_slots.take(slot, next(terms), is_expected=True) for _ in clause.terms
            )
            yield ClauseBits(slot, single, term_slots, frozenset(clause.operators))

    def _forget_layers(self) -> None:
        self._layers, self._open = {}, {}

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

    def reject_unfulfilled(self, lineage: Lineage, due: frozenset[frozenset[str]]) -> None:
        """Reject rows for queries that have a clause of which no alternative holds.

        Parameters
        ----------
        lineage
            The rows.
        due
            The clauses to check, by their operators, all of which are done.

        """
        layers = self._layers.get(due)
        if layers is None:
            if len(self._layers) >= LAYER_SETS_MAX:
                self._layers = {}
            checked = (c for own in self._bits.values() for c in own if c.operators in due)
            layers = self._layers[due] = make_layers(checked)
        for layer in layers:
            lineage.interested[:, layer.queries] &= layer.fulfilled(lineage)

    def undecided(self, lineage: Lineage, positions: IntArray, predicate: str) -> BoolArray:
        """Return which rows interest a query with a clause that only a predicate may fulfil yet."""
        if predicate not in self._open:
            clauses = (c for own in self._bits.values() for c in own if predicate in c.operators)
            self._open[predicate] = make_layers(clauses)
        undecided: BoolArray = np.zeros(len(positions), dtype=bool)
        for layer in self._open[predicate]:
            assert layer.single is not None, "clauses with predicates have no terms"
            holds = lineage.fulfilled[:, layer.single][positions] | layer.others
            undecided |= (lineage.interested[:, layer.queries][positions] & ~holds).any(axis=1)
        return undecided


def _has_single(clause: Clause) -> bool:
    """Whether a clause has a bit that its alternatives set; one without alternatives has."""
    return bool(clause.accepts or clause.needs or not clause.terms)


def _single_places(clauses: Sequence[Clause]) -> list[int]:
    """Return which single bit of its query each clause that has one gets."""
    return _places([clause.operators for clause in clauses if _has_single(clause)])


def _term_places(clauses: Sequence[Clause]) -> list[int]:
    """Return which bit of its query each term gets."""
    return _places([set(term) for clause in clauses for term in clause.terms])


def _places(operators: Sequence[set[str]]) -> list[int]:
    """Return the place of each clause, or term, when they are sorted by their operators.

    Queries have the same operators at the same places more often then, and an operator reads and
    writes only the words between the first and the last that it is used in.

    Examples
    --------
    >>> _places([{"b", "c"}, {"a", "d"}, {"c"}])
    [1, 0, 2]

    """
    ordered = sorted(range(len(operators)), key=lambda n: sorted(operators[n]))
    places = [0] * len(ordered)
    for place, n in enumerate(ordered):
        places[n] = place
    return places
