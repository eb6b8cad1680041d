"""Step 5, join graph: which sources are connected by which equalities.

The nodes are the sources of the query, the edges are equalities between them. Every source must be
connected with the stream, directly or through other sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.group import GroupedQuery, RowFilter
from eddyline.sql.normalise import Conjunct
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.specs import LookupSpec


@dataclass(frozen=True)
class Equality:
    """An edge of the join graph: an equality that involves two or more sources.

    Parameters
    ----------
    sources
        Aliases of the sources whose columns it uses.
    columns
        By alias, the two columns that are equal; empty if a side is not just a column.

    """

    sources: frozenset[str]
    columns: Mapping[str, str]


@dataclass(frozen=True)
class JoinGraph:
    """The sources of a query and the conditions that involve more than one stream.

    Parameters
    ----------
    sources
        Aliases in the order of FROM.
    conjuncts
        All conditions that involve several sources or a static table, in their written order.
    equalities
        The edges: those of the conditions that equate sources.

    """

    sources: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    equalities: tuple[Equality, ...]

    def connected(self, start: str) -> set[str]:
        """Return the sources that equalities connect with a source, itself included.

        Examples
        --------
        >>> edges = (Equality(frozenset("ab"), {}), Equality(frozenset("bc"), {}))
        >>> sorted(JoinGraph(("a", "b", "c", "d"), (), edges).connected("a"))
        ['a', 'b', 'c']

        """
        connected = {start}
        while reached := {
            source
            for equality in self.equalities
            if equality.sources & connected
            for source in equality.sources - connected
        }:
            connected |= reached
        return connected

    def equal_columns(self, left: str, right: str) -> list[tuple[str, str]]:
        """Return the pairs of columns of two sources that must be equal.

        Examples
        --------
        >>> edges = (Equality(frozenset("ab"), {"b": "y", "a": "x"}), Equality(frozenset("ab"), {}))
        >>> JoinGraph(("a", "b"), (), edges).equal_columns("a", "b")
        [('x', 'y')]

        """
        return [
            (equality.columns[left], equality.columns[right])
            for equality in self.equalities
            if equality.columns.keys() == {left, right}
        ]

    def local_conditions(self, source: str) -> list[exp.Expression]:
        """Return the conditions that use the columns of one source only."""
        return [conjunct.condition for conjunct in self.conjuncts if conjunct.sources == {source}]


@dataclass(frozen=True)
class JoinedQuery:
    """Result of `join_graph`; the step `lookups` fills in the lookups of each stream."""

    resolved: ResolvedQuery
    row_filters: tuple[RowFilter, ...]
    graph: JoinGraph
    lookups: tuple[tuple[LookupSpec, ...], ...] = ()


def join_graph(query: GroupedQuery) -> JoinedQuery:
    """Build the join graph; refuse a source that nothing connects with the stream."""
    sources = tuple(source.alias for source in query.resolved.sources)
    equalities = tuple(
        Equality(conjunct.sources, _columns(conjunct.condition))
        for conjunct in query.conjuncts
        if isinstance(conjunct.condition, exp.EQ) and len(conjunct.sources) > 1
    )
    graph = JoinGraph(sources, query.conjuncts, equalities)
    stream = query.resolved.stream.alias
    if len(query.resolved.streams) > 1:  # another comparison may be all that links two streams
        streams = {source.alias for source in query.resolved.streams}
        edges = [Equality(c.sources & streams, {}) for c in query.conjuncts]
        graph = replace(graph, equalities=(*equalities, *[e for e in edges if len(e.sources) > 1]))
    unconnected = sorted(set(sources) - graph.connected(stream))
    if unconnected:
        streams = {source.alias for source in query.resolved.streams}
        what = "a comparison" if streams & set(unconnected) else "an equality"
        raise QueryError(
            f"nothing joins {', '.join(unconnected)} with the rest; add {what}, for "
            f"example {stream}.x = {unconnected[0]}.x"
        )
    return JoinedQuery(query.resolved, query.row_filters, graph)


def _columns(equality: exp.EQ) -> dict[str, str]:
    left, right = equality.left.unnest(), equality.right.unnest()
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return {left.table: left.name, right.table: right.name}
    return {}
