"""The overhead budget: how much time may be spent on profiling instead of on filtering."""

from __future__ import annotations

import math

BALANCE_MAX_US = 250_000.0
LOAN_SHARE = 0.05
INSTALMENT_SHARE = 0.25
ADVANCE_FACTOR = 0.5  # of the square root of the useful work, counted in profiles


class Budget:
    """Limits the time for profiling and learning to a share of the time for useful work.

    There are two balances, in microseconds. Every microsecond of useful work adds `share`
    microseconds to them: half to the balance for regular profiling and half to the balance for
    urgent profiling, which is done when the rows have changed. Once the urgent balance can pay for
    the next urgent profile, everything goes to the regular one. Regular profiling may start while
    its balance is positive, and the time that it took is subtracted afterwards, so an expensive
    profile is followed by a longer pause. An urgent profile is as large as its balance can pay for.
    Balances are capped, so a long time without profiling does not allow a long time of it.

    The first profiles tell most, so there is an advance besides. What an order learnt from a number
    of profiles costs too much falls in proportion to that number, so that the sum of both is least
    where profiles are as many as the square root of the work, whatever a profile costs. The
    advance follows that root as rows come, up to `advance_us`: small inputs of fast operators do
    not pay for more profiles than they can use (docs/decisions/0040).

    A class search takes so long that a balance would pay for it for seconds. It is a debt, which
    takes at most a quarter of what is earned until it is repaid. Searches that can wait must cost
    no more than that quarter since the last one; for others there is a loan, if they cost at most
    5 % of the useful work since the last search and the debt stays below the cap of a balance.

    So the time spent is never more than `share` of the useful work, the advance and that cap.

    Parameters
    ----------
    share
        Time for profiling and learning as a share of the time for useful work. None: unlimited.
    advance_us
        Largest advance, of both balances together.

    Examples
    --------
    >>> budget = Budget(share=0.02)
    >>> budget.allows()
    False
    >>> budget.earn(5_000.0)
    >>> budget.allows()
    True
    >>> budget.affordable_urgent(each_us=10.0, wanted=128)  # nothing was put by for it yet
    0
    >>> budget.earn(5_000.0)
    >>> budget.affordable_urgent(each_us=10.0, wanted=128)
    5
    >>> budget.allows_deferrable(20.0, useful_us=5_000.0)
    True

    """

    def __init__(self, share: float | None, advance_us: float = 0.0) -> None:
        if share is not None and not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1, not {share}")
        self.share = share
        self._advance_max_us = advance_us
        self._advanced_us = 0.0
        self._useful_us = 0.0
        self._regular_us = 0.0
        self._urgent_us = 0.0
        self._urgent_wanted_us = 0.0
        self._debt_us = 0.0
        self._is_urgent = False

    def forgo_advance(self) -> None:
        """Start regular profiling without an advance, because another router has learnt already."""
        self._regular_us = min(self._regular_us, 0.0)
        self._advanced_us = self._advance_max_us

    def take_advance(self) -> None:
        """Take the whole advance at once, half of it for urgent profiling."""
        half_us = (self._advance_max_us - self._advanced_us) / 2
        self._regular_us += half_us
        self._urgent_us += half_us
        self._urgent_wanted_us = max(self._urgent_wanted_us, half_us)
        self._advanced_us = self._advance_max_us

    def advance_us(self, profile_us: float) -> float:
        """Return the advance for the work so far, where a profile costs so much."""
        root_us = ADVANCE_FACTOR * math.sqrt(self._useful_us * profile_us)
        return min(root_us, self._advance_max_us)

    def earn(self, useful_us: float, profile_us: float = 0.0) -> None:
        """Add to the balances the share of some useful work, and what the advance grows by.

        Parameters
        ----------
        useful_us
            The work.
        profile_us
            What a profile costs: one evaluation of each operator.

        """
        if self.share is None:
            return
        self._useful_us += useful_us
        more_us = max(0.0, self.advance_us(profile_us) - self._advanced_us)
        self._advanced_us += more_us
        earned_us = self.share * useful_us + more_us
        instalment_us = min(self._debt_us, INSTALMENT_SHARE * earned_us)
        self._debt_us -= instalment_us
        earned_us -= instalment_us
        if self._urgent_us < self._urgent_wanted_us:
            self._urgent_us += earned_us / 2
            earned_us /= 2
        self._regular_us = min(self._regular_us + earned_us, BALANCE_MAX_US)

    def pay(self, spent_us: float) -> None:
        """Subtract the time of the profiling that was allowed last."""
        if self._is_urgent:
            self._urgent_us -= spent_us
        else:
            self._regular_us -= spent_us

    def owe(self, spent_us: float) -> None:
        """Book the time of a search as a debt."""
        self._debt_us += spent_us

    def allows(self) -> bool:
        """Return True if regular profiling may be done now."""
        self._is_urgent = False
        return self.share is None or self._regular_us > 0

    def affordable_urgent(self, each_us: float, wanted: int) -> int:
        """Return how many of the wanted urgent profiles, at such a cost each, are paid for."""
        self._is_urgent = True
        self._urgent_wanted_us = min(wanted * each_us, BALANCE_MAX_US)
        if self.share is None:
            return wanted
        return max(0, min(wanted, int(self._urgent_us / each_us)))

    def affordable_on_loan(self, each_us: float, wanted: int, debt_max_us: float) -> int:
        """Return how many of the wanted profiles may be done now and earned later.

        Parameters
        ----------
        each_us
            What one costs.
        wanted
            Number wanted.
        debt_max_us
            How far the balance for regular profiling may fall below zero.

        """
        self._is_urgent = False
        if self.share is None:
            return wanted
        return max(0, min(wanted, int((self._regular_us + debt_max_us) / each_us)))

    def allows_loan(self, expected_us: float, useful_us: float) -> bool:
        """Return True if a search that cannot wait may be done now.

        Parameters
        ----------
        expected_us
            The time it is expected to take.
        useful_us
            Useful work since the last search.
        """
        is_small = expected_us <= LOAN_SHARE * useful_us
        return self.share is None or (is_small and self._debt_us + expected_us <= BALANCE_MAX_US)

    def allows_deferrable(self, expected_us: float, useful_us: float) -> bool:
        """Return True if a search that can wait may be done now; arguments as for a loan."""
        return self.share is None or expected_us <= INSTALMENT_SHARE * self.share * useful_us
