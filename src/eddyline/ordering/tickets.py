"""Tickets: operators that serve many queries and finish many rows are visited first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import FloatArray
from eddyline.ordering.policy import Change, Evidence, Policy

COST_ALIKE = 8.0  # costs up to this many times the smallest count as equal


class Tickets(Policy):
    """Orders operators that are shared by many queries.

    An operator is given as many tickets as it applies predicates for each row it takes, and pays
    as many back for each row it returns. An eddy counts a row as returned by comparisons if one of
    their own queries still wants it, and by other predicates if any query needs it elsewhere
    (`docs/decisions/0038`). Tickets never fall below a small share of the most that an operator
    has. In place of back-pressure, they are divided by what the operator costs.

    Most batches take the operators in the order of their tickets; a share of them draws the order
    in a lottery, in proportion to tickets, so that every operator continues to be measured. The
    next batch returns to the order of the tickets, and only a change of that order is reported.

    Tickets alone do not order operators that share queries: rows that one rejects for all its
    queries still visit another one that some more queries need. So an operator that all queries of
    another one need, and some more, comes before it, unless it costs much more (`weigh`).

    Parameters
    ----------
    lottery_share
        Share of batches that draw their order; 1 draws them all, as in the paper.
    window_batches
        Batches after which tickets have lost all but 1/e of their value.

    Examples
    --------
    >>> policy = Tickets()
    >>> policy.start(filters=2, seed=0)
    >>> policy.weigh([1, 3])  # the second operator applies three predicates
    >>> evidence = Evidence(
    ...     rows=1000, order=(0, 1), seen=np.array([1000, 600]), passed=np.array([600, 360]),
    ...     cost_us=np.ones(2), tuples=np.zeros((0, 2), dtype=bool))
    >>> _ = policy.learn(evidence)
    >>> policy.order, policy.shares().round(2).tolist()
    ((1, 0), [0.25, 0.75])

    References
    ----------
    Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 4.

    """

    name = "tickets"
    on_trial = False
    draws_orders = True

    def __init__(self, lottery_share: float = 0.02, window_batches: int = 16) -> None:
        self.check_shares(lottery_share=lottery_share)
        self.check_counts(window_batches=window_batches)
        self.lottery_share = lottery_share
        self.window_batches = window_batches

    def start(
        self, filters: int, order: Sequence[int] | None = None, seed: int | None = None
    ) -> None:
        """Begin with one predicate for each operator, until `weigh` is called."""
        self._weights = np.ones(filters)
        self._wider: Mapping[int, Sequence[int]] = {}
        super().start(filters, order, seed)

    def reset(self) -> None:
        """Give every operator the same tickets for each predicate that it applies."""
        self._taken = np.zeros(self.filters)
        self._finished = np.zeros(self.filters)
        self._cost_factor = np.ones(self.filters)
        self._ranked = self.order

    def weigh(
        self, predicates: Sequence[int], wider: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        """Set how many predicates each operator applies.

        Parameters
        ----------
        predicates
            Number of predicates of each operator.
        wider
            For an operator, those that all of its queries need and other queries too.

        """
        self._weights = np.asarray(predicates, dtype=np.float64)
        self._wider = wider or {}

    def counts(self) -> list[tuple[float, float]]:
        """Return for each operator the rows that it took and finished, older ones in part."""
        return list(zip(self._taken.tolist(), self._finished.tolist(), strict=True))

    def adopt_counts(self, counts: Sequence[tuple[float, float]]) -> None:
        """Begin with counts that `counts` of another policy returned."""
        self._taken = np.array([taken for taken, _ in counts])
        self._finished = np.array([finished for _, finished in counts])

    def learn(self, evidence: Evidence) -> Change | None:
        """Pay tickets out, then order the operators for the next batch."""
        fade = 1.0 - 1.0 / self.window_batches
        self._taken = self._taken * fade + evidence.seen
        self._finished = self._finished * fade + (evidence.seen - evidence.passed)
        # Costs count only where they differ much: small differences are mostly noise.
        alike_us = COST_ALIKE * evidence.cost_us.min()
        self._cost_factor = np.maximum(evidence.cost_us / alike_us, 1.0)
        tickets = self._tickets()
        if self.rng.random() < self.lottery_share:
            # Drawing without replacement, in proportion to tickets, is sorting by these keys.
            keys = self.rng.exponential(size=self.filters) / tickets
            self.order = tuple(np.argsort(keys).tolist())
            return None
        self.order = self._ranked  # a drawn order holds for one batch
        change = self.change_to(self._rank(tickets))
        self._ranked = self.order
        return change

    def _rank(self, tickets: FloatArray) -> list[int]:
        """Return the operators by their tickets, each behind those that are wider."""
        ranked: dict[int, None] = {}
        for number in np.argsort(-tickets, kind="stable").tolist():
            if number in ranked:
                continue
            wider = [
                other
                for other in self._wider.get(number, ())
                if self._cost_factor[other] <= self._cost_factor[number]
            ]
            # The widest first: it is in the lists of the others.
            for other in sorted(wider, key=lambda o: (len(self._wider.get(o, ())), -tickets[o])):
                ranked.setdefault(other)
            ranked.setdefault(number)
        return list(ranked)

    def shares(self) -> FloatArray:
        """Return the share of all tickets that each operator holds."""
        if not self.filters:
            return np.zeros(0)
        tickets = self._tickets()
        share: FloatArray = tickets / tickets.sum()
        return share

    def _tickets(self) -> FloatArray:
        # Per row taken: an operator at the front must not hold more tickets for having seen more
        # rows. One not yet visited counts as one that keeps every row, so that it is tried soon.
        rate = (self._finished + 1.0) / (self._taken + 1.0)
        tickets = self._weights * rate / self._cost_factor
        floored: FloatArray = np.maximum(tickets, 1e-3 * tickets.max())
        return floored
