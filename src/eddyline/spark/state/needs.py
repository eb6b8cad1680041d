"""Which stored rows later results may need: by event time, and by number where rows are counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eddyline.arrays import BoolArray, IntArray
from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.run import Run
from eddyline.operators.bitmaps import bitmap_of, overlap

#: Older than every row.
ALWAYS_US = -(2**63)


class Need(NamedTuple):
    """What one role of a query may still join of the rows of a SteM.

    Parameters
    ----------
    slot, occurrence
        The bit in the lineage of rows.
    since_us
        The oldest event time.
    since_row
        The smallest sequence number.

    """

    slot: int
    occurrence: int
    since_us: int = ALWAYS_US
    since_row: int = UNCOUNTED

    def reaches(self, newest_us: int, newest_row: int) -> bool:
        """Whether some of the rows may be needed, given their newest time and largest number."""
        return newest_us >= self.since_us and newest_row >= self.since_row


def needed_rows(run: Run, needs: Sequence[Need]) -> IntArray:
    """Return the positions of the rows that some query may still join.

    Examples
    --------
    >>> import pyarrow as pa
    >>> lineage = {0: np.array([[1], [3], [2]], dtype=np.uint64)}
    >>> run = Run([], np.array([5, 6, 7]), lineage, pa.record_batch({"a": [1, 2, 3]}))
    >>> needed_rows(run, [Need(0, 0, since_us=6), Need(1, 0, since_us=7)]).tolist()
    [1, 2]

    """
    is_needed = np.zeros(len(run), dtype=bool)
    slots: dict[tuple[int, int, int], list[int]] = {}
    for need in needs:
        slots.setdefault((need.occurrence, need.since_us, need.since_row), []).append(need.slot)
    for (occurrence, since_us, since_row), own in slots.items():
        bitmaps = run.lineage[occurrence]
        is_young: BoolArray = run.times_us >= since_us
        if since_row > UNCOUNTED:
            is_young = is_young & (run.sequence_numbers() >= since_row)
        is_needed |= is_young & overlap(bitmaps, bitmap_of(own, bitmaps.shape[1]))
    return np.flatnonzero(is_needed)
