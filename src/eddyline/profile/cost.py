"""What predicates cost: microseconds a row, from the calls of a recent window."""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from collections.abc import Sequence

CALLS_BETWEEN = 4  # calls between two medians: a few calls hardly move it, and sorting takes time
CALLS_SETTLED = 4
SLOWDOWN_MAX = 4.0


class CostModel:
    """Microseconds a row of one predicate: the median over its recent calls.

    Calls are weighted by their rows. The time of a call on few rows is mostly the fixed cost of a
    call, which does not depend on the predicate's place in the order. (If it counted fully, a
    predicate would look expensive for being last, and stay last for looking expensive:
    `docs/decisions/0003`.)

    Parameters
    ----------
    calls
        Number of newest calls that count.

    Examples
    --------
    >>> cost = CostModel()
    >>> for rows, disturbance in ((4000, 5.0), (4000, 1.0), (3, 20.0), (2000, 1.0), (50, 3.0)):
    ...     cost.add(rows, elapsed_us=2.0 * rows * disturbance)
    >>> cost.per_row_us
    2.0

    """

    def __init__(self, calls: int = 32) -> None:
        self._calls: deque[tuple[float, int]] = deque(maxlen=calls)
        self._by_cost: list[tuple[float, int]] = []  # the same calls, sorted
        self._per_row_us = 0.0
        self._rows = 0  # of the calls that count
        self._new_calls = 0

    @property
    def known(self) -> bool:
        """Whether any call was measured yet."""
        return bool(self._calls)

    @property
    def settled(self) -> bool:
        """Whether there were enough calls for an unusual first one not to matter."""
        return len(self._calls) >= CALLS_SETTLED

    def add(self, rows: int, elapsed_us: float) -> None:
        """Take one measured call into account."""
        if not rows:
            return
        if len(self._calls) == self._calls.maxlen:
            oldest = self._calls[0]
            del self._by_cost[bisect.bisect_left(self._by_cost, oldest)]
            self._rows -= oldest[1]
        call = (elapsed_us / rows, rows)
        self._calls.append(call)
        bisect.insort(self._by_cost, call)
        self._rows += rows
        self._new_calls += 1

    @property
    def per_row_us(self) -> float:
        """The cost of one row."""
        new_calls = self._new_calls
        if new_calls and (new_calls >= CALLS_BETWEEN or len(self._calls) <= 2 * CALLS_BETWEEN):
            self._per_row_us = self._median()
            self._new_calls = 0
        return self._per_row_us

    def _median(self) -> float:
        below = self._rows / 2
        for us, rows in self._by_cost:
            below -= rows
            if below <= 0:
                return us
        return 0.0


class Costs:
    """What several predicates cost in comparison, on a machine that runs other things too.

    A machine that is slower for a second makes one predicate look expensive beside another that was
    measured a second earlier. Therefore only calls of the same batch are compared: the time of each
    call is divided by the slowdown factor of its batch, which is the measured time of all calls of
    the batch divided by their expected time.

    Parameters
    ----------
    count
        Number of predicates.

    Examples
    --------
    >>> costs = Costs(2)
    >>> for slower in (1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 1.0, 3.0):
    ...     costs.add_batch([(0, 1000, 2000.0 * slower), (1, 100, 300.0 * slower)])
    >>> [round(us, 2) for us in costs.per_row_us()]
    [2.0, 3.0]

    """

    def __init__(self, count: int) -> None:
        self._models = [CostModel() for _ in range(count)]
        self._slowdown = 1.0
        self._slowdowns: deque[float] = deque([1.0], maxlen=32)
        self._per_row_us: list[float | None] | None = None  # until the next call is added

    def add_batch(self, calls: Sequence[tuple[int, int, float]]) -> None:
        """Take the calls of one batch into account: predicate, rows, microseconds."""
        expected_us = elapsed_us = 0.0
        for number, rows, us in calls:
            model = self._models[number]
            if model.settled:
                expected_us += rows * model.per_row_us
                elapsed_us += us
        slowdown = elapsed_us / expected_us if expected_us and elapsed_us else 1.0
        self._slowdown = min(max(slowdown, 1 / SLOWDOWN_MAX), SLOWDOWN_MAX)
        self._slowdowns.append(self._slowdown)
        self._per_row_us = None
        for number, rows, us in calls:
            self._models[number].add(rows, us / self._slowdown)

    def add(self, number: int, rows: int, elapsed_us: float) -> None:
        """Take one more call into account, right after the last batch, at its slowdown factor."""
        self._models[number].add(rows, elapsed_us / self._slowdown)
        self._per_row_us = None

    @property
    def are_settled(self) -> bool:
        """Whether each predicate was measured in enough calls."""
        return all(model.settled for model in self._models)

    def per_row_us(self) -> list[float | None]:
        """Return the cost of one row for each predicate, None if unknown.

        The costs are multiplied by the median slowdown factor of recent batches, so that they are
        those of the machine as it usually is.
        """
        if self._per_row_us is None:
            usual = statistics.median(self._slowdowns)
            self._per_row_us = [
                usual * model.per_row_us if model.known else None for model in self._models
            ]
        return self._per_row_us
