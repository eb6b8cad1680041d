"""Periodic index tuning: all states are assessed at regular intervals."""

from __future__ import annotations

from eddyline.index.schedules.assessments import Assessments
from eddyline.index.schedules.schedule import Schedule, check_fits


class Periodic(Schedule):
    """Begins an assessment of every state at regular intervals.

    Between assessments nothing is counted, so a change of access patterns is noticed only in the
    next period.

    Parameters
    ----------
    period_requests
        Requests, to all states together, from the start of one assessment to the start of the
        next; the first one starts after the first period. A batch that spans several periods
        starts one assessment.
    window_requests
        Requests to a state after which its assessment is complete. A state that is still being
        assessed when the next period begins continues with the assessment it has.

    Examples
    --------
    >>> schedule = Periodic(period_requests=100, window_requests=10)
    >>> schedule.record("A", 99)
    >>> schedule.is_assessing("A")
    False
    >>> schedule.record("A", 1)
    >>> schedule.is_assessing("A")
    True
    >>> schedule.record("A", 10)
    >>> schedule.take_due(), schedule.is_assessing("A")
    (['A'], False)

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7, Periodic Index Tuning.

    """

    name = "periodic"

    def __init__(self, period_requests: int = 100_000, window_requests: int = 20_000) -> None:
        check_fits(window_requests, period_requests=period_requests)
        self.period_requests = period_requests
        self._assessments = Assessments(window_requests)
        self._requests = 0
        #: The states seen so far, as an ordered set.
        self._states: dict[str, None] = {}

    @classmethod
    def paper(cls, period_requests: int = 60_000, window_requests: int = 20_000) -> Periodic:
        """Return the schedule of the paper.

        Parameters
        ----------
        period_requests
            60,000 in section 9.2, 40,000 in section 9.5.
        window_requests
            The paper does not say how much of a period is assessed.

        """
        return cls(period_requests, window_requests)

    @property
    def window_requests(self) -> int:
        """Requests to a state after which its assessment is complete."""
        return self._assessments.window_requests

    def is_assessing(self, state: str) -> bool:
        """Whether an assessment of the state is running."""
        self._states.setdefault(state)
        return self._assessments.is_running(state)

    def record(self, state: str, requests: int) -> None:
        """Count the requests; begin an assessment of every state if a period is over."""
        self._states.setdefault(state)
        self._assessments.record(state, requests)
        self._requests += requests
        if self._requests >= self.period_requests:
            self._requests %= self.period_requests
            for known in self._states:
                self._assessments.begin(known)

    def take_due(self) -> list[str]:
        """Return the states whose assessment is complete, each once."""
        return self._assessments.take_due()
