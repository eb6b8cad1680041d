"""What every method of index assessment can do: count which columns searches give values for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from eddyline.index.index import Pattern


class Assessment(ABC):
    """Counts search requests by access pattern, and reports how frequent each pattern is.

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.2 and definition 1.

    """

    name: ClassVar[str]

    def __init__(self) -> None:
        #: Search requests counted since the assessment began.
        self.requests = 0

    @property
    @abstractmethod
    def entries(self) -> int:
        """Number of statistics kept now."""

    @abstractmethod
    def frequencies(self) -> dict[Pattern, float]:
        """Return the final result: patterns with their share of all requests (F_ap).

        The assessment may go on afterwards. Without requests the result is empty.
        """

    @abstractmethod
    def _count(self, pattern: Pattern, requests: int) -> None:
        """Count a batch; `self.requests` does not contain it yet."""

    @abstractmethod
    def _clear(self) -> None:
        """Drop all statistics."""

    def add(self, pattern: Pattern, requests: int = 1) -> None:
        """Count search requests.

        Parameters
        ----------
        pattern
            The columns that the searches give values for; () for a full scan.
        requests
            Number of searches with this pattern, which arrive together.

        """
        if requests < 0:
            raise ValueError(f"requests must be 0 or more; got {requests}")
        if requests:
            self._count(pattern, requests)
            self.requests += requests

    def reset(self) -> None:
        """Begin a new assessment."""
        self.requests = 0
        self._clear()


def check_bounds(error: float, threshold: float) -> None:
    """Raise a ValueError unless 0 < error < threshold <= 1.

    Examples
    --------
    >>> check_bounds(error=0.2, threshold=0.1)
    Traceback (most recent call last):
    ...
    ValueError: error must lie between 0 and the threshold 0.1, both exclusive; got 0.2

    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie above 0 and be at most 1; got {threshold}")
    if not 0 < error < threshold:
        raise ValueError(
            f"error must lie between 0 and the threshold {threshold}, both exclusive; got {error}"
        )
