"""Counting in segments: what the compact assessments share.

Requests come in segments of 1 / ε. With each completed segment, patterns whose requests are fewer
than the segments so far are compressed away, each method in its own way.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, sections 5.3.2 and 5.4.2. Manku and Motwani,
Approximate Frequency Counts over Data Streams, VLDB 2002.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from eddyline.index.assessment.assessment import Assessment, check_bounds
from eddyline.index.index import Pattern


@dataclass
class Entry:
    """Statistic of one access pattern.

    Parameters
    ----------
    count
        Requests counted since the entry was created.
    missed
        The most requests that may have been counted and dropped before (in the paper: δ).

    """

    count: int
    missed: int


class SegmentedAssessment(Assessment):
    """An assessment that compresses its statistics after each segment of requests.

    Parameters
    ----------
    error
        Most by which a frequency is underestimated (ε).
    threshold
        Frequency from which a pattern is reported (θ); above `error`.

    """

    def __init__(self, error: float, threshold: float) -> None:
        check_bounds(error, threshold)
        super().__init__()
        self.error = error
        self.threshold = threshold
        self._segment = math.ceil(1 / error)
        self._table: dict[Pattern, Entry] = {}

    @property
    def entries(self) -> int:
        """Number of statistics kept now."""
        return len(self._table)

    def _count(self, pattern: Pattern, requests: int) -> None:
        complete = self.requests // self._segment
        entry = self._table.get(pattern)
        if entry is None:
            # The segment id is complete + 1, so this is the paper's sid - 1.
            self._table[pattern] = Entry(requests, complete)
        else:
            entry.count += requests
        # A batch may complete several segments. One compression, with the last of their ids, is
        # enough: during the batch the other counts do not change, so what an earlier compression
        # would have removed the last one removes as well. The pattern of the batch itself could
        # only have been removed and created again, with fewer requests counted.
        now_complete = (self.requests + requests) // self._segment
        if now_complete > complete:
            self._compress(now_complete)

    @abstractmethod
    def _compress(self, segment_id: int) -> None:
        """Remove or merge the patterns with fewer requests than segments so far."""

    def _clear(self) -> None:
        self._table.clear()
