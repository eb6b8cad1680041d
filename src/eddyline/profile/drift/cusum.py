"""A drift detector for promises: does a class of rows cost what it was said to cost?"""

from __future__ import annotations


class BrokenPromise:
    """Calls when rows have cost more than promised for long enough to be no accident.

    This is Page's cumulative sum: what goes beyond the promise and a tolerance adds up, what stays
    below it wears the sum down again.

    Parameters
    ----------
    tolerance
        How much more than promised, as a share, is no breach.
    slack_rows
        The alarm calls when the sum exceeds what so many rows were promised to cost.

    Examples
    --------
    >>> promise = BrokenPromise(tolerance=0.2, slack_rows=1000)
    >>> any(promise.add(rows=500, measured_us=550.0, promised_us=500.0) for _ in range(50))
    False
    >>> [promise.add(rows=500, measured_us=1200.0, promised_us=500.0) for _ in range(3)]
    [False, True, False]

    """

    def __init__(self, tolerance: float = 0.2, slack_rows: int = 4_096) -> None:
        self._tolerance = tolerance
        self._slack_rows = slack_rows
        self._excess_rows = 0.0

    def add(self, rows: int, measured_us: float, promised_us: float) -> bool:
        """Take some rows into account; say whether the promise is broken (and start anew)."""
        if rows == 0 or promised_us <= 0:
            return False
        excess = measured_us / promised_us - 1.0 - self._tolerance
        self._excess_rows = max(0.0, self._excess_rows + rows * excess)
        is_broken = self._excess_rows > self._slack_rows
        if is_broken:
            self._excess_rows = 0.0
        return is_broken
