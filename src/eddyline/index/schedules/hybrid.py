"""Hybrid index tuning: states are assessed in turn, and one whose rate has changed at once."""

from __future__ import annotations

from eddyline.index.schedules.assessments import Assessments
from eddyline.index.schedules.rate_changes import RateChanges
from eddyline.index.schedules.schedule import Schedule, check_fits


class Hybrid(Schedule):
    """Assesses one state each period, and besides the state whose request rate changed most.

    The states stand in a list. Each period the state at the top is assessed. A state whose rate
    has changed does not wait for its turn. A state that is assessed, for either reason, moves to
    the bottom. So changes are noticed as they occur, and every state has its turn.

    Parameters
    ----------
    period_requests
        Requests, to all states together, from one turn to the next; the first state has its turn
        after the first period.
    trigger_requests
        Requests, to all states together, over which rates are tracked. They should hold several
        batches of every state.
    window_requests
        Requests to a state after which its assessment is complete. An assessment also ends with
        the period (or the stretch of `trigger_requests`), if the state has been searched by then.
    change_min
        Smallest change of a rate, relative to the stretch before, that triggers an assessment.

    Examples
    --------
    Without changes, the states take turns:

    >>> schedule = Hybrid(period_requests=100, trigger_requests=200, window_requests=20)
    >>> for period in range(4):
    ...     schedule.record("A", 50)
    ...     schedule.record("B", 50)
    ...     print(schedule.take_due(), schedule.is_assessing("A"), schedule.is_assessing("B"))
    [] True False
    ['A'] False True
    ['B'] True False
    ['A'] False True

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 7, Hybrid Index Tuning.

    """

    name = "hybrid"

    def __init__(
        self,
        period_requests: int = 50_000,
        trigger_requests: int = 100_000,
        window_requests: int = 20_000,
        change_min: float = 0.2,
    ) -> None:
        check_fits(
            window_requests, period_requests=period_requests, trigger_requests=trigger_requests
        )
        self.period_requests = period_requests
        self._requests = 0
        self._changes = RateChanges(trigger_requests, change_min)
        self._periodic = Assessments(window_requests)
        self._triggered = Assessments(window_requests)
        #: All states; the top of the list is first.
        self._list: list[str] = []

    @classmethod
    def paper(
        cls,
        period_requests: int = 60_000,
        trigger_requests: int = 100_000,
        window_requests: int = 20_000,
        change_min: float = 0.2,
    ) -> Hybrid:
        """Return the schedule of the paper.

        Parameters
        ----------
        period_requests, trigger_requests
            60,000 and 100,000 in section 9.2; 40,000 and 80,000 in section 9.5.
        window_requests, change_min
            The paper gives neither the length of an assessment nor what a significant change is.

        """
        return cls(period_requests, trigger_requests, window_requests, change_min)

    @property
    def trigger_requests(self) -> int:
        """Requests, to all states together, over which rates are tracked."""
        return self._changes.stretch_requests

    @property
    def window_requests(self) -> int:
        """Requests to a state after which its assessment is complete."""
        return self._periodic.window_requests

    @property
    def change_min(self) -> float:
        """Smallest relative change of a rate that triggers an assessment."""
        return self._changes.change_min

    def is_assessing(self, state: str) -> bool:
        """Whether an assessment of the state is running."""
        self._appear(state)
        return self._periodic.is_running(state) or self._triggered.is_running(state)

    def record(self, state: str, requests: int) -> None:
        """Count the requests; begin the assessments that a full stretch or period calls for."""
        self._appear(state)
        self._periodic.record(state, requests)
        self._triggered.record(state, requests)
        if self._changes.record(state, requests):
            self._triggered.cut()
            changed = self._changes.most_changed
            if changed is not None and not self._periodic.is_running(changed):
                self._begin(self._triggered, changed)
        self._requests += requests
        if self._requests >= self.period_requests:
            self._requests %= self.period_requests
            self._periodic.cut()
            waiting = [known for known in self._list if not self.is_assessing(known)]
            if waiting:
                self._begin(self._periodic, waiting[0])

    def take_due(self) -> list[str]:
        """Return the states whose assessment is complete, each once."""
        due = list(dict.fromkeys([*self._triggered.take_due(), *self._periodic.take_due()]))
        self._triggered.restart(due)
        self._periodic.restart(due)
        return due

    def _appear(self, state: str) -> None:
        if state not in self._list:
            self._list.append(state)

    def _begin(self, assessments: Assessments, state: str) -> None:
        assessments.begin(state)
        self._list.remove(state)
        self._list.append(state)
