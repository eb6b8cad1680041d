"""Functions on sqlglot trees that several steps use."""

from __future__ import annotations

from sqlglot import exp

from eddyline.sql.dialect import SPARK
from eddyline.sql.placeholders import STREAM


def from_items(select: exp.Select) -> list[exp.Expression]:
    """Return the items of FROM and JOIN in their written order."""
    joins = select.args.get("joins") or []
    return [select.args["from_"].this, *[join.this for join in joins]]


def source_aliases(node: exp.Expression) -> frozenset[str]:
    """Return the aliases of the sources whose columns an expression uses.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> sorted(source_aliases(parse_one("l.lux > r.floor + 1")))
    ['l', 'r']

    """
    return frozenset(column.table for column in node.find_all(exp.Column))


def stream_sql(node: exp.Expression) -> str:
    """Return an expression over one stream as SQL over `STREAM`.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> stream_sql(parse_one("l.lux > 3"))
    '`__eddyline_stream`.lux > 3'

    """
    return _with_qualifier(node, exp.to_identifier(STREAM, True))


def table_sql(node: exp.Expression) -> str:
    """Return an expression over one table as SQL with unqualified columns."""
    return _with_qualifier(node, None)


def _with_qualifier(node: exp.Expression, qualifier: exp.Identifier | None) -> str:
    copied = node.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", qualifier)
    return str(copied.sql(**SPARK))


def abbreviated(sql: str, characters_max: int = 60) -> str:
    """Return the beginning of a long text, for an error message.

    Examples
    --------
    >>> abbreviated("SELECT room FROM light", characters_max=14)
    'SELECT room...'

    """
    return sql if len(sql) <= characters_max else sql[: characters_max - 3] + "..."
