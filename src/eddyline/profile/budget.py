"""The overhead budget: how much time may be spent on looking instead of on filtering."""

from __future__ import annotations

SAVED_MAX_US = 250_000.0


class Budget:
    """A purse that useful work fills and profiling empties.

    Every microsecond of useful work adds `share` microseconds. Profiling may start when the purse
    is not empty, and what it really took is paid afterwards, so that one dear profile is made up
    for by a longer pause. The purse is capped: a long quiet time does not pay for a long splurge.
    Where looking is urgent, because the rows have changed, it may be done on credit once; the
    next credit is given when that one is paid back.

    Parameters
    ----------
    share
        Time for profiling and learning as a share of the time for useful work. None: unlimited.
    advance_us
        What the purse holds at the start, so that the first rows can be learnt from at once.

    Examples
    --------
    >>> budget = Budget(share=0.02, advance_us=100.0)
    >>> budget.pay(150.0)
    >>> budget.allows(), budget.allows(urgent=True), budget.allows(urgent=True)
    (False, True, False)
    >>> budget.earn(5_000.0)
    >>> budget.allows()
    True

    """

    def __init__(self, share: float | None, advance_us: float = 0.0) -> None:
        if share is not None and not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1, not {share}")
        self.share = share
        self._purse_us = advance_us
        self._on_credit = False

    def earn(self, useful_us: float) -> None:
        """Add the budget's share of useful work."""
        if self.share is not None:
            self._purse_us = min(self._purse_us + self.share * useful_us, SAVED_MAX_US)

    def pay(self, spent_us: float) -> None:
        """Take out what profiling and learning really took."""
        self._purse_us -= spent_us

    def allows(self, urgent: bool = False) -> bool:
        """Say whether profiling may go on."""
        if self.share is None or self._purse_us > 0:
            self._on_credit = False
            return True
        if urgent and not self._on_credit:
            self._on_credit = True
            return True
        return False
