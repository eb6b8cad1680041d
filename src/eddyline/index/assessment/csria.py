"""CSRIA: counters for frequent access patterns only, by lossy counting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

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


class CSRIA(Assessment):
    """Compact SRIA: drops patterns whose frequency is below the error rate.

    Requests are counted in segments of ⌈1/ε⌉. When a segment is complete, every pattern that may
    have had at most one request in each segment so far is dropped.

    The result contains every pattern with a frequency of at least θ. A reported frequency is never
    above the true one, and at most ε below it.

    Parameters
    ----------
    error
        Most by which a frequency is underestimated (ε).
    threshold
        Frequency from which a pattern is reported for certain (θ); above `error`.

    Examples
    --------
    >>> assessment = CSRIA(error=0.1, threshold=0.2)
    >>> for _ in range(20):
    ...     assessment.add((0,), 9)
    ...     assessment.add((1,), 1)
    >>> assessment.frequencies(), assessment.entries
    ({(0,): 0.9}, 1)

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.3.2 and definition 3. Manku and
    Motwani, Approximate Frequency Counts over Data Streams, VLDB 2002, section 4.2.

    """

    name: ClassVar[str] = "CSRIA"

    def __init__(self, error: float = 0.05, threshold: float = 0.1) -> None:
        check_bounds(error, threshold)
        super().__init__()
        self.error = error
        self.threshold = threshold
        self._segment = math.ceil(1 / error)
        self._table: dict[Pattern, Entry] = {}

    @property
    def entries(self) -> int:
        """Number of patterns kept."""
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
        # would have dropped is dropped by the last one as well. The pattern of the batch itself
        # could only have been dropped and created again, with fewer requests counted.
        now_complete = (self.requests + requests) // self._segment
        if now_complete > complete:
            self._compress(now_complete)

    def _compress(self, segment_id: int) -> None:
        self._table = {
            pattern: entry
            for pattern, entry in self._table.items()
            if entry.count + entry.missed > segment_id
        }

    def frequencies(self) -> dict[Pattern, float]:
        """Return the patterns whose frequency, with what may be missed, is at least θ - ε."""
        least = self.threshold - self.error
        return {
            pattern: entry.count / self.requests
            for pattern, entry in self._table.items()
            if (entry.count + entry.missed) / self.requests >= least
        }

    def _clear(self) -> None:
        self._table.clear()
