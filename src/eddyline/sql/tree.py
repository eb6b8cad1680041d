"""Functions on sqlglot trees that several steps use."""

from __future__ import annotations

from sqlglot import exp

from eddyline.sql.dialect import to_sql
from eddyline.sql.placeholders import STREAM

SHOWN_MAX = 60
_STREAM_QUALIFIER = f"`{STREAM}`"


def copy_tree(root: exp.Select) -> exp.Select:
    """Return a copy that shares its literals with the original.

    Literals are never changed, and a query may have ten thousand of them. Positions of names in
    the text (`meta`) are shared too.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> select = parse_one("SELECT a FROM s WHERE a = 1")
    >>> copy = copy_tree(select)
    >>> copy.find(exp.Column).set("this", exp.to_identifier("b"))
    >>> select.sql(), copy.sql()
    ('SELECT a FROM s WHERE a = 1', 'SELECT b FROM s WHERE a = 1')

    """
    copied_root = type(root)()
    pending: list[tuple[exp.Expression, exp.Expression]] = [(root, copied_root)]
    while pending:
        node, copied = pending.pop()
        copied._meta = node._meta
        copied.comments = node.comments
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                copied.args[key] = _child_copy(value, copied, key, None, pending)
            elif type(value) is list:
                copied.args[key] = [
                    _child_copy(item, copied, key, index, pending)
                    if isinstance(item, exp.Expr)
                    else item
                    for index, item in enumerate(value)
                ]
            else:
                copied.args[key] = value
    return copied_root


def _child_copy(
    child: exp.Expression,
    parent: exp.Expression,
    key: str,
    index: int | None,
    pending: list[tuple[exp.Expression, exp.Expression]],
) -> exp.Expression:
    """Return the copy of a child, whose own children are pending; a literal as it is."""
    if type(child) is exp.Literal:
        return child
    copied = type(child)()
    copied.parent, copied.arg_key, copied.index = parent, key, index
    pending.append((child, copied))
    return copied


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
    return to_sql(node, _STREAM_QUALIFIER)


def table_sql(node: exp.Expression) -> str:
    """Return an expression over one table as SQL with unqualified columns."""
    return to_sql(node, "")


def abbreviated(sql: str) -> str:
    """Return the beginning of a long text, for an error message.

    Examples
    --------
    >>> abbreviated("SELECT room, celsius, lux, decibel FROM light WHERE celsius > 20")
    'SELECT room, celsius, lux, decibel FROM light WHERE celsi...'

    """
    return sql if len(sql) <= SHOWN_MAX else sql[: SHOWN_MAX - 3] + "..."
