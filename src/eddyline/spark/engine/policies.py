"""Which policies an engine accepts."""

from __future__ import annotations

from eddyline.ordering import Policy, Tickets, resolve_policy

DEFAULT_POLICY = Tickets.name


def eddy_policy(policy: object) -> Policy:
    """Return a policy for eddies, from its name or from an example of it.

    Eddies take policies that order operators; "auto" stands for tickets. Policies that classify
    rows ("content", "mesh") are for `el.where`.

    Examples
    --------
    >>> eddy_policy("auto").name, eddy_policy("agreedy").name
    ('tickets', 'agreedy')
    >>> eddy_policy("mesh")
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: unknown policy 'mesh'; choose one of auto, as_written, \
agreedy, sweep, independent, local_swaps, lottery, tickets, or pass a Policy object

    """
    return Tickets() if policy == "auto" else resolve_policy(policy)
