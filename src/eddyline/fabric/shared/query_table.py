"""The queries table of an eddy: which bit stands for which query.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.2.2
and 3.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.fabric.shared.clause_bits import ClauseBits
from eddyline.fabric.shared.clauses import ClauseTable
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators.bitmaps import ColumnCounter, bit, bitmap_of, widen, words_for

VACANT = -1


class QueryTable:
    """Queries by slot, with their clauses and the number of rows they matched.

    Slots of queries are handed out by the caller, so that a bit means the same in every process.
    Bits of clauses are handed out by `ClauseTable`: nothing outside an eddy sees them.

    Examples
    --------
    >>> table = QueryTable()
    >>> table.add({3: SharedQuery(70)})
    >>> table.numbers(np.array([3])).tolist(), len(table), table.words
    ([70], 1, 1)

    """

    def __init__(self) -> None:
        #: Number of words of a bitmap of queries.
        self.words = 1
        #: The clauses of the queries.
        self.clauses = ClauseTable()
        #: Bitmaps of the queries in the table, and of those that store their rows.
        self.active: Bitmap = np.zeros(1, dtype=np.uint64)
        self.stored: Bitmap = np.zeros(1, dtype=np.uint64)
        self._numbers = np.full(64, VACANT, dtype=np.int32)
        self._counter = ColumnCounter(1)

    def __len__(self) -> int:
        return int(np.bitwise_count(self.active).sum())

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Add queries, by slot; refuse a slot or a query that is in the table already."""
        slots = np.array(list(queries), dtype=np.int64)
        numbers = np.array([query.number for query in queries.values()], dtype=np.int64)
        self._check_new(slots, numbers)
        self.clauses.add(queries)
        self._widen(int(slots.max(initial=-1)) + 1)
        self._numbers[slots] = numbers
        self.active |= bitmap_of(queries, self.words)
        self.stored |= bitmap_of((n for n, q in queries.items() if q.is_stored), self.words)

    def remove(self, slot: int) -> Sequence[ClauseBits]:
        """Remove the query at a slot; return the bits that its clauses had."""
        if not 0 <= slot < len(self._numbers) or self._numbers[slot] == VACANT:
            raise ValueError(f"no query has slot {slot}")
        word, mask = bit(slot)
        self.active[word] &= ~mask
        self.stored[word] &= ~mask
        self._numbers[slot] = VACANT
        return self.clauses.remove(slot)

    def numbers(self, slots: IntArray) -> IntArray:
        """Return the numbers of the queries at the given slots."""
        return self._numbers[slots].astype(np.int64)

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
