"""Windows of many queries over the same combinations of rows, checked together.

A result of a query is a combination in which every row is younger than the youngest one less the
window of its stream. While tuples are joined only the largest window counts; here each query's own
windows are checked, for all queries at once: the age of a row selects a bitmap of the queries whose
window it is within, as a grouped filter does with values.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import Bitmaps, IntArray
from eddyline.joins.plan import JoinQuery, Role
from eddyline.joins.stem import SteM
from eddyline.operators.bitmaps import bitmap_of


class WindowTable:
    """For one role, the queries whose window reaches back far enough.

    Parameters
    ----------
    windows_us
        By slot, the window of each query; None for no limit.
    words
        Number of words in bitmaps of queries.

    Examples
    --------
    >>> table = WindowTable({0: 10, 1: 20, 2: None}, words=1)
    >>> table.within(np.array([9, 10, 20])).ravel().tolist()
    [7, 6, 4]

    """

    def __init__(self, windows_us: Mapping[int, int | None], words: int) -> None:
        limits = sorted({window for window in windows_us.values() if window is not None})
        self._limits_us = np.array(limits, dtype=np.int64)
        # Entry n: queries whose window exceeds ages from limit n - 1 on and below limit n.
        self._bitmaps = np.stack(
            [
                bitmap_of((s for s, w in windows_us.items() if w is None or w >= limit), words)
                for limit in limits
            ]
            + [bitmap_of((s for s, w in windows_us.items() if w is None), words)]
        )

    def within(self, ages_us: IntArray) -> Bitmaps:
        """Return for each age the queries whose window it is within."""
        bitmaps: Bitmaps = self._bitmaps[np.searchsorted(self._limits_us, ages_us, side="right")]
        return bitmaps


def window_tables(
    queries: Sequence[JoinQuery], checked_us: Mapping[Role, int | None], words: int
) -> dict[Role, WindowTable]:
    """Return the tables of the roles in which some query has a smaller window than was checked.

    Parameters
    ----------
    queries
        Queries over the same roles.
    checked_us
        For each role, the window that tuples are known to be within.
    words
        Number of words in bitmaps of queries.

    """
    return {
        role: WindowTable({query.slot: query.windows_us[role] for query in queries}, words)
        for role, window_us in checked_us.items()
        if any(query.windows_us[role] != window_us for query in queries)
    }


def row_tables(queries: Sequence[JoinQuery], words: int) -> dict[Role, WindowTable]:
    """Return the windows of rows of queries over the same roles, for roles that have some.

    Parameters
    ----------
    queries
        Queries over the same roles.
    words
        Number of words in bitmaps of queries.

    """
    return {
        role: WindowTable({query.slot: query.windows_rows.get(role) for query in queries}, words)
        for role in sorted({role for query in queries for role in query.windows_rows})
    }


def within_rows(
    tables: Mapping[Role, WindowTable],
    rows: Mapping[Role, tuple[SteM, IntArray]],
    interested: Bitmaps,
) -> Bitmaps:
    """Return the queries that combinations are in all windows of rows of.

    Parameters
    ----------
    tables
        By role, the windows.
    rows
        For every role of the combinations, the SteM and the ids of the rows.
    interested
        The queries that want each combination.

    """
    if not tables:
        return interested
    youngest = np.maximum.reduce([stem.arrivals(ids) for stem, ids in rows.values()])
    for role, table in tables.items():
        stem, ids = rows[role]
        interested = interested & table.within(stem.rows_since(ids, youngest))
    return interested
