"""Which policies an engine accepts."""

from __future__ import annotations

from eddyline.errors import InvalidPolicyError
from eddyline.ordering import POLICIES, Policy, make_policy
from eddyline.ordering.tickets import Tickets

DEFAULT_POLICY = Tickets.name


def eddy_policy(policy: object) -> Policy:
    """Return a policy for eddies, from its name or from an example of it.

    Eddies take policies that order operators. Policies that classify rows ("content", "mesh") are
    for `el.where`.

    Examples
    --------
    >>> eddy_policy("tickets").name, eddy_policy("agreedy").name
    ('tickets', 'agreedy')
    >>> eddy_policy("mesh")
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: unknown policy 'mesh' for an engine; choose one of \
tickets, as_written, agreedy, sweep, independent, local_swaps, lottery, or pass a Policy object

    """
    if policy == Tickets.name:
        return Tickets()
    if isinstance(policy, Policy | type) or (isinstance(policy, str) and policy in POLICIES):
        return make_policy(policy)
    names = ", ".join([Tickets.name, *POLICIES])
    raise InvalidPolicyError(
        f"unknown policy {policy!r} for an engine; choose one of {names}, or pass a Policy object"
    )
