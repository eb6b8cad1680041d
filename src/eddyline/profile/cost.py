"""What a predicate costs: microseconds a row, from the calls of a recent window."""

from __future__ import annotations

from collections import deque

QUANTILE = 0.3
CALLS_BETWEEN = 4  # a few more calls hardly move a quantile, and sorting them all takes time


class CostModel:
    """Microseconds a row of one predicate: a low quantile over its recent calls.

    Whatever disturbs a call, such as another process or caches that are still empty, makes it
    longer, never shorter, so the cheaper calls tell more. Calls count by their rows: one on a
    handful of rows is mostly the cost of calling at all, which is paid wherever the predicate
    stands in the order. (Charged with that, a predicate would look expensive for being last, and
    stay last for looking expensive.)

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

    def add(self, rows: int, elapsed_us: float) -> None:
        """Take one measured call into account."""
        if rows:
            self._calls.append((elapsed_us / rows, rows))
            self._new_calls += 1

    @property
    def per_row_us(self) -> float:
        """The cost of one row."""
        if self._new_calls >= (CALLS_BETWEEN if len(self._calls) > 2 * CALLS_BETWEEN else 1):
            self._per_row_us = self._quantile()
            self._new_calls = 0
        return self._per_row_us

    def _quantile(self) -> float:
        below = QUANTILE * sum(rows for _, rows in self._calls)
        for us, rows in sorted(self._calls):
            below -= rows
            if below <= 0:
                return us
        return 0.0
