"""From a policy, by name or as an object, to the segment that routes rows by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.content import ContentOptions
from eddyline.fabric.segment import Segment, Write
from eddyline.fabric.tactics.content import ByContent
from eddyline.fabric.tactics.mesh import ByMesh
from eddyline.fabric.tactics.single_order import OneOrder
from eddyline.mesh import MeshOptions
from eddyline.operators import Operator
from eddyline.ordering import Policy, resolve_policy
from eddyline.profile import Budget

#: A name, a policy that orders filters, or options of a policy that finds classes of rows.
RoutingPolicy = str | Policy | ContentOptions | MeshOptions

#: Names of the policies that find classes of rows, besides those that order filters.
CLASS_POLICIES = ("content", "mesh")


def check_policy(policy: object) -> None:
    """Refuse what is no policy.

    Examples
    --------
    >>> check_policy("mesh")
    >>> check_policy("fastest")
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: unknown policy 'fastest'; choose one of auto, as_written, \
agreedy, sweep, independent, local_swaps, lottery, tickets, content, mesh, or pass a Policy object

    """
    if not finds_classes(policy):
        resolve_policy(policy, CLASS_POLICIES)


def finds_classes(policy: object) -> bool:
    """Say whether the policy looks at attributes of rows."""
    return isinstance(policy, ContentOptions | MeshOptions) or policy in ("auto", *CLASS_POLICIES)


def policy_name(policy: RoutingPolicy) -> str:
    """Return how reports call a policy."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Policy):
        return policy.name
    return "content" if isinstance(policy, ContentOptions) else "mesh"


def make_segment(
    policy: RoutingPolicy,
    operators: Sequence[Operator],
    first: int,
    budget: Budget,
    write: Write,
    seeds: tuple[int, int],
    costs_us: Sequence[float] | None,
    attributes: Mapping[str, int],
) -> Segment:
    """Return the segment for some operators.

    Where there is nothing to tell rows apart by, or only one operator, policies that find classes
    are one adaptive order.
    """
    check_policy(policy)
    can_classify = bool(attributes) and len(operators) > 1
    if can_classify and (policy == "content" or isinstance(policy, ContentOptions)):
        options = policy if isinstance(policy, ContentOptions) else ContentOptions()
        return ByContent(operators, first, budget, write, seeds[1], costs_us, attributes, options)
    ordering = resolve_policy("auto" if finds_classes(policy) else policy)
    ordering.start(len(operators), seed=seeds[0])
    if can_classify and finds_classes(policy):
        mesh_options = policy if isinstance(policy, MeshOptions) else MeshOptions()
        return ByMesh(
            operators,
            first,
            ordering,
            budget,
            write,
            seeds[1],
            costs_us,
            attributes,
            mesh_options,
        )
    return OneOrder(operators, first, ordering, budget, write, seeds[1], costs_us)
