"""The registered policies, and how one is found by name."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from eddyline.errors import InvalidPolicyError
from eddyline.ordering.agreedy import AGreedy
from eddyline.ordering.as_written import AsWritten
from eddyline.ordering.independent import Independent
from eddyline.ordering.local_swaps import LocalSwaps
from eddyline.ordering.lottery import Lottery
from eddyline.ordering.policy import Policy
from eddyline.ordering.sweep import Sweep
from eddyline.ordering.tickets import Tickets

#: Every registered policy by its name. The conformance suite covers all of them.
POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (AsWritten, AGreedy, Sweep, Independent, LocalSwaps, Lottery, Tickets)
}
#: The policy that the name "auto" stands for.
AUTO: type[Policy] = AGreedy


def resolve_policy(policy: object, further_names: Sequence[str] = ()) -> Policy:
    """Return a policy for one router: a new object for a name, a copy of a given object.

    Parameters
    ----------
    policy
        A name ("auto" or one of `POLICIES`) or a `Policy` object.
    further_names
        Names that the caller accepts besides these, for the error message only.

    Raises
    ------
    InvalidPolicyError
        If it is neither.

    Examples
    --------
    >>> resolve_policy("sweep").name
    'sweep'
    >>> resolve_policy("auto").name
    'agreedy'
    >>> own = Lottery(window_batches=4)
    >>> resolve_policy(own).window_batches, resolve_policy(own) is own
    (4, False)
    >>> resolve_policy("fastest")
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: unknown policy 'fastest'; choose one of auto, as_written, \
agreedy, sweep, independent, local_swaps, lottery, tickets, or pass a Policy object

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
        names = ", ".join(["auto", *POLICIES, *further_names])
        raise InvalidPolicyError(
            f"unknown policy {policy!r}; choose one of {names}, or pass a Policy object"
        )
    return POLICIES[policy]()
