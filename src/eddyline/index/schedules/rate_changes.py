"""Which state's share of all search requests has changed most."""

from __future__ import annotations

import math

from eddyline.index.schedules.schedule import check_counts, check_requests


class RateChanges:
    """Compares the request rates of states between consecutive stretches of requests.

    A rate (in the paper: lambda_r) is the share of a state in the requests of a stretch, so that
    stretches of unequal length compare. A stretch ends with the batch that fills it: it should
    hold several batches of every state, or rates show how batches are cut.

    Parameters
    ----------
    stretch_requests
        Number of requests, to all states together, that fill a stretch.
    change_min
        Smallest change that counts, relative to the rate before.

    Examples
    --------
    >>> changes = RateChanges(stretch_requests=100, change_min=0.1)
    >>> changes.record("A", 60), changes.record("B", 40), changes.most_changed
    (False, True, None)
    >>> changes.record("A", 40), changes.record("B", 60), changes.most_changed
    (False, True, 'B')

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7, Triggered Index Tuning.

    """

    def __init__(self, stretch_requests: int, change_min: float) -> None:
        check_counts(stretch_requests=stretch_requests)
        if not 0 < change_min < math.inf:
            raise ValueError(f"change_min must be a positive number, not {change_min}")
        self.stretch_requests = stretch_requests
        self.change_min = change_min
        #: The state that the last complete stretch found; None if no change was large enough.
        self.most_changed: str | None = None
        self._requests: dict[str, int] = {}
        self._rates_before: dict[str, float] | None = None

    def record(self, state: str, requests: int) -> bool:
        """Count requests; return True if they complete a stretch."""
        check_requests(requests)
        self._requests[state] = self._requests.get(state, 0) + requests
        total = sum(self._requests.values())
        if total < self.stretch_requests:
            return False
        rates = {state: served / total for state, served in self._requests.items()}
        self.most_changed = self._compare(rates)
        self._rates_before = rates
        self._requests = dict.fromkeys(self._requests, 0)  # keeps the order of the states
        return True

    def _compare(self, rates: dict[str, float]) -> str | None:
        if self._rates_before is None:
            return None
        most_changed, change_max = None, 0.0
        for state, rate in rates.items():
            before = self._rates_before.get(state, 0.0)
            # A state that is no longer searched has nothing to be assessed on.
            if rate == 0.0:
                continue
            change = abs(rate - before) / before if before else math.inf
            if change >= self.change_min and change > change_max:
                most_changed, change_max = state, change
        return most_changed
