"""When is which state assessed, and when is its index tuned?

A *state* is what a SteM stores; an *assessment* counts the access patterns of the search requests
to a state for a while, and ends with the selection of a configuration from these counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class Schedule(ABC):
    """Decides which states are assessed, by the numbers of search requests that they serve.

    Before a state serves a batch of requests, ask `is_assessing`; after the batch, call `record`.
    Whether a batch is counted is decided once, when it begins: an assessment that begins within a
    batch starts with the next one. States need not be announced, they appear by these two calls.

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7.

    """

    name: ClassVar[str]

    @abstractmethod
    def is_assessing(self, state: str) -> bool:
        """Whether requests to the state are to be counted now."""

    @abstractmethod
    def record(self, state: str, requests: int) -> None:
        """Take note of search requests that the state has served, assessed or not.

        Parameters
        ----------
        state
            Name of the state.
        requests
            Number of requests; it may exceed any window or period.

        """

    @abstractmethod
    def take_due(self) -> list[str]:
        """Return the states whose assessment is complete, each once.

        A configuration is to be selected for them now, and their counts begin again.
        """


def check_counts(**counts: int) -> None:
    """Refuse parameters that must be at least 1.

    Examples
    --------
    >>> check_counts(window_requests=0)
    Traceback (most recent call last):
    ...
    ValueError: window_requests must be at least 1, not 0

    """
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, not {count}")


def check_fits(window_requests: int, **periods: int) -> None:
    """Refuse an assessment that is longer than the period it begins with.

    Examples
    --------
    >>> check_fits(20, period_requests=10)
    Traceback (most recent call last):
    ...
    ValueError: window_requests must be at most period_requests, but 20 > 10

    """
    check_counts(window_requests=window_requests, **periods)
    for name, period in periods.items():
        if window_requests > period:
            raise ValueError(
                f"window_requests must be at most {name}, but {window_requests} > {period}"
            )


def check_requests(requests: int) -> None:
    """Refuse a negative number of requests."""
    if requests < 0:
        raise ValueError(f"requests must be at least 0, not {requests}")
