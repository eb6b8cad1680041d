"""Driver-side history of the queries over one stream, which hands out their slots.

A slot is the bit of a query in every bitmap of the stream's eddies. It is handed out once, here,
and shipped with the query: a worker that builds its eddy from the base and one that applied every
change since the first version agree on every bit.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from eddyline.fabric.shared.query import SharedQuery
from eddyline.fabric.shared.slots import Slots
from eddyline.spark.engine.packed_queries import pack
from eddyline.spark.engine.plans import QueryChanges, QueryHistory

Kept = TypeVar("Kept")

CHANGES_MIN = 64


class StreamHistory(Generic[Kept]):
    """Follows the queries over one stream from version to version.

    Parameters
    ----------
    changes_min
        Number of changed queries up to which changes travel with the plan in any case. Beyond it,
        and beyond a quarter of the queries, the plan gets a new base instead.
    shared
        Returns what an eddy shares of a query as it is kept here.

    Examples
    --------
    >>> history = StreamHistory()
    >>> _ = history.advance(1, {7: SharedQuery(7), 8: SharedQuery(8)})
    >>> later = history.advance(2, {8: SharedQuery(8), 9: SharedQuery(9)})
    >>> later.changes[0].dropped, list(later.changes[0].added), history.slots
    ((0,), [0], {8: 1, 9: 0})

    """

    def __init__(
        self,
        changes_min: int = CHANGES_MIN,
        shared: Callable[[Kept], SharedQuery] = lambda query: query,  # type: ignore[assignment,return-value]
    ) -> None:
        self._changes_min = changes_min
        self._shared = shared
        self._free_slots = Slots()
        #: The number of the query that has each slot; of no meaning for slots that are free.
        self._numbers = array.array("q")
        self._queries: Mapping[int, Kept] = {}
        self._base: tuple[int, bytes] | None = None
        self._changes: list[QueryChanges] = []

    @property
    def slots(self) -> dict[int, int]:
        """The slot of each query, by the query's number."""
        by_number = {number: slot for slot, number in self._taken()}
        return {number: by_number[number] for number in self._queries}

    def advance(self, version: int, queries: Mapping[int, Kept]) -> QueryHistory:
        """Go on to the queries of a new version, by number; return the history up to it.

        A query that changed under its number counts as dropped and added. The mapping is kept, and
        must not be changed any more.
        """
        before = self._queries
        dropped = [n for n, query in before.items() if self._differs(query, queries.get(n))]
        added = [n for n, query in queries.items() if self._differs(query, before.get(n))]
        slots = self.slots if dropped else {}
        dropped_slots = tuple(slots[number] for number in dropped)
        for slot in dropped_slots:  # before slots are taken: added queries reuse them
            self._free_slots.give_back(slot)
        taken = [(self._take(number), number) for number in added]
        self._queries = queries
        is_large = self._changed() + len(dropped) + len(added) > max(
            self._changes_min, len(queries) // 4
        )
        if self._base is None or is_large:
            self._base = (version, pack((s, self._shared(queries[n])) for s, n in self._taken()))
            self._changes = []
        elif dropped or added:
            added_queries = {slot: self._shared(queries[number]) for slot, number in taken}
            self._changes.append(QueryChanges(version, dropped_slots, added_queries))
        return QueryHistory(*self._base, tuple(self._changes))

    def _differs(self, query: Kept, other: Kept | None) -> bool:
        if query is other or other is None:
            return other is None
        return self._shared(query) != self._shared(other)

    def _take(self, number: int) -> int:
        slot = self._free_slots.take()
        if slot == len(self._numbers):
            self._numbers.append(number)
        self._numbers[slot] = number
        return slot

    def _taken(self) -> Iterator[tuple[int, int]]:
        """Return the slots that are taken, with the numbers of their queries."""
        free = self._free_slots.free
        pairs = enumerate(self._numbers)
        return ((slot, number) for slot, number in pairs if slot not in free)

    def _changed(self) -> int:
        return sum(len(change.dropped) + len(change.added) for change in self._changes)
