"""Triggered index tuning: the state whose request rate has changed most is assessed."""

from __future__ import annotations

from eddyline.index.schedules.assessments import Assessments
from eddyline.index.schedules.rate_changes import RateChanges
from eddyline.index.schedules.schedule import Schedule, check_fits


class Triggered(Schedule):
    """Assesses the state whose share of the requests has changed most.

    A shift of routes shows as a change of these shares. A state whose share never changes is never
    assessed; if there is only one state, that is the one.

    Parameters
    ----------
    period_requests
        Requests, to all states together, over which rates are tracked: a stretch. It should hold
        several batches of every state.
    window_requests
        Requests to a state after which its assessment is complete. The assessment also ends with
        the stretch, if the state has been searched by then.
    change_min
        Smallest change of a rate, relative to the stretch before, that triggers an assessment.

    Examples
    --------
    >>> schedule = Triggered(period_requests=100, window_requests=10, change_min=0.2)
    >>> for shares in [(60, 40), (59, 41), (40, 60)]:
    ...     schedule.record("A", shares[0])
    ...     schedule.record("B", shares[1])
    ...     print(schedule.is_assessing("A"), schedule.is_assessing("B"))
    False False
    False False
    False True
    >>> schedule.record("B", 10)
    >>> schedule.take_due()
    ['B']

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7, Triggered Index Tuning.

    """

    name = "triggered"

    def __init__(
        self,
        period_requests: int = 100_000,
        window_requests: int = 20_000,
        change_min: float = 0.2,
    ) -> None:
        check_fits(window_requests, period_requests=period_requests)
        self._changes = RateChanges(period_requests, change_min)
        self._assessments = Assessments(window_requests)

    @classmethod
    def paper(
        cls,
        period_requests: int = 100_000,
        window_requests: int = 20_000,
        change_min: float = 0.2,
    ) -> Triggered:
        """Return the schedule of the paper.

        Parameters
        ----------
        period_requests
            100,000 in section 9.2, 80,000 in section 9.5.
        window_requests, change_min
            The paper gives neither the length of an assessment nor what a significant change is.

        """
        return cls(period_requests, window_requests, change_min)

    @property
    def period_requests(self) -> int:
        """Requests, to all states together, over which rates are tracked."""
        return self._changes.stretch_requests

    @property
    def window_requests(self) -> int:
        """Requests to a state after which its assessment is complete."""
        return self._assessments.window_requests

    @property
    def change_min(self) -> float:
        """Smallest relative change of a rate that triggers an assessment."""
        return self._changes.change_min

    def is_assessing(self, state: str) -> bool:
        """Whether an assessment of the state is running."""
        return self._assessments.is_running(state)

    def record(self, state: str, requests: int) -> None:
        """Count the requests; at the end of a stretch, assess the state that changed most."""
        self._assessments.record(state, requests)
        if self._changes.record(state, requests):
            self._assessments.cut()
            if self._changes.most_changed is not None:
                self._assessments.begin(self._changes.most_changed)

    def take_due(self) -> list[str]:
        """Return the states whose assessment is complete, each once."""
        return self._assessments.take_due()
