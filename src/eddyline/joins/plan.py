"""The plan of probes: which SteM is probed next, with which columns, for which queries.

A query is a set of *roles*, the streams it joins; a stream that stands twice in FROM plays two. For
each role that new rows may play, a tree of probes extends them role by role until all roles of a
query are filled. Queries share every step that is the same for them, and a query over fewer roles
is answered on the way of one over more.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eddyline.operators.bitmaps import words_for


class Role(NamedTuple):
    """A part that rows of a stream play in a query.

    Parameters
    ----------
    stream
        Number of the stream.
    occurrence
        0, and 1, 2... if the stream stands several times in FROM.

    """

    stream: int
    occurrence: int = 0


class KeyRef(NamedTuple):
    """A key column of the stream in some role."""

    role: Role
    column: int


@dataclass(frozen=True)
class JoinQuery:
    """What the join plane knows of a query.

    Parameters
    ----------
    slot
        Its bit in all bitmaps.
    roles
        The streams that it joins, in the order of `Role`.
    equalities
        Sets of key columns that are equal; closed under transitivity. No two columns of one role
        are in the same set: that they are equal is a filter on the stream.
    windows_us
        For each role, how much older than the youngest row of a result its row may be, exclusive;
        None if time does not limit it.

    """

    slot: int
    roles: tuple[Role, ...]
    equalities: tuple[frozenset[KeyRef], ...]
    windows_us: Mapping[Role, int | None]

    def bindings(self, role: Role, bound: Sequence[Role]) -> tuple[Binding, ...]:
        """Return which key columns of a role are known once other roles are filled."""
        found = []
        for equal in self.equalities:
            sources = [ref for ref in sorted(equal) if ref.role in bound]
            if sources:
                source = min(sources, key=lambda ref: bound.index(ref.role))
                found += [Binding(ref.column, source) for ref in sorted(equal) if ref.role == role]
        return tuple(sorted(set(found)))


class Binding(NamedTuple):
    """A key column of the probed stream, and the key column that gives its value."""

    column: int
    source: KeyRef


class Step(NamedTuple):
    """A probe: the role it fills, and the values it searches for."""

    role: Role
    bindings: tuple[Binding, ...]

    @property
    def pattern(self) -> tuple[int, ...]:
        """The access pattern: the searched columns, ascending."""
        return tuple(dict.fromkeys(binding.column for binding in self.bindings))


@dataclass
class ProbeNode:
    """A node of the tree of probes: tuples whose roles on the path to it are filled.

    Parameters
    ----------
    step
        The probe that leads here; for the root, the role of the new rows and no bindings.
    queries
        Queries that pass through here.
    complete
        Queries whose roles are all filled here.
    children
        Further probes.

    """

    step: Step
    queries: list[JoinQuery] = field(default_factory=list)
    complete: list[JoinQuery] = field(default_factory=list)
    children: dict[Step, ProbeNode] = field(default_factory=dict)

    @property
    def window_us(self) -> int | None:
        """Largest window of the role among the queries that pass; None if one has none."""
        windows = [query.windows_us[self.step.role] for query in self.queries]
        limits = [window for window in windows if window is not None]
        return max(limits) if len(limits) == len(windows) else None

    def needed_below(self) -> set[KeyRef]:
        """Return the key columns that steps below search with."""
        needed = {b.source for child in self.children.values() for b in child.step.bindings}
        return needed.union(*[child.needed_below() for child in self.children.values()])

    def add(self, query: JoinQuery, steps: Sequence[Step]) -> None:
        """Let a query pass through here and on along its steps."""
        self.queries.append(query)
        if not steps:
            self.complete.append(query)
            return
        child = self.children.setdefault(steps[0], ProbeNode(steps[0]))
        child.add(query, steps[1:])


def plan_steps(query: JoinQuery, origin: Role, order: Sequence[Role]) -> list[Step]:
    """Return the steps of a query for new rows in one role and an order of the other roles.

    Examples
    --------
    >>> a, b, c = Role(0), Role(1), Role(2)
    >>> key = frozenset([KeyRef(a, 0), KeyRef(b, 0), KeyRef(c, 0)])
    >>> query = JoinQuery(0, (a, b, c), (key,), dict.fromkeys([a, b, c], 10))
    >>> [step.pattern for step in plan_steps(query, a, [c, b])]
    [(0,), (0,)]

    """
    bound, steps = [origin], []
    for role in order:
        steps.append(Step(role, query.bindings(role, bound)))
        bound.append(role)
    return steps


def plan_probes(
    queries: Sequence[JoinQuery], orders: Mapping[tuple[int, Role], Sequence[Role]]
) -> dict[Role, ProbeNode]:
    """Return a tree of probes for each origin that an order is given for.

    Parameters
    ----------
    queries
        All queries of a space.
    orders
        For a query, by slot, and one of its roles as origin: the order of the other roles.

    """
    roots: dict[Role, ProbeNode] = {}
    by_slot = {query.slot: query for query in queries}
    for (slot, origin), order in orders.items():
        root = roots.setdefault(origin, ProbeNode(Step(origin, ())))
        root.add(by_slot[slot], plan_steps(by_slot[slot], origin, order))
    return roots


def default_order(query: JoinQuery, origin: Role) -> list[Role]:
    """Return an order without cartesian products, if there is one: most bound columns first."""
    bound, left = [origin], [role for role in query.roles if role != origin]
    while left:
        best = max(left, key=lambda role: (len(query.bindings(role, bound)), -left.index(role)))
        left.remove(best)
        bound.append(best)
    return bound[1:]


def words_of(queries: Sequence[JoinQuery]) -> int:
    """Return the number of words in the bitmaps of these queries."""
    return words_for(int(np.max([query.slot for query in queries], initial=-1)) + 1)
