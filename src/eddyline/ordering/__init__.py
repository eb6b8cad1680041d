"""Policies that order filters, one to a file, and the registry that finds them by name."""

from __future__ import annotations

import copy

from eddyline.errors import InvalidPolicyError
from eddyline.ordering.agreedy import AGreedy
from eddyline.ordering.as_written import AsWritten
from eddyline.ordering.independent import Independent
from eddyline.ordering.local_swaps import LocalSwaps
from eddyline.ordering.lottery import Lottery
from eddyline.ordering.policy import Change, Evidence, Policy
from eddyline.ordering.sweep import Sweep

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy for policy in (AsWritten, AGreedy, Sweep, Independent, LocalSwaps, Lottery)
}
AUTO = AGreedy


def make_policy(policy: object) -> Policy:
    """Return a policy of its own for one router, from a name or from an example of it.

    Examples
    --------
    >>> make_policy("sweep").name
    'sweep'
    >>> make_policy("auto").name
    'agreedy'
    >>> make_policy("fastest")
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: unknown policy 'fastest'; choose one of auto, as_written, \
agreedy, sweep, independent, local_swaps, lottery, or pass a Policy object

    """
    if isinstance(policy, Policy):
        return copy.deepcopy(policy)
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise InvalidPolicyError(
            f"policy is the class {policy.__name__}; pass an object: {policy.__name__}()"
        )
    if policy == "auto":
        return AUTO()
    if not isinstance(policy, str) or policy not in POLICIES:
        names = ", ".join(["auto", *POLICIES])
        raise InvalidPolicyError(
            f"unknown policy {policy!r}; choose one of {names}, or pass a Policy object"
        )
    return POLICIES[policy]()


__all__ = [
    "POLICIES",
    "AGreedy",
    "AsWritten",
    "Change",
    "Evidence",
    "Independent",
    "LocalSwaps",
    "Lottery",
    "Policy",
    "Sweep",
    "make_policy",
]
