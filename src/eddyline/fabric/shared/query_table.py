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


class ClauseGroup(NamedTuple):
    """Clauses whose bits are as far from the bits of their queries, in the same two words."""

    query_word: int
    clause_word: int
    shift: int


def group_clauses(clause_slots: Mapping[int, Sequence[int]]) -> dict[ClauseGroup, int]:
    """Return which queries of a word are rejected by shifting one word of clauses.

    Queries that were added together have clauses in the same order, so that one shift moves the
    bits of up to 64 clauses to those of their queries.

    Examples
    --------
    >>> group_clauses({0: [1], 2: [3], 5: [4]})
    {ClauseGroup(query_word=0, clause_word=0, shift=1): 5, \
ClauseGroup(query_word=0, clause_word=0, shift=-1): 32}

    """
    groups: dict[ClauseGroup, int] = {}
    for slot, own in clause_slots.items():
        word, place = divmod(slot, 64)
        for clause in own:
            clause_word, clause_place = divmod(clause, 64)
            group = ClauseGroup(word, clause_word, clause_place - place)
            groups[group] = groups.get(group, 0) | 1 << place
    return groups


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
        self._free_clause_slots = Slots()
        self._clause_groups: dict[ClauseGroup, int] | None = None
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
                self.clause_slots[slot] = [self._free_clause_slots.take() for _ in query.clauses]
                self._clause_groups = None
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
            self._clause_groups = None
        for clause_slot in clause_slots:
            self._free_clause_slots.give_back(clause_slot)
        return clause_slots

    def numbers(self, slots: IntArray) -> IntArray:
        """Return the numbers of the queries at the given slots."""
        return self._numbers[slots].astype(np.int64)

    def reject_unfulfilled(self, lineage: Lineage) -> None:
        """Reject rows for queries that have a clause of which no alternative holds."""
        if self._clause_groups is None:
            self._clause_groups = group_clauses(self.clause_slots)
        for group, mask in self._clause_groups.items():
            fulfilled = lineage.fulfilled[:, group.clause_word]
            if group.shift >= 0:
                fulfilled = fulfilled >> np.uint64(group.shift)
            else:
                fulfilled = fulfilled << np.uint64(-group.shift)
            lineage.interested[:, group.query_word] &= fulfilled | ~np.uint64(mask)

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
        clause_words = words_for(self._free_clause_slots.width)
        if clause_words > self.clause_words:
            self.clause_words = max(clause_words, self.clause_words * 5 // 4)
