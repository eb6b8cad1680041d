"""LocalSwaps: compares neighbours only, for constant overhead and local optima."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Self

import numpy as np

from eddyline.arrays import IntArray
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.profiling_policy import ProfilingPolicy


class LocalSwaps(ProfilingPolicy):
    """Swaps two neighbours in the order when that would pay.

    A profiled row dropped at position i needs one extra evaluation, of the filter at i + 1, and
    two diagonals of the matrix view are enough. It can get stuck where no single swap helps
    (example 7 of the paper), O(n) times worse than A-Greedy.

    Parameters
    ----------
    profile_probability, window_tuples, alpha, tuples_min
        As for `ProfilingPolicy`. What was seen before a swap says nothing about the new
        neighbours, so the window is emptied after each swap.

    Examples
    --------
    >>> policy = LocalSwaps(tuples_min=4)
    >>> policy.start(filters=2)
    >>> list(policy.wanted(0)), list(policy.wanted(1))
    ([1], [])
    >>> tuples = np.array([[False, True]] * 5, dtype=bool)
    >>> policy.learn(Evidence(
    ...     rows=10, order=(0, 1), seen=np.array([10, 10]), passed=np.array([10, 5]),
    ...     cost_us=np.ones(2), tuples=tuples)).after
    (1, 0)

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 7.

    """

    name = "local_swaps"

    @classmethod
    def paper(cls, profile_probability: float = 0.01) -> Self:
        """Return LocalSwaps with the settings of the paper's experiments (its table 1), no trials.

        Examples
        --------
        >>> LocalSwaps.paper().window_tuples, LocalSwaps.paper().on_trial
        (1000, False)

        """
        policy = cls(profile_probability, window_tuples=1000, alpha=0.9, tuples_min=50)
        policy.on_trial = False
        return policy

    def reset(self) -> None:
        """Start with an empty window."""
        # V[i, i] and V[i, i + 1] of the matrix view, and the counts that have to expire again.
        self._diagonal: IntArray = np.zeros(self.filters, dtype=np.int64)
        self._beside: IntArray = np.zeros(self.filters, dtype=np.int64)
        self._batches: deque[tuple[int, IntArray, IntArray]] = deque()
        self._tuples = 0
        self._before_swap = self._diagonal, self._beside, self._batches, self._tuples

    def wanted(self, position: int) -> Sequence[int]:
        """Ask for the next position only."""
        return (position + 1,) if position + 1 < self.filters else ()

    def learn(self, evidence: Evidence) -> Change | None:
        """Update the two diagonals; swap the first neighbours of which the later is better."""
        if self.filters < 2 or len(evidence.tuples) == 0:
            return None
        self._count(evidence)
        if self._tuples < self.tuples_min:
            return None
        order = list(self.order)
        cost_us = evidence.cost_us[order]
        rate = self._diagonal[:-1] / cost_us[:-1]
        beaten = rate < self.alpha * self._beside[:-1] / cost_us[1:]
        if not beaten.any():
            return None
        position = int(np.argmax(beaten))
        order[position], order[position + 1] = order[position + 1], order[position]
        change = self.change_to(order, position=position, tuples=self._tuples)
        counts = self._diagonal, self._beside, self._batches, self._tuples
        self.reset()
        self._before_swap = counts
        return change

    def decline(self, change: Change) -> None:
        """Swap back; what was seen of the old neighbours counts again."""
        self.order = change.before
        self._diagonal, self._beside, self._batches, self._tuples = self._before_swap

    def _count(self, evidence: Evidence) -> None:
        by_position = evidence.tuples[:, list(self.order)]
        first_drop = by_position.argmax(axis=1)
        diagonal = np.bincount(first_drop, minlength=self.filters)
        following = np.minimum(first_drop + 1, self.filters - 1)
        dropped_by_both = by_position[np.arange(len(by_position)), following]
        beside = np.bincount(first_drop[dropped_by_both], minlength=self.filters)
        beside[:-1] += diagonal[1:]
        self._batches.append((len(by_position), diagonal, beside))
        self._tuples += len(by_position)
        self._diagonal += diagonal
        self._beside += beside
        while self._tuples - self._batches[0][0] >= self.window_tuples:
            tuples, diagonal, beside = self._batches.popleft()
            self._tuples -= tuples
            self._diagonal -= diagonal
            self._beside -= beside
