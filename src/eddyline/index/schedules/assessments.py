"""The assessments that are running, and the states whose assessment is complete."""

from __future__ import annotations

from collections.abc import Iterable

from eddyline.index.schedules.schedule import check_requests


class Assessments:
    """Counts the requests that assessed states serve, and collects the states that are due.

    Parameters
    ----------
    window_requests
        Requests to the state after which its assessment is complete.

    Examples
    --------
    >>> assessments = Assessments(window_requests=10)
    >>> assessments.begin("A")
    >>> assessments.record("A", 9)
    >>> assessments.take_due(), assessments.is_running("A")
    ([], True)
    >>> assessments.record("A", 5)
    >>> assessments.take_due(), assessments.is_running("A"), assessments.take_due()
    (['A'], False, [])

    """

    def __init__(self, window_requests: int) -> None:
        self.window_requests = window_requests
        #: Requests that each assessed state has served since its assessment began.
        self._served: dict[str, int] = {}
        #: An ordered set.
        self._due: dict[str, None] = {}

    def is_running(self, state: str) -> bool:
        """Whether the state is being assessed."""
        return state in self._served

    def begin(self, state: str) -> None:
        """Assess a state from now on; an assessment that is running goes on."""
        self._served.setdefault(state, 0)

    def record(self, state: str, requests: int) -> None:
        """Count requests if the state is being assessed."""
        check_requests(requests)
        if state not in self._served:
            return
        self._served[state] += requests
        if self._served[state] >= self.window_requests:
            self._end(state)

    def cut(self) -> None:
        """End all assessments early; one without a request so far goes on until it has some."""
        for state in [state for state, served in self._served.items() if served]:
            self._end(state)

    def _end(self, state: str) -> None:
        del self._served[state]
        self._due[state] = None

    def take_due(self) -> list[str]:
        """Return the states whose assessment has ended, in the order of the ends, each once."""
        due = list(self._due)
        self._due.clear()
        self.restart(due)
        return due

    def restart(self, states: Iterable[str]) -> None:
        """Begin running assessments again, because what was counted for these states is used."""
        for state in states:
            if state in self._served:
                self._served[state] = 0
