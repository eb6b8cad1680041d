"""The overhead budget: how much time may be spent on profiling instead of on filtering."""

from __future__ import annotations

BALANCE_MAX_US = 250_000.0
CREDIT_SHARE = 0.05
DEFERRABLE_SHARE = 0.25


class Budget:
    """Limits the time for profiling and learning to a share of the time for useful work.

    There are two balances, in microseconds. Every microsecond of useful work adds `share`
    microseconds to them: half to the balance for regular profiling and half to the balance for
    urgent profiling, which is done when the rows have changed. Once the urgent balance can pay for
    the next urgent profile, everything goes to the regular one. Profiling may start while its
    balance is positive, and the time that it took is subtracted afterwards, so an expensive profile
    is followed by a longer pause. Balances are capped, so a long time without profiling does not
    allow a long time of it.

    An urgent profile that its balance cannot pay for is allowed as a credit if it costs at most 5 %
    of the useful work since the last credit. Work that can wait is subtracted from neither balance:
    it may take a quarter of `share` of the useful work since it was last done.

    Parameters
    ----------
    share
        Time for profiling and learning as a share of the time for useful work. None: unlimited.
    advance_us
        Each balance at the start, so that the first rows can be learnt from at once.

    Examples
    --------
    >>> budget = Budget(share=0.02, advance_us=100.0)
    >>> budget.pay(150.0)
    >>> budget.allows()
    False
    >>> budget.earn(5_000.0)
    >>> budget.allows()
    True
    >>> budget.allows_urgent(300.0), budget.allows_urgent(150.0)
    (False, True)
    >>> budget.allows_deferrable(20.0, useful_us=5_000.0)
    True

    """

    def __init__(self, share: float | None, advance_us: float = 0.0) -> None:
        if share is not None and not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1, not {share}")
        self.share = share
        self._regular_us = advance_us
        self._urgent_us = advance_us
        self._urgent_wanted_us = advance_us
        self._useful_since_credit_us = 0.0
        self._is_urgent = False

    def forgo_advance(self) -> None:
        """Start regular profiling without an advance, because another router has learnt already."""
        self._regular_us = min(self._regular_us, 0.0)

    def earn(self, useful_us: float) -> None:
        """Add the share of some useful work to the balances."""
        if self.share is None:
            return
        self._useful_since_credit_us += useful_us
        earned_us = self.share * useful_us
        if self._urgent_us < self._urgent_wanted_us:
            self._urgent_us += earned_us / 2
            earned_us /= 2
        self._regular_us = min(self._regular_us + earned_us, BALANCE_MAX_US)

    def pay(self, spent_us: float) -> None:
        """Subtract the time of the profiling that was allowed last."""
        if self._is_urgent:
            self._urgent_us -= spent_us
            self._urgent_wanted_us = min(spent_us, BALANCE_MAX_US)
        else:
            self._regular_us -= spent_us

    def allows(self) -> bool:
        """Return True if regular profiling may be done now."""
        self._is_urgent = False
        return self.share is None or self._regular_us > 0

    def allows_urgent(self, expected_us: float) -> bool:
        """Return True if urgent profiling that is expected to take this long may be done now."""
        self._is_urgent = True
        if self.share is None or self._urgent_us >= expected_us:
            return True
        if expected_us > CREDIT_SHARE * self._useful_since_credit_us:
            return False
        self._useful_since_credit_us = 0.0
        return True

    def allows_deferrable(self, expected_us: float, useful_us: float) -> bool:
        """Return True if work that can wait may be done now.

        Parameters
        ----------
        expected_us
            The time it is expected to take.
        useful_us
            Useful work since it was last done.
        """
        return self.share is None or expected_us <= DEFERRABLE_SHARE * self.share * useful_us
