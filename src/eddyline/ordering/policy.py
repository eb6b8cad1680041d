"""The interface between the router and whatever decides the order of the filters.

A policy never sees rows, columns or Spark: it is told what a batch showed and answers with an
order. The router reads `order` before each batch and calls `learn` after it. How to write a policy
of your own is described in `docs/adding-a-policy.md`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray


@dataclass(slots=True)
class Evidence:
    """What one batch showed. Arrays are indexed by filter, not by position.

    Parameters
    ----------
    rows
        Rows of the batch.
    order
        The order that the batch was evaluated in.
    seen, passed
        Rows that reached each filter, and rows that it let through.
    cost_us
        What each filter costs, in microseconds a row, over a recent window; always positive.
    tuples
        Profile tuples: for rows that were dropped and chosen for profiling, which filters drop
        them. A filter that the policy did not ask for (`Policy.wanted`) reads False.

    """

    rows: int
    order: tuple[int, ...]
    seen: IntArray
    passed: IntArray
    cost_us: FloatArray
    tuples: BoolArray


@dataclass(frozen=True, slots=True)
class Change:
    """A new order, and the numbers that it was decided on."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)


class Policy(abc.ABC):
    """Decides in which order filters are evaluated. Subclass it to bring your own.

    Only `learn` must be written. `profile_probability` says how many of the dropped rows the
    router should profile, and `wanted` which further filters to evaluate on such a row.

    Examples
    --------
    A policy that puts the filter first that dropped the largest share of what it saw:

    >>> class MostSelective(Policy):
    ...     name = "most_selective"
    ...     def learn(self, evidence):
    ...         drop_rate = 1 - evidence.passed / np.maximum(evidence.seen, 1)
    ...         return self.change_to(np.argsort(-drop_rate, kind="stable").tolist())
    >>> policy = MostSelective()
    >>> policy.start(filters=2)
    >>> evidence = Evidence(
    ...     rows=10, order=(0, 1), seen=np.array([10, 9]), passed=np.array([9, 1]),
    ...     cost_us=np.ones(2), tuples=np.zeros((0, 2), dtype=bool))
    >>> policy.learn(evidence).after, policy.order
    ((1, 0), (1, 0))

    """

    #: The name in reports.
    name: ClassVar[str] = "own policy"
    #: Share of the dropped rows to profile, 0 for none.
    profile_probability: float = 0.0
    #: Whether the policy ever changes the order.
    learns: bool = True
    #: Whether the router may undo a change that turns out to cost more than what it replaced.
    on_trial: bool = True
    #: Whether the router should profile at once when drop rates change, whatever the probability.
    watches_drift: bool = False
    #: Whether the order of a batch may be drawn at random. Such an order holds for one batch: it
    #: is not reported as a `Change` and never on trial.
    draws_orders: bool = False

    filters: int = 0
    order: tuple[int, ...] = ()

    def start(
        self, filters: int, order: Sequence[int] | None = None, seed: int | None = None
    ) -> None:
        """Begin with the given order, or with the filters as written."""
        self.filters = filters
        self.order = tuple(range(filters)) if order is None else tuple(order)
        if sorted(self.order) != list(range(filters)):
            raise ValueError(f"{list(self.order)} is not a permutation of the {filters} filters")
        self.rng = np.random.default_rng(seed)
        self.reset()

    @staticmethod
    def check_shares(**shares: float) -> None:
        """Refuse parameters that must be above 0 and at most 1."""
        for name, share in shares.items():
            if not 0 < share <= 1:
                raise ValueError(f"{name} must be in (0, 1], not {share}")

    @staticmethod
    def check_counts(**counts: int) -> None:
        """Refuse parameters that must be at least 1."""
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")

    def reset(self) -> None:  # noqa: B027  an optional hook, not a forgotten abstract method
        """Prepare whatever the policy keeps; called by `start`, `forget` and `adopt`."""

    def wanted(self, position: int) -> Sequence[int]:
        """Return the later positions to evaluate on a profiled row dropped at `position`."""
        return range(position + 1, self.filters) if self.profile_probability > 0 else ()

    @abc.abstractmethod
    def learn(self, evidence: Evidence) -> Change | None:
        """Take a batch into account; return the change if the order is now another.

        A policy that asks for profile tuples is called only when there are new ones.
        """

    def forget(self) -> None:
        """Discard what was learnt, because the rows have changed; the order stays."""
        self.reset()

    def adopt(self, order: Sequence[int]) -> None:
        """Continue with an order that was decided elsewhere."""
        self.order = tuple(order)
        self.reset()

    def decline(self, change: Change) -> None:
        """Go back to the order before a change that is not made, and keep what was learnt.

        The router declines an order that was reverted a short while ago.
        """
        tuples = self.profile()
        self.adopt(change.before)
        self.load_profile(tuples)

    def profile(self) -> BoolArray:
        """Return the profile tuples this policy decides on, for other routers to start from."""
        return np.zeros((0, self.filters), dtype=bool)

    def load_profile(self, tuples: BoolArray) -> None:  # noqa: B027  optional, as above
        """Start from profile tuples that another router has collected."""

    def change_to(self, order: Sequence[int], **numbers: Any) -> Change | None:
        """Set the order; return the change, or None if it is the order in use."""
        after = tuple(int(filter_) for filter_ in order)
        if after == self.order:
            return None
        change = Change(self.order, after, numbers)
        self.order = after
        return change
