"""The SQL texts of a compiled query, with placeholders for its rows and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from eddyline.sql.dialect import quoted, to_sql
from eddyline.sql.names import Source
from eddyline.sql.placeholders import COMBINATIONS, ROWS, TABLE, escape_braces
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.tree import from_items


@dataclass(frozen=True)
class QueryTexts:
    """The fields of `Query` of the same names."""

    result: str
    written: str
    understood: str


def query_texts(query: ResolvedQuery, conditions: Sequence[exp.Expression]) -> QueryTexts:
    """Return the SQL texts of a query.

    Parameters
    ----------
    query
        The resolved query.
    conditions
        The conditions that involve static tables; those over the stream alone hold already.

    """
    items = ", ".join(escape_braces(to_sql(item)) for item in query.select.expressions)
    is_join = len(query.streams) > 1
    result = (
        _join_result_sql(query, conditions) if is_join else _result_sql(items, query, conditions)
    )
    return QueryTexts(result, _written_sql(query), _understood_sql(items, query))


def _result_sql(items: str, query: ResolvedQuery, conditions: Sequence[exp.Expression]) -> str:
    """Return the SQL that computes the result from the rows that pass all filters."""
    tables = ", ".join(_aliased(source, query) for source in query.sources)
    where = " AND ".join(f"({escape_braces(to_sql(part))})" for part in conditions)
    return f"SELECT {items} FROM {tables}" + (f" WHERE {where}" if where else "")


def _join_result_sql(query: ResolvedQuery, conditions: Sequence[exp.Expression]) -> str:
    """Return the SQL that computes the result from combinations of rows.

    A combination has a struct for each stream, named by its alias.
    """
    streams = {source.alias for source in query.streams}

    def rendered(part: exp.Expression) -> str:
        copied = part.copy()
        for column in copied.find_all(exp.Column):
            if column.table in streams:
                column.set("db", exp.Identifier(this=COMBINATIONS, quoted=True))
        return escape_braces(to_sql(copied))

    expanded = []
    for item in query.select.expressions:
        if isinstance(item, exp.Star):
            expanded += [_star(source, streams) for source in query.sources]
        else:
            expanded.append(rendered(item))
    tables = [f"{{{ROWS}}} AS `{COMBINATIONS}`", *[_aliased(s, query) for s in query.tables]]
    where = " AND ".join(f"({rendered(part)})" for part in conditions)
    text = f"SELECT {', '.join(expanded)} FROM {', '.join(tables)}"
    return text + (f" WHERE {where}" if where else "")


def _star(source: Source, streams: set[str]) -> str:
    alias = escape_braces(quoted(source.alias))
    return f"`{COMBINATIONS}`.{alias}.*" if source.alias in streams else f"{alias}.*"


def _written_sql(query: ResolvedQuery) -> str:
    """Return the query as written, except for the names of sources and registered functions."""
    changes = []
    for item, source in zip(from_items(query.select), query.sources, strict=True):
        text = _placeholder(source, query) if item.alias else _aliased(source, query)
        changes.append((item.this.meta, text))
    if query.functions:
        changes += [
            (call.meta, str(call.this))
            for call in query.select.find_all(exp.Anonymous)
            if query.registered_function(call)
        ]
    text, copied_to = "", 0
    for position, name in sorted(changes, key=lambda change: int(change[0]["start"])):
        text += escape_braces(query.body[copied_to : position["start"]]) + name
        copied_to = position["end"] + 1
    return text + escape_braces(query.body[copied_to:])


def _understood_sql(items: str, query: ResolvedQuery) -> str:
    """Return the whole query as parsed and resolved."""
    select = query.select
    hint = select.args.get("hint")
    text = f"SELECT {to_sql(hint).strip()} {items}" if hint else f"SELECT {items}"
    text += f" FROM {_aliased(query.sources[0], query)}"
    for join, source in zip(select.args.get("joins") or (), query.sources[1:], strict=True):
        kind, on = join.kind, join.args.get("on")
        is_comma = on is None and not kind
        text += ", " if is_comma else f" {kind} JOIN " if kind else " JOIN "
        text += _aliased(source, query) + (f" ON {escape_braces(to_sql(on))}" if on else "")
    where = select.args.get("where")
    return text + (f" WHERE {escape_braces(to_sql(where.this))}" if where else "")


def _aliased(source: Source, query: ResolvedQuery) -> str:
    return f"{_placeholder(source, query)} AS {escape_braces(quoted(source.alias))}"


def _placeholder(source: Source, query: ResolvedQuery) -> str:
    if not source.is_stream:
        return f"{{{TABLE + source.name}}}"
    if len(query.streams) == 1:
        return f"{{{ROWS}}}"
    return f"{{{ROWS}_{query.streams.index(source)}}}"
