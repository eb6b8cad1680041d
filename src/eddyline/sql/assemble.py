"""Step 7, assemble: the results of all steps become a `Query`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from eddyline.sql.join_graph import JoinedQuery
from eddyline.sql.names import Source
from eddyline.sql.query import Query, SourceSpec
from eddyline.sql.render import query_texts
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.tree import stream_sql

_GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple".split()
)


def assemble(query: JoinedQuery) -> Query:
    """Return the compiled query."""
    resolved, row_filter = query.resolved, query.row_filter
    conditions = [conjunct.condition for conjunct in query.graph.conjuncts]
    texts = query_texts(resolved, conditions)
    return Query(
        text=resolved.text,
        sources=tuple(_to_spec(source, resolved.select, conditions) for source in resolved.sources),
        accepts=row_filter.accepts,
        predicates=row_filter.predicates,
        required=row_filter.required,
        clauses=row_filter.clauses,
        lookups=query.lookups,
        conditions=row_filter.conditions,
        ordered=row_filter.ordered,
        where=row_filter.where,
        computed=_computed(resolved),
        has_lateral_aliases=_has_lateral_aliases(resolved.select),
        functions=resolved.functions,
        is_plain=_is_plain(resolved),
        generates_rows=_generates_rows(resolved.select),
        result=texts.result,
        written=texts.written,
        understood=texts.understood,
    )


def _to_spec(
    source: Source, select: exp.Select, conditions: Sequence[exp.Expression]
) -> SourceSpec:
    return SourceSpec(
        name=source.name,
        alias=source.alias,
        is_stream=source.is_stream,
        columns=_needed_columns(source, select, conditions),
        window=source.window,
    )


def _needed_columns(
    source: Source, select: exp.Select, conditions: Sequence[exp.Expression]
) -> tuple[str, ...]:
    """Return the columns that SELECT and the join conditions use; at least one.

    A result of constants needs a column too, because it has as many rows as match.
    """
    if _selects_all(source, select):
        return tuple(source.columns)
    used = {
        column.name.lower()  # SELECT keeps the written letter case
        for part in [*select.expressions, *conditions]
        for column in part.find_all(exp.Column)
        if column.table == source.alias and not isinstance(column.this, exp.Star)
    }
    used = used or {next(iter(source.columns)).lower()}
    return tuple(name for name in source.columns if name.lower() in used)


def _selects_all(source: Source, select: exp.Select) -> bool:
    """Whether SELECT has all columns of the source: `*`, but not `struct_column.*`."""
    for item in select.expressions:
        for star in item.find_all(exp.Star):
            if isinstance(star.parent, exp.Column):
                if star.parent.table == source.alias:
                    return True
            elif not isinstance(star.parent, exp.Dot):
                return True
    return False


def _computed(resolved: ResolvedQuery) -> tuple[str, ...]:
    items = [item.unalias() for item in resolved.select.expressions]
    return tuple(
        stream_sql(item)
        for item in items
        if not isinstance(item, exp.Column) and not _is_star(item)
    )


def _is_star(item: exp.Expression) -> bool:
    """Whether an item is `*` or all fields of a struct."""
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star)
    )


def _has_lateral_aliases(select: exp.Select) -> bool:
    columns = (column for item in select.expressions for column in item.find_all(exp.Column))
    return any(not column.table for column in columns)


def _generates_rows(select: exp.Select) -> bool:
    calls = (node for item in select.expressions for node in item.find_all(exp.Anonymous))
    return any(str(call.this).lower() in _GENERATORS for call in calls)


def _is_plain(resolved: ResolvedQuery) -> bool:
    if resolved.tables or resolved.has_constant_conditions:
        return False
    items = [item.unalias() for item in resolved.select.expressions]
    return all(
        isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.table)
        for item in items
    )
