"""The queries table of an eddy: which bit stands for which query.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.2.2,
3.2.3 and 3.2.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.query import SharedQuery
from eddyline.fabric.shared.slots import Slots
from eddyline.operators.bitmaps import ColumnCounter, bit, bitmap_of, widen, words_for

VACANT = -1


class ClauseLayer(NamedTuple):
    """Words of clauses that are checked in one step, each against another word of queries.

    Parameters
    ----------
    query_words, clause_words
        The words: the bits of a clause and of its query have the same place in their words.
    others
        For each word, the bits of queries without a clause there.

    """

    query_words: IntArray
    clause_words: IntArray
    others: Bitmap


def layer_clauses(clause_slots: Mapping[int, Sequence[int]]) -> list[ClauseLayer]:
    """Return the steps in which rows are rejected for queries with a clause that does not hold.

    Queries that were added together have their n-th clauses in the same word, so there are about as
    many steps as a query has clauses, however many queries there are.

    Examples
    --------
    >>> [layer] = layer_clauses({0: [0], 2: [2], 65: [129]})
    >>> layer.query_words.tolist(), layer.clause_words.tolist(), (~layer.others).tolist()
    ([0, 1], [0, 2], [5, 2])

    """
    masks: dict[tuple[int, int], int] = {}
    for slot, clauses in clause_slots.items():
        for clause in clauses:
            words = (slot // 64, clause // 64)
            masks[words] = masks.get(words, 0) | 1 << slot % 64
    layers: list[dict[int, tuple[int, int]]] = []
    depth: dict[int, int] = {}
    for (query_word, clause_word), mask in sorted(masks.items()):
        layer = depth.get(query_word, 0)
        depth[query_word] = layer + 1
        if layer == len(layers):
            layers.append({})
        layers[layer][query_word] = (clause_word, mask)
    return [
        ClauseLayer(
            np.array(list(layer), dtype=np.int64),
            np.array([word for word, _ in layer.values()], dtype=np.int64),
            ~np.array([mask for _, mask in layer.values()], dtype=np.uint64),
        )
        for layer in layers
    ]


class ClauseSlots:
    """Hands out bits of clauses: each has the place in its word that the bit of its query has.

    So a word of clauses is compared with a word of queries as it is. Words are shared by clauses of
    different words of queries as long as their places differ.

    Examples
    --------
    >>> slots = ClauseSlots()
    >>> slots.take(3), slots.take(3), slots.take(70), slots.words
    (3, 67, 6, 2)

    """

    def __init__(self) -> None:
        self._words: dict[int, Slots] = {}  # by place in the word
        #: Number of words of a bitmap of clauses; at least one.
        self.words = 1

    def take(self, query_slot: int) -> int:
        """Return a bit for a clause of a query that is not in use."""
        place = query_slot % 64
        word = self._words.setdefault(place, Slots()).take()
        self.words = max(self.words, word + 1)
        return 64 * word + place

    def give_back(self, slot: int) -> None:
        """Make a bit available again."""
        word, place = divmod(slot, 64)
        self._words[place].give_back(word)


class QueryTable:
    """Queries by slot, with the slots of their clauses and the number of rows they matched.

    Slots of queries are handed out by the caller, so that a bit means the same in every process.
    Slots of clauses are handed out here: nothing outside an eddy sees them.

    Examples
    --------
    >>> table = QueryTable()
    >>> table.add({3: SharedQuery(70)})
    >>> table.numbers(np.array([3])).tolist(), len(table), table.words
    ([70], 1, 1)

    """

    def __init__(self) -> None:
        #: Number of words of a bitmap of queries, and of a bitmap of clauses.
        self.words, self.clause_words = 1, 1
        #: Bitmaps of the queries in the table, and of those that store their rows.
        self.active: Bitmap = np.zeros(1, dtype=np.uint64)
        self.stored: Bitmap = np.zeros(1, dtype=np.uint64)
        #: Slots of the clauses, for queries that have some, by the query's slot.
        self.clause_slots: dict[int, list[int]] = {}
        self._free_clause_slots = ClauseSlots()
        self._clause_layers: list[ClauseLayer] | None = None
        self._numbers = np.full(64, VACANT, dtype=np.int32)
        self._counter = ColumnCounter(1)

    def __len__(self) -> int:
        return int(np.bitwise_count(self.active).sum())

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Add queries, by slot; refuse a slot or a query that is in the table already."""
        slots = np.array(list(queries), dtype=np.int64)
        numbers = np.array([query.number for query in queries.values()], dtype=np.int64)
        self._check_new(slots, numbers)
        for slot, query in queries.items():
            if query.clauses:
                self.clause_slots[slot] = [
                    self._free_clause_slots.take(slot) for _ in query.clauses
                ]
                self._clause_layers = None
        self._widen(int(slots.max(initial=-1)) + 1)
        self._numbers[slots] = numbers
        self.active |= bitmap_of(queries, self.words)
        self.stored |= bitmap_of((n for n, q in queries.items() if q.is_stored), self.words)

    def remove(self, slot: int) -> list[int]:
        """Remove the query at a slot; return the slots that its clauses had."""
        if not 0 <= slot < len(self._numbers) or self._numbers[slot] == VACANT:
            raise ValueError(f"no query has slot {slot}")
        word, mask = bit(slot)
        self.active[word] &= ~mask
        self.stored[word] &= ~mask
        self._numbers[slot] = VACANT
        clause_slots = self.clause_slots.pop(slot, [])
        if clause_slots:
            self._clause_layers = None
        for clause_slot in clause_slots:
            self._free_clause_slots.give_back(clause_slot)
        return clause_slots

    def numbers(self, slots: IntArray) -> IntArray:
        """Return the numbers of the queries at the given slots."""
        return self._numbers[slots].astype(np.int64)

    def reject_unfulfilled(self, lineage: Lineage) -> None:
        """Reject rows for queries that have a clause of which no alternative holds."""
        if self._clause_layers is None:
            self._clause_layers = layer_clauses(self.clause_slots)
        for layer in self._clause_layers:
            allowed = lineage.fulfilled[:, layer.clause_words]
            allowed |= layer.others
            lineage.interested[:, layer.query_words] &= allowed

    def count(self, interested: Bitmaps) -> None:
        """Count matches, one for each set bit; the bitmaps are overwritten."""
        self._counter.add(interested)

    def take_counts(self) -> dict[int, int]:
        """Return the number of matches by query number since the last call, without zeros."""
        counts = self._counter.counts()
        slots = np.flatnonzero(counts)
        self._counter = ColumnCounter(self.words)
        return dict(zip(self.numbers(slots).tolist(), counts[slots].tolist(), strict=True))

    def _check_new(self, slots: IntArray, numbers: IntArray) -> None:
        known_slots = slots[slots < len(self._numbers)]
        taken = known_slots[self._numbers[known_slots] != VACANT]
        if len(taken):
            raise ValueError(f"slots are in use already: {taken[:3].tolist()}")
        repeated = numbers[np.isin(numbers, self._numbers)]
        if len(repeated) or len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"a query is here already, or given twice: {repeated[:3].tolist()}")

    def _widen(self, width: int) -> None:
        """Make room for so many slots, and a quarter more: adding one by one widens rarely."""
        words = words_for(width)
        if words > self.words:
            self.words = max(words, self.words * 5 // 4)
            self.active = widen(self.active, self.words)
            self.stored = widen(self.stored, self.words)
            self._counter.widen(self.words)
            vacant = np.full(self.words * 64 - len(self._numbers), VACANT, dtype=np.int32)
            self._numbers = np.append(self._numbers, vacant)
        clause_words = self._free_clause_slots.words
        if clause_words > self.clause_words:
            self.clause_words = max(clause_words, self.clause_words * 5 // 4)
