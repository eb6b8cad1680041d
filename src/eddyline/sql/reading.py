"""Reading the text of a query: its window, its SELECT, and what a continuous query cannot have."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from eddyline.errors import QueryError
from eddyline.sql.dialect import SPARK, Verbatim
from eddyline.sql.query import Window

_WINDOW = re.compile(
    r"\s+WINDOW\s+(\d+)\s+(SECOND|MINUTE|HOUR|ROW)S?\s*;?\s*$", re.IGNORECASE | re.DOTALL
)
_UNSUPPORTED = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "a named WINDOW",
    "laterals": "LATERAL VIEW",
    "qualify": "QUALIFY",
    "pivots": "PIVOT",
}
_CHANGING = frozenset(
    "rand randn random uuid shuffle now current_timestamp current_date curdate localtimestamp "
    "unix_timestamp monotonically_increasing_id input_file_name spark_partition_id "
    "current_time currenttimestamp currentdate localtime".split()
)


def split_window(text: str) -> tuple[str, Window | None]:
    """Return the query without its window, and the window.

    Examples
    --------
    >>> split_window("SELECT a FROM s WINDOW 5 minutes")
    ('SELECT a FROM s', Window(size=5, unit='minutes'))

    """
    found = _WINDOW.search(text)
    if found is None:
        return text.strip().rstrip(";"), None
    if int(found[1]) == 0:
        raise QueryError("a window of 0 has no rows in it; give it a size of at least 1")
    return text[: found.start()].strip(), Window(int(found[1]), found[2].lower() + "s")


def read_select(body: str) -> exp.Select:
    """Return the one SELECT that the text is, if nothing in it is beyond a continuous query."""
    if not body:
        raise QueryError("the query is empty; write SELECT ... FROM a stream")
    try:
        parsed = sqlglot.parse(body, dialect=Verbatim)
    except (ParseError, TokenError) as error:
        raise QueryError(_where_it_failed(error)) from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        what = parsed[0].key.upper() if len(parsed) == 1 and parsed[0] else "several statements"
        raise QueryError(f"expected one SELECT, not {what}: {shortened(body)}")
    _refuse_unsupported(parsed[0])
    return parsed[0]


def _where_it_failed(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"cannot read the SQL: {error}"
    first = details[0]
    said = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", first["description"])
    near = f"{first['start_context'][-30:]}{first['highlight']}{first['end_context'][:20]}"
    return (
        f"cannot read the SQL at line {first['line']}, column {first['col']}: {said}, near "
        f"{near.strip()!r}"
    )


def _refuse_unsupported(select: exp.Select) -> None:
    for key, name in _UNSUPPORTED.items():
        if select.args.get(key):
            raise QueryError(
                f"{name} is not supported in a continuous query: every row is judged by itself; "
                f"do it on run.results(...)"
            )
    for node in select.walk():
        if isinstance(node, exp.Subquery | exp.Exists | exp.Union) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            raise QueryError(
                f"a query inside a query is not supported: {shortened(node.sql(**SPARK))}; "
                f"register its result with engine.table(...) and join it"
            )
        if isinstance(node, exp.Func) and _function_name(node).lower() in _CHANGING:
            raise QueryError(
                f"{_function_name(node).lower()}() gives another answer each time, so results "
                f"could not be told apart from chance; add it as a column of the stream"
            )


def _function_name(node: exp.Func) -> str:
    return str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()


def shortened(sql: str, characters_max: int = 60) -> str:
    """Return the beginning of a long text, for an error message."""
    return sql if len(sql) <= characters_max else sql[: characters_max - 3] + "..."
