"""Match lists: which stored rows each row of a parent joins, found by one probe and kept.

They are the factorised result of a join: output generation only combines them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eddyline.arrays import Bitmap, Bitmaps, BoolArray, IntArray
from eddyline.joins.combinations import any_bit
from eddyline.joins.keys import KeyColumn
from eddyline.joins.plan import KeyRef
from eddyline.joins.stem import SteM

FOREVER_US = int(np.iinfo(np.int64).max)
_RADIX_MAX = 1 << 16
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass
class RowSet:
    """Distinct rows in one role.

    Parameters
    ----------
    stem, ids
        The rows.
    times_us, deadline_us
        Event time of each, and when it leaves its window.
    interested
        Queries that may still have a result with each row; shrinks as probes find no partners.
    keys, key_rows
        Key columns that probes search with, and where the rows are in them; None if the columns
        have only these rows.

    """

    stem: SteM
    ids: IntArray
    times_us: IntArray
    deadline_us: IntArray
    interested: Bitmaps
    keys: dict[KeyRef, KeyColumn]
    key_rows: IntArray | None = None

    @functools.cached_property
    def arrivals(self) -> IntArray:
        """Arrival numbers of the rows."""
        return self.stem.arrivals(self.ids)

    def key(self, ref: KeyRef, rows: IntArray) -> KeyColumn:
        """Return a key column of some of the rows."""
        return self.keys[ref].take(rows if self.key_rows is None else self.key_rows[rows])


@dataclass
class MatchLists:
    """For each row of a parent, the rows that it joins in one role.

    Parameters
    ----------
    parents
        Position of the parent row of each match, ascending.
    offsets
        Where the matches of each parent row begin.
    rows
        Position in `distinct` of the row of each match; None if that is the match's own.
    interested
        Queries that each match may be part of a result of.
    distinct
        The rows that matches consist of.

    """

    parents: IntArray
    offsets: IntArray
    rows: IntArray | None
    interested: Bitmaps
    distinct: RowSet

    def __len__(self) -> int:
        return len(self.parents)

    def row_of(self, matches: IntArray) -> IntArray:
        """Return the positions in `distinct` of matches."""
        return matches if self.rows is None else self.rows[matches]

    def of_match(self, rows: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return what belongs to rows of `distinct`, for each match."""
        return rows if self.rows is None else rows[self.rows]

    @functools.cached_property
    def times_us(self) -> IntArray:
        """Event time of the row of each match."""
        return self.of_match(self.distinct.times_us)

    @functools.cached_property
    def deadline_us(self) -> IntArray:
        """When the row of each match leaves its window."""
        return self.of_match(self.distinct.deadline_us)


def deadline(times_us: IntArray, window_us: int | None) -> IntArray:
    """Return when rows leave their window."""
    if window_us is None:
        return np.full(len(times_us), FOREVER_US)
    return times_us + window_us


def or_by_group(bitmaps: Bitmaps, groups: IntArray, count: int) -> Bitmaps:
    """Return for each group the union of its bitmaps; groups are ascending.

    Examples
    --------
    >>> bitmaps = np.array([[1], [2], [4]], dtype=np.uint64)
    >>> or_by_group(bitmaps, np.array([0, 0, 2]), 3).ravel().tolist()
    [3, 0, 4]

    """
    union = np.zeros((count, bitmaps.shape[1]), dtype=np.uint64)
    if len(groups):
        begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        union[groups[begins]] = np.bitwise_or.reduceat(bitmaps, begins, axis=0)
    return union


@dataclass(frozen=True)
class Probe:
    """A probe of a SteM with rows of a parent.

    Parameters
    ----------
    stem, pattern, sources
        The SteM, the searched columns, and the parent's key columns with their values.
    mask
        The queries that this probe serves.
    occurrence, window_us, window_rows
        The role of the rows found, and their windows of time and of rows.
    with_new
        Whether rows of this micro-batch count.

    """

    stem: SteM
    pattern: tuple[int, ...]
    sources: Sequence[KeyRef]
    mask: Bitmap
    occurrence: int
    window_us: int | None
    window_rows: int | None
    with_new: bool

    def run(
        self, parent: RowSet, probing: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, Bitmaps]:
        """Return for each match: parent row, id, time, end of its window, and its queries.

        Parameters
        ----------
        parent, probing
            Rows, and the positions of those that probe.

        """
        keys = [parent.key(ref, probing) for ref in self.sources]
        found = list(self.stem.probe(self.pattern, keys, self.with_new))
        if found:
            parents = probing[np.concatenate([probes for probes, _ in found])]
            ids = np.concatenate([rows for _, rows in found])
        else:
            parents = ids = np.zeros(0, dtype=np.int64)
        times = self.stem.times_us(ids)
        ends = deadline(times, self.window_us)
        fits = np.maximum(parent.times_us[parents], times) < np.minimum(
            parent.deadline_us[parents], ends
        )
        if self.window_rows is not None:
            youngest = np.maximum(parent.arrivals[parents], self.stem.arrivals(ids))
            fits &= self.stem.rows_since(ids, youngest) < self.window_rows
        interested = self.stem.lineage(ids, self.occurrence, len(self.mask))
        interested &= parent.interested[parents]
        interested &= self.mask
        fits &= any_bit(interested)
        kept = np.flatnonzero(fits)
        if len(kept) < len(ids):
            parents, ids, times = parents[kept], ids[kept], times[kept]
            ends, interested = ends[kept], interested[kept]
        return parents, ids, times, ends, interested


def has_partner(parent: RowSet, probe: Probe, probing: IntArray) -> BoolArray:
    """Return for each row of a parent whether it is among those that probe and has a match."""
    has = np.zeros(len(parent.ids), dtype=bool)
    has[probe.run(parent, probing)[0]] = True
    return has


def find_matches(
    parent: RowSet, probe: Probe, key_columns: tuple[KeyRef, ...], probing: IntArray
) -> MatchLists:
    """Return the match lists that a probe of a SteM comes to.

    Parameters
    ----------
    parent, probe
        The rows that probe, and what they probe.
    key_columns
        Key columns of the rows found that further probes search with.
    probing
        Positions of the parent rows that probe.

    """
    stem = probe.stem
    parents, ids, times, ends, interested = probe.run(parent, probing)
    order = _order_by(parents, len(parent.ids))
    if order is not None:
        parents, ids, times = parents[order], ids[order], times[order]
        ends, interested = ends[order], interested[order]
    offsets = np.zeros(len(parent.ids) + 1, dtype=np.int64)
    np.cumsum(np.bincount(parents, minlength=len(parent.ids)), out=offsets[1:])
    if not key_columns:  # nothing hangs below: every match may count as a row of its own
        distinct = RowSet(stem, ids, times, ends, interested, {})
        return MatchLists(parents, offsets, None, interested, distinct)
    unique, first, rows = np.unique(ids, return_index=True, return_inverse=True)
    by_row = np.argsort(rows, kind="stable")
    union = or_by_group(interested[by_row], rows[by_row], len(unique))
    columns = {ref: stem.key(unique, ref.column) for ref in key_columns} if len(ids) else {}
    distinct = RowSet(stem, unique, times[first], ends[first], union, columns)
    return MatchLists(parents, offsets, rows, interested, distinct)


def _order_by(parents: IntArray, count: int) -> IntArray | None:
    """Return the stable order by parent; None if matches are in order."""
    if len(parents) < 2 or (parents[1:] >= parents[:-1]).all():
        return None
    if count <= _RADIX_MAX:
        return np.argsort(parents.astype(np.uint16), kind="stable")
    return np.argsort(parents, kind="stable")
