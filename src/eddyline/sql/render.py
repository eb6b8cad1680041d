"""The SQL texts of a compiled query, with placeholders for its rows and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from eddyline.sql.dialect import quoted, to_sql
from eddyline.sql.names import Source
from eddyline.sql.placeholders import ROWS, TABLE, escape_braces
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
    return QueryTexts(
        _result_sql(items, query, conditions), _written_sql(query), _understood_sql(items, query)
    )


def _result_sql(items: str, query: ResolvedQuery, conditions: Sequence[exp.Expression]) -> str:
    """Return the SQL that computes the result from the rows that pass all filters."""
    tables = ", ".join(_aliased(source) for source in query.sources)
    where = " AND ".join(f"({escape_braces(to_sql(part))})" for part in conditions)
    return f"SELECT {items} FROM {tables}" + (f" WHERE {where}" if where else "")


def _written_sql(query: ResolvedQuery) -> str:
    """Return the query as written, except for the names of sources and registered functions."""
    changes = []
    for item, source in zip(from_items(query.select), query.sources, strict=True):
        text = _placeholder(source) if item.alias else _aliased(source)
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
    text += f" FROM {_aliased(query.sources[0])}"
    for join, source in zip(select.args.get("joins") or (), query.sources[1:], strict=True):
        kind, on = join.kind, join.args.get("on")
        is_comma = on is None and not kind
        text += ", " if is_comma else f" {kind} JOIN " if kind else " JOIN "
        text += _aliased(source) + (f" ON {escape_braces(to_sql(on))}" if on else "")
    where = select.args.get("where")
    return text + (f" WHERE {escape_braces(to_sql(where.this))}" if where else "")


def _aliased(source: Source) -> str:
    return f"{_placeholder(source)} AS {escape_braces(quoted(source.alias))}"


def _placeholder(source: Source) -> str:
    return f"{{{ROWS if source.is_stream else TABLE + source.name}}}"
