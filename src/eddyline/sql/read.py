"""Step 1, read: SQL text to a SELECT tree and windows.

Refuses what a continuous query cannot have: aggregation, sorting, subqueries, functions whose
answer changes between evaluations, outer joins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from eddyline.errors import QueryError
from eddyline.sql.dialect import SPARK, dialect
from eddyline.sql.placeholders import RESERVED
from eddyline.sql.schemas import Schemas
from eddyline.sql.tree import abbreviated
from eddyline.sql.window_clauses import WindowClauses, split_windows

#: Parts of a SELECT, a table and a join that are understood; whatever else is written is refused.
_SELECT_PARTS = frozenset(("expressions", "from_", "joins", "where", "hint"))
_TABLE_PARTS = frozenset(("this", "db", "catalog", "alias"))
_JOIN_PARTS = frozenset(("this", "on", "side", "kind", "method", "using"))
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
    "locks": "FOR UPDATE",
    "connect": "CONNECT BY",
    "version": "VERSION AS OF",
    "sample": "a sample of a table",
}
#: Functions that reach into the JVM, beyond the rows of the query.
_FORBIDDEN = frozenset(("reflect", "java_method", "try_reflect"))
_NONDETERMINISTIC = frozenset(
    "rand randn random uuid shuffle now current_timestamp current_date curdate localtimestamp "
    "unix_timestamp monotonically_increasing_id input_file_name spark_partition_id "
    "current_time currenttimestamp currentdate localtime".split()
)
#: Most of the nodes of a query, and never unsupported.
_LEAVES = (exp.Literal, exp.Identifier, exp.Column)


@dataclass(frozen=True)
class QueryText:
    """Input of the pipeline: a query as written, and what it may name."""

    text: str
    schemas: Schemas


@dataclass(frozen=True)
class ReadQuery:
    """Result of `read`.

    Parameters
    ----------
    text, schemas
        As given.
    body
        The text without its windows; positions in `select` refer to it.
    select
        The parsed SELECT.
    windows
        Windows, of the whole query and of single sources.

    """

    text: str
    schemas: Schemas
    body: str
    select: exp.Select
    windows: WindowClauses


def read(query: QueryText) -> ReadQuery:
    """Parse the text of a query.

    Examples
    --------
    >>> schemas = Schemas({"light": {"lux": "int"}})
    >>> query = read(QueryText("SELECT lux FROM light WINDOW 5 ROWS", schemas))
    >>> query.select.sql(), query.windows.of_query
    ('SELECT lux FROM light', Window(size=5, unit='rows'))

    """
    if RESERVED in query.text.lower():
        raise QueryError(f"names that begin with {RESERVED} are reserved; use another name")
    own_dialect = dialect(query.schemas.double_quoted_identifiers)
    body, windows = split_windows(query.text, own_dialect)
    select = _parse_select(body, own_dialect)
    _refuse_unsupported_clauses(select)
    _refuse_unsupported_expressions(select)
    _refuse_unsupported_joins(select)
    return ReadQuery(query.text, query.schemas, body, select, windows)


def _parse_select(body: str, own_dialect: Dialect) -> exp.Select:
    if not body:
        raise QueryError("the query is empty; write SELECT ... FROM a stream")
    try:
        statements = own_dialect.parse(body)
    except (ParseError, TokenError) as error:
        raise QueryError(_describe_failure(error)) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        is_single = len(statements) == 1 and statements[0]
        what = statements[0].key.upper() if is_single else "several statements"
        raise QueryError(f"expected one SELECT, not {what}: {abbreviated(body)}")
    return statements[0]


def _describe_failure(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"cannot read the SQL: {error}"
    first = details[0]
    # sqlglot names classes of its own; only their last part means something to a user.
    reason = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", first["description"])
    near = f"{first['start_context'][-30:]}{first['highlight']}{first['end_context'][:20]}"
    return (
        f"cannot read the SQL at line {first['line']}, column {first['col']}: {reason}, near "
        f"{near.strip()!r}"
    )


def _refuse_unsupported_clauses(select: exp.Select) -> None:
    for part in _unknown_parts(select, _SELECT_PARTS):
        raise QueryError(
            f"{part} is not supported in a continuous query: every row is judged by itself; "
            f"do it on run.results(...)"
        )
    joins = select.args.get("joins") or []
    for join in joins:
        for part in _unknown_parts(join, _JOIN_PARTS):
            raise QueryError(f"{part} is not supported in a JOIN of a continuous query")


def _unknown_parts(node: exp.Expression, known: frozenset[str]) -> list[str]:
    """Return the names of the parts that are written but not understood."""
    keys = [key for key, value in node.args.items() if value and key not in known]
    return [_UNSUPPORTED.get(key, key.strip("_").replace("_", " ").upper()) for key in keys]


def _refuse_unsupported_expressions(select: exp.Select) -> None:
    for node in select.walk():
        if isinstance(node, _LEAVES):
            continue
        if isinstance(node, exp.Table):
            _refuse_unsupported_table(node)
        elif isinstance(node, exp.Subquery | exp.Exists | exp.Union) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            raise QueryError(
                f"a query inside a query is not supported: {abbreviated(node.sql(**SPARK))}; "
                f"register its result with engine.table(...) and join it"
            )
        elif isinstance(node, exp.Func):
            _refuse_unsupported_function(node)
        elif isinstance(node, exp.Star):
            _refuse_star_in_condition(node, select)


def _refuse_unsupported_table(table: exp.Table) -> None:
    for part in _unknown_parts(table, _TABLE_PARTS):
        raise QueryError(f"{part} is not supported in FROM of a continuous query")
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise QueryError(
            f"column aliases in FROM are not supported: {abbreviated(table.sql(**SPARK))}; "
            f"rename columns in SELECT"
        )


def _refuse_unsupported_function(node: exp.Func) -> None:
    name = _function_name(node)
    if name in _FORBIDDEN:
        raise QueryError(
            f"{name}() calls Java methods beyond the rows of the query and is not allowed; "
            f"register a Python function with engine.function(...)"
        )
    if name == "unix_timestamp" and any(node.iter_expressions()):
        return  # of a given time
    if name in _NONDETERMINISTIC:
        raise QueryError(
            f"{name}() gives another answer each time, so the result could not be reproduced; add "
            f"it as a column of the stream"
        )


def _refuse_star_in_condition(star: exp.Star, select: exp.Select) -> None:
    """Refuse `*` outside SELECT: queries share conditions, so each column must be named."""
    node: exp.Expression = star
    while node.parent is not select:
        node = node.parent
    if node.arg_key != "expressions":
        raise QueryError("* in a condition is not supported; name the columns")


def _function_name(node: exp.Func) -> str:
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()
    return name.lower()


def _refuse_unsupported_joins(select: exp.Select) -> None:
    if select.args.get("from_") is None:
        raise QueryError("FROM is missing: name the stream that the query reads")
    for join in select.args.get("joins") or []:
        kind = " ".join(part for part in (join.args.get("method"), join.side, join.kind) if part)
        if kind not in ("", "CROSS", "INNER"):
            raise QueryError(
                f"{kind} JOIN is not supported; a continuous query has inner joins of streams and "
                f"static tables (JOIN ... ON, or FROM a, b WHERE)"
            )
        if join.args.get("using") and select.is_star:
            raise QueryError("SELECT * with JOIN ... USING is not supported; name the columns")
