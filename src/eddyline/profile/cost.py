"""What a predicate costs: microseconds a row, from the calls of a recent window."""

from __future__ import annotations

CALLS_TRUSTED = 4
OUTLIER = 5.0


class CostModel:
    """Microseconds a row of one predicate, as a line through its recent calls.

    A call on r rows is taken to cost ``fixed + r * per_row``. The two are told apart because a
    predicate at the end of an order is called with few rows: charged with the whole call, it
    would look expensive for being last, and would stay last for looking expensive. Older calls
    fade, so that a predicate whose cost changes is followed.

    Parameters
    ----------
    calls
        After this many further calls, a call has lost all but 1/e of its weight.

    Examples
    --------
    >>> cost = CostModel()
    >>> for rows in (4000, 4000, 100, 2000, 50):
    ...     cost.add(rows, elapsed_us=30 + 2.0 * rows)
    >>> round(cost.fixed_us, 3), round(cost.per_row_us, 3)
    (30.0, 2.0)
    >>> round(cost.us_per_row(1000), 3)
    2.03

    """

    def __init__(self, calls: int = 64) -> None:
        self._fade = 1.0 - 1.0 / calls
        self._calls = 0
        self._weight = self._rows = self._us = self._rows_rows = self._rows_us = 0.0

    @property
    def known(self) -> bool:
        """Whether any call was measured yet."""
        return self._rows > 0

    def add(self, rows: int, elapsed_us: float) -> None:
        """Take one measured call into account.

        The first call fills caches and is replaced by the second. A call that takes many times
        what it should was interrupted by something else, and counts only in part.
        """
        if rows == 0:
            return
        self._calls += 1
        if self._calls > CALLS_TRUSTED:
            elapsed_us = min(elapsed_us, OUTLIER * rows * self.us_per_row(rows))
        fade = self._fade if self._calls > 2 else 0.0
        self._weight = self._weight * fade + 1.0
        self._rows = self._rows * fade + rows
        self._us = self._us * fade + elapsed_us
        self._rows_rows = self._rows_rows * fade + rows * rows
        self._rows_us = self._rows_us * fade + rows * elapsed_us

    @property
    def per_row_us(self) -> float:
        """The cost of one more row in a call."""
        return self._line()[1]

    @property
    def fixed_us(self) -> float:
        """The cost of a call with no rows."""
        return self._line()[0]

    def us_per_row(self, rows: int) -> float:
        """Return the cost of a row in a call on that many rows."""
        fixed, per_row = self._line()
        return per_row + fixed / max(rows, 1)

    def _line(self) -> tuple[float, float]:
        if not self.known:
            return 0.0, 0.0
        mean_us_per_row = self._us / self._rows
        spread = self._weight * self._rows_rows - self._rows**2
        if spread <= 1e-3 * self._rows**2:  # calls of one size: no line to be had
            return 0.0, mean_us_per_row
        per_row = (self._weight * self._rows_us - self._rows * self._us) / spread
        # A fixed part below zero, or a slope below zero, is noise: fall back to the mean.
        per_row = min(max(per_row, 0.05 * mean_us_per_row), mean_us_per_row)
        return max(0.0, (self._us - per_row * self._rows) / self._weight), per_row
