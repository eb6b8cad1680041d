"""Continuous index tuning: every state is assessed all the time."""

from __future__ import annotations

from eddyline.index.schedules.schedule import Schedule, check_counts, check_requests


class Continuous(Schedule):
    """Assesses every state at all times and tunes it after each window of requests.

    The simplest schedule, and the one that pays most for counting: all requests are counted, even
    if access patterns never change.

    Parameters
    ----------
    window_requests
        Requests to a state after which a configuration is selected for it.

    Examples
    --------
    >>> schedule = Continuous(window_requests=100)
    >>> schedule.is_assessing("A")
    True
    >>> schedule.record("A", 60)
    >>> schedule.take_due()
    []
    >>> schedule.record("A", 60)
    >>> schedule.take_due(), schedule.take_due()
    (['A'], [])

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7, Continuous Index Tuning.

    """

    name = "continuous"

    def __init__(self, window_requests: int = 50_000) -> None:
        check_counts(window_requests=window_requests)
        self.window_requests = window_requests
        #: Requests to each state since it was last due.
        self._served: dict[str, int] = {}

    @classmethod
    def paper(cls, window_requests: int = 60_000) -> Continuous:
        """Return the schedule of the paper: its periodic evaluation window, for each state.

        Parameters
        ----------
        window_requests
            60,000 in section 9.2, 40,000 in section 9.5.

        """
        return cls(window_requests)

    def is_assessing(self, state: str) -> bool:
        """Every state is assessed."""
        return True

    def record(self, state: str, requests: int) -> None:
        """Count the requests towards the window of the state."""
        check_requests(requests)
        self._served[state] = self._served.get(state, 0) + requests

    def take_due(self) -> list[str]:
        """Return the states whose window is full; their next window begins now."""
        due = [state for state, served in self._served.items() if served >= self.window_requests]
        for state in due:
            self._served[state] = 0
        return due
