"""Sweep: A-Greedy that checks one position at a time, for less overhead and slower reaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from eddyline.arrays import IntArray
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.profiling_policy import ProfilingPolicy


class Sweep(ProfilingPolicy):
    """Checks the filter at one position j against all before it, then goes on to the next j.

    A stage ends when the filter at j turns out to belong further forward, or when enough profile
    tuples have shown that it does not. A profiled row needs at most one extra evaluation (the
    filter at j), and the view is one diagonal and one column instead of a triangle. In a stable
    environment Sweep converges to an order that satisfies A-Greedy's invariant.

    Parameters
    ----------
    profile_probability, alpha, tuples_min
        As for `ProfilingPolicy`.
    stage_tuples
        Profile tuples after which a stage ends without a violation. It takes the place of
        `window_tuples`, since Sweep counts the tuples of the current stage only.

    Examples
    --------
    >>> policy = Sweep(tuples_min=4)
    >>> policy.start(filters=2)
    >>> policy.swept  # the position under test
    1
    >>> tuples = np.array([[False, True]] * 5, dtype=bool)
    >>> policy.learn(Evidence(
    ...     rows=10, order=(0, 1), seen=np.array([10, 10]), passed=np.array([10, 5]),
    ...     cost_us=np.ones(2), tuples=tuples)).after
    (1, 0)

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 5.

    """

    name = "sweep"

    def __init__(
        self,
        profile_probability: float = 0.01,
        stage_tuples: int = 500,
        alpha: float = 0.9,
        tuples_min: int = 50,
    ) -> None:
        self.check_counts(stage_tuples=stage_tuples)
        super().__init__(profile_probability, stage_tuples, alpha, tuples_min)

    @classmethod
    def paper(cls, profile_probability: float = 0.01) -> Self:
        """Return Sweep with the settings of the paper's experiments (its table 1), no trials.

        The paper does not say how many tuples of a stage a move may rest on. Here it is 300, which
        was chosen by results (docs/decisions/0035).

        Examples
        --------
        >>> Sweep.paper().window_tuples, Sweep.paper().on_trial
        (500, False)

        """
        policy = cls(profile_probability, stage_tuples=500, alpha=0.9, tuples_min=300)
        policy.on_trial = False
        return policy

    def reset(self) -> None:
        """Begin a sweep at the second position."""
        self._begin_stage(1)

    def _begin_stage(self, position: int) -> None:
        self.swept = position if position < self.filters else min(1, self.filters - 1)
        self._tuples = 0
        # V[i, i] and V[i, j] of the matrix view, for i up to the swept position j.
        self._diagonal: IntArray = np.zeros(self.filters, dtype=np.int64)
        self._column: IntArray = np.zeros(self.filters, dtype=np.int64)

    def wanted(self, position: int) -> Sequence[int]:
        """Ask for the swept position only."""
        return (self.swept,) if position < self.swept else ()

    def learn(self, evidence: Evidence) -> Change | None:
        """Count; move the swept filter forward if it beats one before it; end stages."""
        if self.filters < 2 or len(evidence.tuples) == 0:
            return None
        by_position = evidence.tuples[:, list(self.order)]
        first_drop = by_position.argmax(axis=1)
        self._diagonal += np.bincount(first_drop, minlength=self.filters)
        dropped_by_swept = first_drop[by_position[:, self.swept]]
        reaches = np.bincount(dropped_by_swept, minlength=self.filters)
        self._column += np.cumsum(reaches[::-1])[::-1]
        self._tuples += len(by_position)
        if self._tuples < self.tuples_min:
            return None
        change = self._move_forward(evidence)
        if change is not None or self._tuples >= self.window_tuples:
            self._begin_stage(self.swept + 1)
        return change

    def decline(self, change: Change) -> None:
        """Go back to the order before, and on to the next position: this one has had its stage."""
        self.order = change.before

    def _move_forward(self, evidence: Evidence) -> Change | None:
        order = list(self.order)
        swept = self.swept
        cost_us = evidence.cost_us[order]
        rate_of_swept = self._column[:swept] / cost_us[swept]
        beaten = self._diagonal[:swept] / cost_us[:swept] < self.alpha * rate_of_swept
        if not beaten.any():
            return None
        target = int(np.argmax(beaten))
        order.insert(target, order.pop(swept))
        return self.change_to(order, position=target, swept=swept, tuples=self._tuples)
