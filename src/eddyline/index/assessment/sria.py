"""SRIA: one counter for each access pattern."""

from __future__ import annotations

from typing import ClassVar

from eddyline.index.assessment.assessment import Assessment
from eddyline.index.index import Pattern


class SRIA(Assessment):
    """Self-reliant index assessment: counts every pattern by itself, and forgets none.

    Exact. A state with N join columns has up to 2^N - 1 patterns.

    Examples
    --------
    >>> assessment = SRIA()
    >>> assessment.add((0,), 3)
    >>> assessment.add((0, 2))
    >>> assessment.frequencies()
    {(0,): 0.75, (0, 2): 0.25}

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.3.1 and definition 2.

    """

    name: ClassVar[str] = "SRIA"

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[Pattern, int] = {}

    @property
    def entries(self) -> int:
        """Number of patterns seen."""
        return len(self._counts)

    def _count(self, pattern: Pattern, requests: int) -> None:
        self._counts[pattern] = self._counts.get(pattern, 0) + requests

    def frequencies(self) -> dict[Pattern, float]:
        """Return the share of each pattern."""
        return {pattern: count / self.requests for pattern, count in self._counts.items()}

    def _clear(self) -> None:
        self._counts.clear()
