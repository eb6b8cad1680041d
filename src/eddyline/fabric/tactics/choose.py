"""From a policy, by name or as an object, to the tactic that routes rows by it."""

from __future__ import annotations

from collections.abc import Mapping

from eddyline.content import ContentOptions
from eddyline.fabric.tactics.content import ContentTactic
from eddyline.fabric.tactics.mesh import MeshTactic
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.fabric.tactics.tactic import SegmentContext, Tactic
from eddyline.mesh import MeshOptions
from eddyline.ordering import Policy, resolve_policy

#: A name, a policy that orders filters, or options of a tactic that finds classes of rows.
RoutingPolicy = str | Policy | ContentOptions | MeshOptions

#: Names of the policies that find classes of rows, besides those that order filters.
CLASS_POLICIES = ("content", "mesh")


def check_policy(policy: object) -> None:
    """Refuse what is not a policy.

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
    """Whether the policy looks at attributes of rows."""
    return isinstance(policy, ContentOptions | MeshOptions) or policy in ("auto", *CLASS_POLICIES)


def is_content(policy: object) -> bool:
    """Whether the policy routes each operator's rows by an attribute.

    Examples
    --------
    >>> is_content("content"), is_content(ContentOptions()), is_content("auto")
    (True, True, False)

    """
    return policy == "content" or isinstance(policy, ContentOptions)


def mesh_options(policy: object) -> MeshOptions | None:
    """Return the options of a policy that wants a mesh from the start; None for any other.

    Examples
    --------
    >>> mesh_options("mesh") == MeshOptions(), mesh_options("auto") is None
    (True, True)

    """
    if isinstance(policy, MeshOptions):
        return policy
    return MeshOptions() if policy == "mesh" else None


def policy_name(policy: RoutingPolicy) -> str:
    """Return the name of a policy, for reports."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Policy):
        return policy.name
    return "content" if isinstance(policy, ContentOptions) else "mesh"


def make_tactic(
    policy: RoutingPolicy,
    context: SegmentContext,
    attributes: Mapping[str, int],
    seeds: tuple[int, int],
) -> Tactic:
    """Return the tactic of a segment.

    Without attributes, or with a single operator, a policy that finds classes is one adaptive
    order.

    Parameters
    ----------
    policy
        Name, object or options.
    context
        Shared with the driver of the segment.
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    seeds
        Of the ordering policy, and of class searches.

    """
    check_policy(policy)
    can_classify = bool(attributes) and len(context.array) > 1
    if can_classify and is_content(policy):
        context.ledger.budget.take_advance()  # its first rows are evaluated by all operators
        options = policy if isinstance(policy, ContentOptions) else ContentOptions()
        return ContentTactic(context, attributes, options)
    ordering = resolve_policy("auto" if finds_classes(policy) else policy)
    ordering.start(len(context.array), seed=seeds[0])
    if can_classify and finds_classes(policy):
        options_of_search = mesh_options(policy) or MeshOptions()
        return MeshTactic(context, ordering, attributes, options_of_search, seeds[1])
    return SingleOrder(context, ordering)
