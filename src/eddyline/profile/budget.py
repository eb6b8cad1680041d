"""The overhead budget: how much time may be spent on looking instead of on filtering."""

from __future__ import annotations

SAVED_MAX_US = 250_000.0
CREDIT_SHARE = 0.05
CALM_SHARE = 0.25


class Budget:
    """Two purses that useful work fills and profiling empties.

    Every microsecond of useful work adds `share` microseconds: half to the purse for regular
    profiling, half to the purse for urgent profiling, when the rows have changed; once that one can
    pay for the next urgent profile, everything goes to the other. Profiling may start when its
    purse is not empty, and what it really took is paid afterwards, so that one dear profile is
    made up for by a longer pause. An urgent profile may also be had on credit, if it costs little
    beside the work done since the last credit. What can wait is paid from neither purse: it may
    take a quarter of the share, of the work since it was done last. The purses are capped: a long
    quiet time does not pay for a long splurge.

    Parameters
    ----------
    share
        Time for profiling and learning as a share of the time for useful work. None: unlimited.
    advance_us
        What each purse holds at the start, so that the first rows can be learnt from at once.

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
    >>> budget.allows_in_calm(20.0, useful_us=5_000.0)
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
        """Begin with nothing for regular profiling, as where somebody else has learnt already."""
        self._regular_us = min(self._regular_us, 0.0)

    def earn(self, useful_us: float) -> None:
        """Add the budget's share of useful work."""
        if self.share is None:
            return
        self._useful_since_credit_us += useful_us
        earned_us = self.share * useful_us
        if self._urgent_us < self._urgent_wanted_us:
            self._urgent_us += earned_us / 2
            earned_us /= 2
        self._regular_us = min(self._regular_us + earned_us, SAVED_MAX_US)

    def pay(self, spent_us: float) -> None:
        """Take out what the profiling that was allowed last really took."""
        if self._is_urgent:
            self._urgent_us -= spent_us
            self._urgent_wanted_us = min(spent_us, SAVED_MAX_US)
        else:
            self._regular_us -= spent_us

    def allows(self) -> bool:
        """Say whether regular profiling may go on."""
        self._is_urgent = False
        return self.share is None or self._regular_us > 0

    def allows_urgent(self, expected_us: float) -> bool:
        """Say whether urgent profiling, expected to take so long, may be done."""
        self._is_urgent = True
        if self.share is None or self._urgent_us >= expected_us:
            return True
        if expected_us > CREDIT_SHARE * self._useful_since_credit_us:
            return False
        self._useful_since_credit_us = 0.0
        return True

    def allows_in_calm(self, expected_us: float, useful_us: float) -> bool:
        """Say whether what can wait may be done, after so much work since the last time."""
        return self.share is None or expected_us <= CALM_SHARE * self.share * useful_us
