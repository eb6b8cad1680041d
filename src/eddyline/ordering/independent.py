"""Independent: orders filters by their own drop rate, as if none of them were correlated."""

from __future__ import annotations

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.ordering.policy import Change, Evidence, Policy
from eddyline.profile import ProfileWindow


class Independent(Policy):
    """Keeps the filters sorted by unconditional drop rate per unit time.

    Optimal for independent filters. With correlated ones it can end O(n) times worse than
    A-Greedy (example 6 of the paper), because it puts filters one after the other that drop the
    same rows. Only the first row of A-Greedy's matrix view is kept.

    Parameters
    ----------
    profile_probability
        Share of the dropped rows that are profiled; lower than A-Greedy's, since no conditional
        rates are needed.
    window_tuples
        Profile tuples in the window.
    alpha
        Thrashing avoidance: two neighbours change places only if the rates differ by more.
    tuples_min
        Smallest window that a decision may rest on.

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
        self.check_shares(profile_probability=profile_probability, alpha=alpha)
        self.profile_probability = profile_probability
        self.window_tuples = window_tuples
        self.alpha = alpha
        self.tuples_min = min(tuples_min, window_tuples)

    def reset(self) -> None:
        """Start with an empty window."""
        self.window = ProfileWindow(self.filters, self.window_tuples)
        self._drops = np.zeros(self.filters, dtype=np.int64)

    def learn(self, evidence: Evidence) -> Change | None:
        """Update the drop counts; sort again if two neighbours are clearly the wrong way round."""
        expired = self.window.insert(evidence.tuples)
        self._drops += evidence.tuples.sum(axis=0) - expired.sum(axis=0)
        if len(self.window) < self.tuples_min:
            return None
        rates = self._drops / evidence.cost_us
        in_order = rates[list(self.order)]
        later_best = np.maximum.accumulate(in_order[::-1])[::-1]
        if not (in_order < self.alpha * later_best).any():
            return None
        return self.change_to(np.argsort(-rates, kind="stable").tolist(), tuples=len(self.window))

    def evidence(self) -> BoolArray:
        """Return the profile window."""
        return self.window.tuples()

    def teach(self, tuples: BoolArray) -> None:
        """Fill the window with tuples from elsewhere."""
        self.reset()
        self.window.insert(tuples)
        self._drops = self.window.tuples().sum(axis=0)
