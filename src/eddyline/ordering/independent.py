"""Independent: orders filters by their own drop rate, as if none of them were correlated."""

from __future__ import annotations

from typing import Self

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.profiling_policy import WindowPolicy


class Independent(WindowPolicy):
    """Keeps the filters sorted by unconditional drop rate per unit time.

    Optimal for independent filters. With correlated ones it can end O(n) times worse than
    A-Greedy (example 6 of the paper), because it puts filters one after the other that drop the
    same rows. Only the first row of A-Greedy's matrix view is kept.

    Parameters
    ----------
    profile_probability, window_tuples, alpha, tuples_min
        As for `ProfilingPolicy`. Fewer rows are profiled than for A-Greedy, since no
        conditional rates are needed.

    Examples
    --------
    >>> policy = Independent(tuples_min=4)
    >>> policy.start(filters=2)
    >>> tuples = np.array([[True, True], [False, True], [False, True], [False, True]])
    >>> policy.learn(Evidence(
    ...     rows=10, order=(0, 1), seen=np.array([10, 9]), passed=np.array([9, 6]),
    ...     cost_us=np.ones(2), tuples=tuples)).after
    (1, 0)

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 6.

    """

    name = "independent"

    def __init__(
        self,
        profile_probability: float = 0.005,
        window_tuples: int = 1000,
        alpha: float = 0.9,
        tuples_min: int = 50,
    ) -> None:
        super().__init__(profile_probability, window_tuples, alpha, tuples_min)

    @classmethod
    def paper(cls, profile_probability: float = 0.005) -> Self:
        """Return Independent with the settings of the paper's experiments (its table 1), no trials.

        Examples
        --------
        >>> Independent.paper().profile_probability, Independent.paper().on_trial
        (0.005, False)

        """
        policy = cls(profile_probability, window_tuples=1000, alpha=0.9, tuples_min=50)
        policy.on_trial = False
        return policy

    def reset_counts(self) -> None:
        """Start with no drops counted."""
        self._drops = np.zeros(self.filters, dtype=np.int64)

    def count(self, entered: BoolArray, expired: BoolArray) -> None:
        """Update the number of tuples that each filter drops."""
        self._drops += entered.sum(axis=0) - expired.sum(axis=0)

    def learn(self, evidence: Evidence) -> Change | None:
        """Update the drop counts; sort again if a later filter is clearly better."""
        if not self.insert(evidence.tuples):
            return None
        rates = self._drops / evidence.cost_us
        in_order = rates[list(self.order)]
        later_best = np.maximum.accumulate(in_order[::-1])[::-1]
        if not (in_order < self.alpha * later_best).any():
            return None
        return self.change_to(np.argsort(-rates, kind="stable").tolist(), tuples=len(self.window))
