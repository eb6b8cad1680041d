"""Step 7, assemble: the results of all steps become a `Query`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from eddyline.sql.bounds import bounds_of
from eddyline.sql.group import RowFilter
from eddyline.sql.join_graph import JoinedQuery
from eddyline.sql.join_spec import key_pairs, time_bounds, windows_from_bounds
from eddyline.sql.names import Source
from eddyline.sql.query import JoinSpec, Query
from eddyline.sql.render import query_texts
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.specs import LookupSpec, SourceSpec
from eddyline.sql.tree import stream_sql

_GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple".split()
)


def assemble(query: JoinedQuery) -> Query:
    """Return the compiled query."""
    return _assemble_one(query) if len(query.resolved.streams) == 1 else _assemble_join(query)


def _assemble_one(query: JoinedQuery) -> Query:
    """Return a query over one stream."""
    resolved, (row_filter,), (lookups,) = query.resolved, query.row_filters, query.lookups
    conditions = [conjunct.condition for conjunct in query.graph.conjuncts]
    texts = query_texts(resolved, conditions)
    return Query(
        text=resolved.text,
        sources=tuple(_to_spec(source, resolved.select, conditions) for source in resolved.sources),
        accepts=row_filter.accepts,
        predicates=row_filter.predicates,
        required=row_filter.required,
        clauses=row_filter.clauses,
        lookups=lookups,
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


def _assemble_join(query: JoinedQuery) -> Query:
    """Return a query over several streams."""
    resolved = query.resolved
    pairs = key_pairs(query.graph.conjuncts, resolved)
    left = [c for c, pair in zip(query.graph.conjuncts, pairs, strict=True) if pair is None]
    conditions = [conjunct.condition for conjunct in left]
    texts = query_texts(resolved, conditions)
    specs = [_to_spec(source, resolved.select, conditions) for source in resolved.sources]
    streams = [spec for spec in specs if spec.is_stream]
    bounds = time_bounds(left, resolved, resolved.schemas.times)
    from_bounds = windows_from_bounds(bounds, len(streams))
    parts = zip(streams, query.row_filters, query.lookups, strict=True)
    join = JoinSpec(
        tuple(_part(resolved, spec, own, lookups) for spec, own, lookups in parts),
        tuple(pair for pair in pairs if pair is not None),
        tuple(
            _window_us(spec, window_us)
            for spec, window_us in zip(streams, from_bounds, strict=True)
        ),
        bounds_of(left, resolved),
        bool(conditions),
    )
    return Query(
        text=resolved.text,
        sources=tuple(specs),
        accepts={},
        predicates=(),
        required=(),
        clauses=(),
        lookups=(),
        conditions=(),
        ordered=None,
        where="",
        computed=_computed(resolved),
        has_lateral_aliases=_has_lateral_aliases(resolved.select),
        functions=resolved.functions,
        is_plain=False,
        generates_rows=_generates_rows(resolved.select),
        result=texts.result,
        written=texts.written,
        understood=texts.understood,
        join=join,
    )


def _part(
    resolved: ResolvedQuery,
    spec: SourceSpec,
    row_filter: RowFilter,
    lookups: tuple[LookupSpec, ...],
) -> Query:
    """Return the conditions on one stream of a join as a query over that stream."""
    functions = {spec.function for spec in row_filter.predicates if spec.function is not None}
    return Query(
        text=resolved.text,
        sources=(spec,),
        accepts=row_filter.accepts,
        predicates=row_filter.predicates,
        required=row_filter.required,
        clauses=row_filter.clauses,
        lookups=lookups,
        conditions=row_filter.conditions,
        ordered=row_filter.ordered,
        where=row_filter.where,
        computed=(),
        has_lateral_aliases=False,
        functions=tuple(sorted(functions)),
        is_plain=True,
        generates_rows=False,
        result="",
        written="",
        understood="",
    )


def _window_us(spec: SourceSpec, from_bounds_us: int | None) -> int | None:
    """Return the smaller of the window that a stream was given and the one that follows."""
    window_us = None if spec.window is None else spec.window.length_us
    known = [limit for limit in (window_us, from_bounds_us) if limit is not None]
    return min(known, default=None)


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
