"""What predicates cost: microseconds a row, from the calls of a recent window."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence

CALLS_BETWEEN = 4  # a few more calls hardly move a median, and sorting them all takes time
CALLS_SETTLED = 4
PACE_MAX = 4.0


class CostModel:
    """Microseconds a row of one predicate: the median over its recent calls.

    Calls count by their rows: one on a handful of rows is mostly the cost of calling at all, which
    is paid wherever the predicate stands in the order. (Charged with that, a predicate would look
    expensive for being last, and stay last for looking expensive.)

    Parameters
    ----------
    calls
        How many of the newest calls count.

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
        self._per_row_us = 0.0
        self._new_calls = 0

    @property
    def known(self) -> bool:
        """Whether any call was measured yet."""
        return bool(self._calls)

    @property
    def settled(self) -> bool:
        """Whether a first call that was out of the ordinary no longer matters."""
        return len(self._calls) >= CALLS_SETTLED

    def add(self, rows: int, elapsed_us: float) -> None:
        """Take one measured call into account."""
        if rows:
            self._calls.append((elapsed_us / rows, rows))
            self._new_calls += 1

    @property
    def per_row_us(self) -> float:
        """The cost of one row."""
        if self._new_calls >= (CALLS_BETWEEN if len(self._calls) > 2 * CALLS_BETWEEN else 1):
            self._per_row_us = self._median()
            self._new_calls = 0
        return self._per_row_us

    def _median(self) -> float:
        below = sum(rows for _, rows in self._calls) / 2
        for us, rows in sorted(self._calls):
            below -= rows
            if below <= 0:
                return us
        return 0.0


class Costs:
    """What several predicates cost beside each other, on a machine that does other things too.

    A machine that is slower for a second makes one predicate look expensive beside another that was
    measured a second earlier. So what counts is how predicates compare that were called one right
    after the other: each call is charged at the pace of its turn, which is the time that the turn
    took in comparison with what its calls were thought to cost.

    Parameters
    ----------
    count
        Of the predicates.

    Examples
    --------
    >>> costs = Costs(2)
    >>> for slower in (1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 1.0, 3.0):
    ...     costs.add_turn([(0, 1000, 2000.0 * slower), (1, 100, 300.0 * slower)])
    >>> [round(us, 2) for us in costs.per_row_us()]
    [2.0, 3.0]

    """

    def __init__(self, count: int) -> None:
        self._models = [CostModel() for _ in range(count)]
        self._pace = 1.0
        self._paces: deque[float] = deque([1.0], maxlen=32)

    def add_turn(self, calls: Sequence[tuple[int, int, float]]) -> None:
        """Take calls into account that came one after the other: predicate, rows, microseconds."""
        expected_us = elapsed_us = 0.0
        for number, rows, us in calls:
            model = self._models[number]
            if model.settled:
                expected_us += rows * model.per_row_us
                elapsed_us += us
        self._pace = elapsed_us / expected_us if expected_us and elapsed_us else 1.0
        self._pace = min(max(self._pace, 1 / PACE_MAX), PACE_MAX)
        self._paces.append(self._pace)
        for call in calls:
            self.add(*call)

    def add(self, number: int, rows: int, elapsed_us: float) -> None:
        """Take one call into account that came right after the last turn."""
        self._models[number].add(rows, elapsed_us / self._pace)

    def per_row_us(self) -> list[float | None]:
        """Return the cost of one row for each predicate, at the usual pace; None if not known."""
        usual = statistics.median(self._paces)
        return [usual * model.per_row_us if model.known else None for model in self._models]
