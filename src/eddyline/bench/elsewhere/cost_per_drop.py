"""Cost per dropped row from cumulative statistics, as conjunctions in Velox and Trino use it."""

from __future__ import annotations

import numpy as np

from eddyline.ordering.policy import Change, Evidence, Policy


class CostPerDrop(Policy):
    """Keeps the filters sorted by the time each has taken for each row it has dropped.

    The statistics are what the regular path shows, over the whole run: they cost nothing, but a
    filter is judged only on rows that those before it let through, and the past never fades.

    Examples
    --------
    >>> policy = CostPerDrop()
    >>> policy.start(filters=2)
    >>> policy.learn(Evidence(
    ...     rows=10, order=(0, 1), seen=np.array([10, 9]), passed=np.array([9, 1]),
    ...     cost_us=np.ones(2), tuples=np.zeros((0, 2), dtype=bool))).after
    (1, 0)

    """

    name = "cost_per_drop"
    on_trial = False

    def reset(self) -> None:
        """Start with empty statistics."""
        self._us = np.zeros(self.filters)
        self._dropped = np.zeros(self.filters)

    def learn(self, evidence: Evidence) -> Change | None:
        """Add the batch to the statistics and sort."""
        self._us += evidence.seen * evidence.cost_us
        self._dropped += evidence.seen - evidence.passed
        cost = np.where(self._us > 0, self._us / np.maximum(self._dropped, 0.5), 0.0)
        return self.change_to(np.argsort(cost, kind="stable").tolist())
