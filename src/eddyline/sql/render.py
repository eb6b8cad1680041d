"""The SQL texts of a compiled query, with placeholders for its rows and tables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from eddyline.sql.dialect import SPARK
from eddyline.sql.placeholders import ROWS, TABLE, escape_braces
from eddyline.sql.resolve import ResolvedQuery, Source
from eddyline.sql.tree import from_items


def result_sql(query: ResolvedQuery, conditions: Sequence[exp.Expression]) -> str:
    """Return the SQL that computes the result from the rows that pass all filters.

    Parameters
    ----------
    query
        The resolved query.
    conditions
        The conditions that involve static tables; those over the stream alone hold already.

    """
    items = ", ".join(escape_braces(item.sql(**SPARK)) for item in query.select.expressions)
    tables = ", ".join(f"{_placeholder(source)} AS `{source.alias}`" for source in query.sources)
    where = " AND ".join(f"({escape_braces(part.sql(**SPARK))})" for part in conditions)
    return f"SELECT {items} FROM {tables}" + (f" WHERE {where}" if where else "")


def written_sql(query: ResolvedQuery) -> str:
    """Return the query as written, except for the names of sources and registered functions."""
    changes = []
    for item, source in zip(from_items(query.select), query.sources, strict=True):
        alias = "" if item.alias else f" AS `{source.alias}`"
        changes.append((item.this.meta, f"{_placeholder(source)}{alias}"))
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


def understood_sql(query: ResolvedQuery) -> str:
    """Return the whole query as parsed and resolved.

    The names of sources are replaced after escaping, because a placeholder is not an identifier.
    """
    select = query.select.copy()
    for number, (item, source) in enumerate(zip(from_items(select), query.sources, strict=True)):
        item.set("this", exp.to_identifier(f"_source_{number}_"))
        item.set("alias", exp.TableAlias(this=exp.to_identifier(source.alias, True)))
    text = escape_braces(select.sql(**SPARK))
    for number, source in enumerate(query.sources):
        text = text.replace(f"_source_{number}_", _placeholder(source))
    return text


def _placeholder(source: Source) -> str:
    return f"{{{ROWS if source.is_stream else TABLE + source.name}}}"
