"""Join trees: an acyclic join seen from one of its streams.

The root is the stream that new rows arrive on. Every other role hangs below one role that has all
the key columns which it shares with the tree so far. Such a tree exists from every root exactly if
the join is acyclic after equalities were closed under transitivity; a clique on one key is a star.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eddyline.joins.plan import Binding, JoinQuery, Role, Step

#: Steps from the root to a role: what identifies a node across queries.
Path = tuple[Step, ...]


@dataclass
class Node:
    """A role in the trees of some queries.

    Parameters
    ----------
    path
        Steps from the root to it; the last one fills its role.
    parent
        Number of the node that it is probed from; -1 for the root.
    queries
        Queries whose trees have it.

    """

    path: Path
    parent: int
    queries: list[JoinQuery] = field(default_factory=list)

    @property
    def step(self) -> Step:
        """The probe that fills its role."""
        return self.path[-1]

    @property
    def role(self) -> Role:
        """The role that it fills."""
        return self.step.role

    @property
    def window_us(self) -> int | None:
        """Largest window of the role among the queries; None if one has none."""
        return largest_window(self.queries, self.role)

    @property
    def window_rows(self) -> int | None:
        """Largest window of rows of the role among the queries; None if one has none."""
        return largest_rows(self.queries, self.role)


def role_words(role: Role) -> str:
    """Return a role in words, for events.

    Examples
    --------
    >>> role_words(Role(2)), role_words(Role(2, 1))
    ('stream 2', 'stream 2 (2)')

    """
    return f"stream {role.stream}" + (f" ({role.occurrence + 1})" if role.occurrence else "")


def path_words(path: Path) -> str:
    """Return a path in words; paths of a tree that differ have different words.

    Examples
    --------
    >>> from eddyline.joins.plan import KeyRef
    >>> path_words((Step(Role(1), (Binding(0, KeyRef(Role(0), 2)),)),))
    'stream 1 by key 0 = key 2'

    """
    return " > ".join(
        f"{role_words(step.role)} by "
        + ", ".join(f"key {own.column} = key {own.source.column}" for own in step.bindings)
        for step in path
    )


def largest_window(queries: Sequence[JoinQuery], role: Role) -> int | None:
    """Return the largest window that queries have for a role; None if one has none."""
    windows = [query.windows_us[role] for query in queries]
    limits = [window for window in windows if window is not None]
    return max(limits) if len(limits) == len(windows) else None


def largest_rows(queries: Sequence[JoinQuery], role: Role) -> int | None:
    """Return the largest window of rows that queries have for a role; None if one has none."""
    windows = [query.windows_rows.get(role) for query in queries]
    limits = [window for window in windows if window is not None]
    return max(limits) if len(limits) == len(windows) else None


def tree_paths(query: JoinQuery, root: Role) -> list[Path] | None:
    """Return the path of every other role of a query, parents first; None if the join is cyclic.

    Examples
    --------
    >>> from eddyline.joins.plan import KeyRef
    >>> a, b, c = Role(0), Role(1), Role(2)
    >>> ab = frozenset([KeyRef(a, 0), KeyRef(b, 0)])
    >>> bc = frozenset([KeyRef(b, 1), KeyRef(c, 0)])
    >>> ca = frozenset([KeyRef(c, 1), KeyRef(a, 1)])
    >>> chain = JoinQuery(0, (a, b, c), (ab, bc), dict.fromkeys([a, b, c], 10))
    >>> [len(path) for path in tree_paths(chain, a)]
    [1, 2]
    >>> tree_paths(JoinQuery(0, (a, b, c), (ab, bc, ca), {}), a) is None
    True

    """
    paths: dict[Role, Path] = {root: ()}
    while len(paths) < len(query.roles):
        choices = [
            (len(shared & _classes(query, parent)), parent, role, shared)
            for role in query.roles
            if role not in paths
            for shared in [_classes(query, role) & _classes_of(query, paths)]
            for parent in paths
        ]
        # Largest overlap first, as in Prim's algorithm; of equal ones the parent nearest the root.
        overlap, parent, role, shared = max(
            choices, key=lambda choice: (choice[0], -len(paths[choice[1]]))
        )
        if not overlap or not shared <= _classes(query, parent):
            return None
        bindings = []
        for number in sorted(shared):
            columns = {ref.role: ref for ref in query.equalities[number]}
            bindings.append(Binding(columns[role].column, columns[parent]))
        paths[role] = (*paths[parent], Step(role, tuple(sorted(bindings))))
    return [path for path in paths.values() if path]


def merge_trees(queries: Sequence[JoinQuery], root: Role) -> tuple[list[Node], list[JoinQuery]]:
    """Return the trees of all acyclic queries as one, and the queries that are cyclic.

    Nodes come after their parents.
    """
    nodes: list[Node] = []
    numbers: dict[Path, int] = {(): -1}
    cyclic = []
    for query in queries:
        paths = tree_paths(query, root)
        if paths is None:
            cyclic.append(query)
            continue
        for path in paths:
            if path not in numbers:
                numbers[path] = len(nodes)
                nodes.append(Node(path, numbers[path[:-1]]))
            nodes[numbers[path]].queries.append(query)
    return nodes, cyclic


def _classes(query: JoinQuery, role: Role) -> set[int]:
    """Return the numbers of the equalities in which a role takes part."""
    return {
        number
        for number, equal in enumerate(query.equalities)
        if any(ref.role == role for ref in equal)
    }


def _classes_of(query: JoinQuery, roles: Sequence[Role] | dict[Role, Path]) -> set[int]:
    return set().union(*[_classes(query, role) for role in roles])
