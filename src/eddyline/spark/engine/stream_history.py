"""Driver-side history of the queries over one stream, which hands out their slots.

A slot is the bit of a query in every bitmap of the stream's eddies. It is handed out once, here,
and shipped with the query: a worker that builds its eddy from the base and one that applied every
change since the first version agree on every bit.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from eddyline.fabric.shared.query import SharedQuery
from eddyline.fabric.shared.slots import Slots
from eddyline.spark.engine.plans import QueryChanges, QueryHistory

CHANGES_MIN = 64


class StreamHistory:
    """Follows the queries over one stream from version to version.

    Parameters
    ----------
    changes_min
        Number of changed queries up to which changes travel with the plan in any case. Beyond it,
        and beyond a quarter of the queries, the plan gets a new base instead.

    Examples
    --------
    >>> history = StreamHistory()
    >>> _ = history.advance(1, {7: SharedQuery(7), 8: SharedQuery(8)})
    >>> later = history.advance(2, {8: SharedQuery(8), 9: SharedQuery(9)})
    >>> later.changes[0].dropped, list(later.changes[0].added), history.slots
    ((0,), [0], {8: 1, 9: 0})

    """

    def __init__(self, changes_min: int = CHANGES_MIN) -> None:
        self._changes_min = changes_min
        self._free_slots = Slots()
        self._slots: dict[int, int] = {}
        self._queries: dict[int, SharedQuery] = {}
        self._base: tuple[int, bytes] | None = None
        self._changes: list[QueryChanges] = []

    @property
    def slots(self) -> dict[int, int]:
        """The slot of each query, by the query's number."""
        return dict(self._slots)

    def advance(self, version: int, queries: Mapping[int, SharedQuery]) -> QueryHistory:
        """Go on to the queries of a new version, by number; return the history up to it.

        A query that changed under its number counts as dropped and added.
        """
        before = self._queries
        dropped = [number for number, query in before.items() if queries.get(number) != query]
        added = [number for number, query in queries.items() if before.get(number) != query]
        dropped_slots = tuple(self._slots.pop(number) for number in dropped)
        for slot in dropped_slots:  # before slots are taken: added queries reuse them
            self._free_slots.give_back(slot)
        for number in added:
            self._slots[number] = self._free_slots.take()
        self._queries = dict(queries)
        if dropped or added:
            added_queries = {self._slots[number]: queries[number] for number in added}
            self._changes.append(QueryChanges(version, dropped_slots, added_queries))
        if self._base is None or self._changed() > max(self._changes_min, len(queries) // 4):
            by_slot = {self._slots[number]: query for number, query in queries.items()}
            self._base = (version, pickle.dumps(by_slot, protocol=pickle.HIGHEST_PROTOCOL))
            self._changes = []
        return QueryHistory(*self._base, tuple(self._changes))

    def _changed(self) -> int:
        return sum(len(change.dropped) + len(change.added) for change in self._changes)
