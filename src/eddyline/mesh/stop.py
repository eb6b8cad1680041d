"""When a search stops: after a number of iterations, on a plateau, or when time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Stop:
    """Counts iterations and time, and decides when a search stops.

    Parameters
    ----------
    iterations_max
        Of the outer loop of a search.
    plateau_max
        Iterations in a row without an improvement. None: no limit.
    seconds_max
        Time budget. None: no limit.
    progress
        Called after each iteration with its number and the best cost so far.

    Examples
    --------
    >>> stop = Stop(iterations_max=10, plateau_max=2)
    >>> costs = iter([5.0, 4.0, 4.0, 4.0, 3.0])
    >>> while not stop.is_met:
    ...     stop.count(next(costs))
    >>> stop.iterations, stop.reason
    (4, 'plateau')

    """

    iterations_max: int = 3
    plateau_max: int | None = None
    seconds_max: float | None = None
    progress: Callable[[int, float], None] | None = None
    iterations: int = 0
    reason: str = ""
    _best: float = float("inf")
    _since_best: int = 0
    _began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time budget is used up."""
        return self.is_past(1.0)

    def is_past(self, share: float) -> bool:
        """Whether a share of the time budget is used up."""
        return self.seconds_max is not None and self.seconds >= share * self.seconds_max

    @property
    def is_met(self) -> bool:
        """Whether to stop; the reason is kept."""
        if self.is_out_of_time:
            self.reason = "time"
        elif self.iterations >= self.iterations_max:
            self.reason = "iterations"
        elif self.plateau_max is not None and self._since_best >= self.plateau_max:
            self.reason = "plateau"
        return bool(self.reason)

    def count(self, cost: float) -> None:
        """Record the end of an iteration and the cost it reached."""
        self.iterations += 1
        if cost < self._best - 1e-12:
            self._best, self._since_best = cost, 0
        else:
            self._since_best += 1
        if self.progress is not None:
            self.progress(self.iterations, self._best)
