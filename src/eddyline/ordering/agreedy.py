"""A-Greedy: one good order for correlated filters, kept good while the data drifts."""

from __future__ import annotations

from typing import Self

from eddyline.arrays import BoolArray
from eddyline.ordering.matrix_view import MatrixView
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.profiling_policy import WindowPolicy


class AGreedy(WindowPolicy):
    """Keeps the order that Static Greedy would choose for the rows of the recent past.

    Dropped rows are profiled with a small probability: all filters are evaluated on them. A
    sliding window of these profile tuples gives every conditional drop rate that is needed, a
    matrix view over it shows a violation of the Greedy Invariant as soon as there is one, and
    the correction re-reads only the positions that may change. For the tuples of the window the
    order is within 4 / alpha times the optimum, and usually close to it.

    Parameters
    ----------
    profile_probability, window_tuples, alpha, tuples_min
        As for `ProfilingPolicy`; the defaults are Eddyline's own.
    gain_min
        Smallest gain, as a share of the cost of the order, that a change must promise. It keeps
        filters that are equally good from changing places again and again. With 0, every
        violation is corrected, as in the paper.
    watches_drift
        Profile at once when the drop rates along the order change, so that a small profile
        probability does not mean a slow reaction.
    prior_drops
        Tuples that every filter is taken to drop besides those in the window. It keeps a cheap
        filter from ending up behind an expensive one because it dropped none of few tuples. With
        0, rates are those of the window, as in the paper.
    prior_tuples
        Tuples besides those in the window on which filters are taken to be independent. What few
        tuples reach a late position says little about the filters there; what each filter drops of
        all tuples says more. With 0, as in the paper, only the window counts.

    Examples
    --------
    Filter 1 drops what filter 0 lets through, filter 2 drops nothing:

    >>> import numpy as np
    >>> policy = AGreedy(tuples_min=4)
    >>> policy.start(filters=3, order=[2, 0, 1])
    >>> tuples = np.array([[1, 0, 0]] * 6 + [[0, 1, 0]] * 4, dtype=bool)
    >>> change = policy.learn(Evidence(
    ...     rows=100, order=(2, 0, 1), seen=np.array([100, 40, 100]),
    ...     passed=np.array([40, 0, 100]), cost_us=np.ones(3), tuples=tuples))
    >>> change.after
    (0, 1, 2)

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 4.

    """

    name = "agreedy"

    def __init__(
        self,
        profile_probability: float = 0.02,
        window_tuples: int = 500,
        alpha: float = 0.95,
        tuples_min: int = 24,
        gain_min: float = 0.01,
        watches_drift: bool = True,
        prior_drops: float = 1.0,
        prior_tuples: float = 20.0,
    ) -> None:
        super().__init__(profile_probability, window_tuples, alpha, tuples_min)
        self.gain_min = gain_min
        self.watches_drift = watches_drift
        self.prior_drops = prior_drops
        self.prior_tuples = prior_tuples

    @classmethod
    def paper(cls, profile_probability: float = 0.01) -> Self:
        """Return A-Greedy with the settings of the paper's experiments (its table 1), no trials.

        Examples
        --------
        >>> AGreedy.paper().window_tuples
        1000

        """
        policy = cls(
            profile_probability,
            1000,
            0.9,
            50,
            gain_min=0.0,
            watches_drift=False,
            prior_drops=0.0,
            prior_tuples=0.0,
        )
        policy.on_trial = False
        return policy

    def reset_counts(self) -> None:
        """Start with an empty matrix view."""
        self.view = MatrixView(self.order, self.prior_drops, self.prior_tuples)

    def count(self, entered: BoolArray, expired: BoolArray) -> None:
        """Update the matrix view."""
        self.view.insert(entered)
        self.view.delete(expired)

    def learn(self, evidence: Evidence) -> Change | None:
        """Update the window and the view; correct the order where the invariant is violated."""
        if not self.insert(evidence.tuples):
            return None
        position = self.view.violation(evidence.cost_us, self.alpha)
        if position is None:
            return None
        tuples = self.window.tuples()
        corrected = self.view.copy()
        scans = corrected.restore(tuples, evidence.cost_us, self.alpha)
        cost_before_us = self.view.expected_cost_us(evidence.cost_us)
        cost_after_us = corrected.expected_cost_us(evidence.cost_us)
        gain_us = cost_before_us - cost_after_us
        if self.gain_min > 0 and gain_us < self.gain_min * cost_before_us:
            return None
        self.view = corrected
        return self.change_to(
            corrected.order,
            position=position,
            scans=scans,
            tuples=len(tuples),
            cost_before_us=cost_before_us,
            cost_after_us=cost_after_us,
        )
