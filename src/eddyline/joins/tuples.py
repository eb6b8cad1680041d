"""Intermediate tuples: which rows they are made of, and which queries still want them."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.arrays import Bitmaps, IntArray
from eddyline.joins.keys import KeyColumn
from eddyline.joins.plan import KeyRef, Role


@dataclass(frozen=True)
class Tuples:
    """Combinations of rows of several roles, column by column.

    Parameters
    ----------
    ids
        For each filled role, the row ids in its SteM.
    newest_us
        Event time of the youngest row of each tuple.
    deadline_us
        Time at which the first of its rows leaves its window: a tuple is valid if its youngest row
        is younger than that. Both only move towards each other as roles are filled.
    interested
        Bitmap of the queries that want each tuple.
    keys
        Key columns that further probes search with.

    """

    ids: dict[Role, IntArray]
    newest_us: IntArray
    deadline_us: IntArray
    interested: Bitmaps
    keys: dict[KeyRef, KeyColumn]

    def __len__(self) -> int:
        return len(self.newest_us)

    def take(self, rows: IntArray) -> Tuples:
        """Return some of the tuples."""
        return Tuples(
            {role: ids[rows] for role, ids in self.ids.items()},
            self.newest_us[rows],
            self.deadline_us[rows],
            self.interested[rows],
            {ref: key.take(rows) for ref, key in self.keys.items()},
        )
