"""CSRIA: counters for frequent access patterns only, by lossy counting."""

from __future__ import annotations

from typing import ClassVar

from eddyline.index.assessment.segments import SegmentedAssessment
from eddyline.index.index import Pattern


class CSRIA(SegmentedAssessment):
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
        super().__init__(error, threshold)

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
