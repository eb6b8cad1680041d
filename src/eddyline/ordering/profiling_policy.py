"""What the policies of the A-Greedy paper share: their parameters and the profile window."""

from __future__ import annotations

import abc

from eddyline.arrays import BoolArray
from eddyline.ordering.policy import Policy
from eddyline.profile import ProfileWindow


class ProfilingPolicy(Policy):
    """Base of the policies that decide on profile tuples.

    The defaults are the paper's, except `tuples_min`, which the paper does not have. Each policy
    has a `paper` method besides, which also leaves out the trials that Eddyline puts changes to.

    Parameters
    ----------
    profile_probability
        Share of the dropped rows that are profiled.
    window_tuples
        Number of newest profile tuples that a decision rests on.
    alpha
        Thrashing avoidance: a later filter must be better by more than a factor of 1/alpha to move
        forward.
    tuples_min
        Smallest number of profile tuples that a decision may rest on.

    References
    ----------
    Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, sections 4.1.1 and
    4.2.3, table 1.

    """

    def __init__(
        self,
        profile_probability: float = 0.01,
        window_tuples: int = 1000,
        alpha: float = 0.9,
        tuples_min: int = 50,
    ) -> None:
        self.check_shares(profile_probability=profile_probability, alpha=alpha)
        self.check_counts(window_tuples=window_tuples)
        self.profile_probability = profile_probability
        self.window_tuples = window_tuples
        self.alpha = alpha
        self.tuples_min = min(tuples_min, window_tuples)


class WindowPolicy(ProfilingPolicy):
    """Base of the policies that keep complete profile tuples in a sliding window.

    A subclass keeps counts over the window. It is told which tuples entered and which expired, so
    that it need not read the whole window after each batch.
    """

    def reset(self) -> None:
        """Start with an empty window."""
        self.window = ProfileWindow(self.filters, self.window_tuples)
        self.reset_counts()

    @abc.abstractmethod
    def reset_counts(self) -> None:
        """Prepare the counts for an empty window."""

    @abc.abstractmethod
    def count(self, entered: BoolArray, expired: BoolArray) -> None:
        """Update the counts with tuples that entered the window and tuples that left it."""

    def insert(self, tuples: BoolArray) -> bool:
        """Insert tuples into the window; return True if it is large enough for a decision."""
        expired = self.window.insert(tuples)
        self.count(tuples, expired)
        return len(self.window) >= self.tuples_min

    def profile(self) -> BoolArray:
        """Return the tuples in the window, oldest first."""
        return self.window.tuples()

    def load_profile(self, tuples: BoolArray) -> None:
        """Replace the tuples in the window with those that another router has collected."""
        self.reset()
        self.insert(tuples)
