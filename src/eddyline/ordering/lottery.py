"""Lottery: filters hold tickets for what they drop, and every batch draws its order."""

from __future__ import annotations

import numpy as np

from eddyline.ordering.policy import Change, Evidence, Policy


class Lottery(Policy):
    """Draws an order for each batch; a filter that drops more, faster, is drawn earlier.

    This is the ticket scheme of eddies in its simple form. A filter is given a ticket for each
    row it takes and pays one back for each row it returns, so that it holds as many tickets as
    it has dropped rows. In place of back-pressure, which a filter called directly cannot exert,
    tickets are divided by what the filter costs. Old tickets fade, and every filter keeps at
    least one share of the draw, so that none is ever shut out.

    Parameters
    ----------
    window_batches
        Batches after which tickets have lost all but 1/e of their value.

    Examples
    --------
    >>> policy = Lottery()
    >>> policy.start(filters=2, seed=0)
    >>> evidence = Evidence(
    ...     rows=1000, order=(0, 1), seen=np.array([1000, 1000]), passed=np.array([1000, 10]),
    ...     cost_us=np.ones(2), tuples=np.zeros((0, 2), dtype=bool))
    >>> draws = []
    >>> for _ in range(50):
    ...     _ = policy.learn(evidence)
    ...     draws.append(policy.order[0])
    >>> draws.count(1) > 45
    True

    References
    ----------
    Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 4.

    """

    name = "lottery"
    on_trial = False
    draws_orders = True

    def __init__(self, window_batches: int = 16) -> None:
        self.check_counts(window_batches=window_batches)
        self.window_batches = window_batches

    def reset(self) -> None:
        """Give every filter the same number of tickets."""
        self._taken = np.ones(self.filters)
        self._dropped = np.full(self.filters, 0.5)

    def learn(self, evidence: Evidence) -> Change | None:
        """Pay tickets out, then draw the order of the next batch."""
        fade = 1.0 - 1.0 / self.window_batches
        self._taken = self._taken * fade + evidence.seen
        self._dropped = self._dropped * fade + (evidence.seen - evidence.passed)
        # Per row taken: a filter at the front must not hold more tickets for having seen more.
        tickets = (self._dropped / self._taken) / evidence.cost_us
        tickets = np.maximum(tickets, 0.01 * tickets.max() + 1e-12)
        # Drawing without replacement, in proportion to tickets, is sorting by these keys.
        keys = self.rng.exponential(size=self.filters) / tickets
        self.order = tuple(np.argsort(keys).tolist())
        return None
