"""What a predicate costs: microseconds a row, from the calls of a recent window."""

from __future__ import annotations

CALLS_TRUSTED = 16
OUTLIER = 1.5


class CostModel:
    """Microseconds a row of one predicate, as a line through its recent calls.

    A call on r rows is taken to cost ``fixed + r * per_row``. The two are told apart because a
    predicate at the end of an order is called with few rows: charged with the whole call, it
    would look expensive for being last, and would stay last for looking expensive. Disturbances
    grow with the length of a call, so the line is fitted to the cost of *one row*,
    ``per_row + fixed / r``. Older calls fade, so that a predicate whose cost changes is followed.

    Parameters
    ----------
    calls
        After this many further calls, a call has lost all but 1/e of its weight.

    Examples
    --------
    >>> cost = CostModel()
    >>> for rows in (4000, 100, 2000, 50) * 4:
    ...     cost.add(rows, elapsed_us=30 + 2.0 * rows)
    >>> round(cost.fixed_us, 3), round(cost.per_row_us, 3)
    (30.0, 2.0)
    >>> round(cost.us_per_row(1000), 3)
    2.03

    """

    def __init__(self, calls: int = 64) -> None:
        self._fade = 1.0 - 1.0 / calls
        self._calls = 0
        # Faded sums over calls, of x = 1 / rows and y = microseconds a row.
        self._weight = self._x = self._y = self._xx = self._xy = 0.0
        self._least_y = float("inf")

    @property
    def known(self) -> bool:
        """Whether any call was measured yet."""
        return self._calls > 0

    def add(self, rows: int, elapsed_us: float) -> None:
        """Take one measured call into account.

        While there are only a few calls, the cheapest is believed: what disturbs a call, such as
        caches that are still empty, makes it longer. Later, a call that takes much longer than
        it should was interrupted by something else, and counts only in part.
        """
        if rows == 0:
            return
        self._calls += 1
        if self._calls > CALLS_TRUSTED:
            elapsed_us = min(elapsed_us, OUTLIER * rows * self.us_per_row(rows))
        fade = self._fade if self._calls > 2 else 0.0
        x, y = 1.0 / rows, elapsed_us / rows
        self._least_y = min(self._least_y, y)
        self._weight = self._weight * fade + 1.0
        self._x = self._x * fade + x
        self._y = self._y * fade + y
        self._xx = self._xx * fade + x * x
        self._xy = self._xy * fade + x * y

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
        if self._calls < CALLS_TRUSTED:
            return 0.0, self._least_y
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        spread = self._xx / self._weight - mean_x**2
        if spread <= 0.01 * mean_x**2:  # calls of one size: no line to be had
            return 0.0, mean_y
        fixed = max(0.0, (self._xy / self._weight - mean_x * mean_y) / spread)
        per_row = mean_y - fixed * mean_x
        if per_row <= 0.02 * mean_y:  # noise: some cost a row there must be
            return (0.98 * mean_y) / mean_x, 0.02 * mean_y
        return fixed, per_row
