"""The conformance suite of policies: what the router relies on, as functions that check it.

Every registered policy is checked in the tests of the project. A policy of your own is checked in
yours, or in a notebook, with `check_policy`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.ordering import Evidence, Policy

#: Returns a new policy; a class whose parameters all have defaults will do.
PolicyFactory = Callable[[], Policy]


def check_policy(make: PolicyFactory) -> None:
    """Run all checks; the first that fails raises an AssertionError that says what is wrong.

    Parameters
    ----------
    make
        Returns a new policy: its class, or a function that sets parameters.

    Examples
    --------
    >>> from eddyline.ordering import AGreedy
    >>> check_policy(AGreedy)
    >>> class Forgetful(Policy):
    ...     def learn(self, evidence):
    ...         return self.change_to(self.order[1:])
    >>> check_policy(Forgetful)
    Traceback (most recent call last):
    ...
    AssertionError: the order (1, 2, 3, 4) is not a permutation of the 5 filters

    """
    for check in POLICY_CHECKS:
        check(make)


def make_evidence(policy: Policy, answers: BoolArray, rng: np.random.Generator) -> Evidence:
    """Return what a router would tell the policy about these rows.

    Parameters
    ----------
    policy
        Gives the order, the share of rows to profile and the filters to evaluate on them.
    answers
        A line for each row and a column for each filter: True if the row passes.
    rng
        Chooses the rows to profile.

    """
    filters = answers.shape[1]
    order = policy.order
    seen = np.zeros(filters, dtype=np.int64)
    passed = np.zeros(filters, dtype=np.int64)
    alive = np.ones(len(answers), dtype=bool)
    dropped_at = np.full(len(answers), filters)
    for position, filter_ in enumerate(order):
        seen[filter_] = alive.sum()
        dropped_at[alive & ~answers[:, filter_]] = position
        alive &= answers[:, filter_]
        passed[filter_] = alive.sum()
    chosen = (rng.random(len(answers)) < policy.profile_probability) & (dropped_at < filters)
    tuples = np.zeros((int(chosen.sum()), filters), dtype=bool)
    for row, (index, position) in enumerate(
        zip(np.flatnonzero(chosen), dropped_at[chosen], strict=True)
    ):
        tuples[row, order[position]] = True
        for later in policy.wanted(int(position)):
            tuples[row, order[later]] = not answers[index, order[later]]
    return Evidence(len(answers), order, seen, passed, np.ones(filters), tuples)


def check_orders_and_changes(make: PolicyFactory) -> None:
    """Check that the order is always a permutation and that every change of it is reported."""
    rng = np.random.default_rng(1)
    policy = make()
    policy.start(5, seed=0)
    reported = policy.order
    for _ in range(60):
        before = policy.order
        answers = rng.random((500, 5)) < rng.random(5)
        change = policy.learn(make_evidence(policy, answers, rng))
        _require(
            sorted(policy.order) == list(range(5)),
            f"the order {policy.order} is not a permutation of the 5 filters",
        )
        if change is not None:
            _require(
                (change.before, change.after) == (reported, policy.order),
                f"the change {change} does not lead from {reported} to {policy.order}",
            )
            _require(change.before != change.after, f"the change {change} changes nothing")
            reported = change.after
        elif not policy.draws_orders:
            _require(
                policy.order == before,
                f"the order changed from {before} to {policy.order}, but `learn` returned None "
                f"and `draws_orders` is False",
            )
    _require(
        not (policy.draws_orders and policy.on_trial),
        "`draws_orders` and `on_trial` are both True; a drawn order cannot be on trial",
    )


def check_small_inputs(make: PolicyFactory) -> None:
    """Check that a single filter and a batch without rows are harmless."""
    policy = make()
    policy.start(1, seed=0)
    nothing = np.zeros(1, dtype=np.int64)
    tuples = np.zeros((0, 1), dtype=bool)
    policy.learn(Evidence(0, (0,), nothing, nothing, np.ones(1), tuples))
    _require(policy.order == (0,), f"the order of one filter is {policy.order}")


def check_wanted_positions(make: PolicyFactory) -> None:
    """Check that only positions behind that of the drop are asked for."""
    policy = make()
    policy.start(6, seed=0)
    for position in range(6):
        wanted = list(policy.wanted(position))
        _require(
            all(position < later < 6 for later in wanted),
            f"`wanted({position})` of 6 filters is {wanted}; it may name later positions only",
        )


def check_pickling(make: PolicyFactory) -> None:
    """Check that a policy sent to another process decides as it would have here."""
    rng = np.random.default_rng(2)
    policy = make()
    policy.start(4, seed=0)
    for _ in range(20):
        policy.learn(make_evidence(policy, rng.random((300, 4)) < [0.9, 0.6, 0.4, 0.1], rng))
    # The state alone: pickle cannot import a class that was defined in a notebook or a test.
    sent = object.__new__(type(policy))
    sent.__dict__.update(pickle.loads(pickle.dumps(policy.__dict__)))
    for _ in range(20):
        evidence = make_evidence(policy, rng.random((300, 4)) < [0.1, 0.4, 0.6, 0.9], rng)
        policy.learn(evidence)
        sent.learn(evidence)
        _require(sent.order == policy.order, "after pickling it decides on another order")


def check_hand_over(make: PolicyFactory) -> None:
    """Check that a policy can be told to forget, and be given an order and a profile."""
    rng = np.random.default_rng(3)
    policy = make()
    policy.start(4, seed=0)
    for _ in range(5):
        policy.learn(make_evidence(policy, rng.random((300, 4)) < 0.5, rng))
    profile = policy.profile()
    _require(
        profile.dtype == bool and profile.shape[1:] == (4,),
        f"`profile()` must have 4 boolean columns, not {profile.dtype} of shape {profile.shape}",
    )
    order = policy.order
    policy.forget()
    _require(policy.order == order, "`forget` changed the order")
    _require(len(policy.profile()) == 0, "`forget` left tuples in the profile")
    policy.adopt([3, 2, 1, 0])
    _require(policy.order == (3, 2, 1, 0), f"`adopt` left the order at {policy.order}")
    policy.load_profile(profile)
    _require(
        np.array_equal(policy.profile(), profile),
        "`profile()` is not what `load_profile` was given",
    )
    policy.learn(make_evidence(policy, rng.random((300, 4)) < 0.5, rng))


def check_same_seed(make: PolicyFactory) -> None:
    """Check that the same seed and the same rows give the same orders."""

    def orders() -> list[tuple[int, ...]]:
        rng = np.random.default_rng(3)
        policy = make()
        policy.start(5, seed=7)
        used = []
        for _ in range(30):
            answers = rng.random((400, 5)) < [0.9, 0.7, 0.5, 0.3, 0.1]
            policy.learn(make_evidence(policy, answers, rng))
            used.append(policy.order)
        return used

    _require(orders() == orders(), "two runs with the same seed took different orders")


def check_start(make: PolicyFactory) -> None:
    """Check that a start order is used, and refused if it is not a permutation."""
    policy = make()
    policy.start(3, order=[2, 0, 1])
    _require(policy.order == (2, 0, 1), f"`start` left the order at {policy.order}")
    try:
        policy.start(3, order=[0, 0, 1])
    except ValueError:
        return
    raise AssertionError("`start` accepted [0, 0, 1] as an order of 3 filters")


#: The conformance suite.
POLICY_CHECKS: tuple[Callable[[PolicyFactory], None], ...] = (
    check_orders_and_changes,
    check_small_inputs,
    check_wanted_positions,
    check_start,
    check_same_seed,
    check_pickling,
    check_hand_over,
)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
