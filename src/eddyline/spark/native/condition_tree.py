"""The syntax tree of a native condition, from its SQL text or from its Column."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eddyline.spark.common.predicates import NativePredicate
from eddyline.sql.failures import parse_condition
from eddyline.sql.value_types import type_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OPERATORS: dict[str, type[exp.Expression]] = {
    "and": exp.And,
    "or": exp.Or,
    "==": exp.EQ,
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<>": exp.NEQ,
    "<=>": exp.NullSafeEQ,
    ">": exp.GT,
    ">=": exp.GTE,
    "<": exp.LT,
    "<=": exp.LTE,
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
    "like": exp.Like,
    "ilike": exp.ILike,
    "rlike": exp.RegexpLike,
}
#: Classes of expressions that run code of users; their names may be those of Spark's functions.
_FOREIGN_CODE = ('UDF"', "ApplyFunctionExpression", "catalyst.expressions.objects.")


class UnreadableError(Exception):
    """A condition of which no syntax tree can be made."""


def written_tree(
    df: DataFrame, predicate: NativePredicate, analysed: Any = None
) -> exp.Expression | None:
    """Return the tree of a condition as it was written; None if it cannot be read.

    Parameters
    ----------
    df, predicate
        The condition, on the columns of a DataFrame.
    analysed
        What `analysed_condition` returned, if it is known.

    """
    try:
        if isinstance(predicate.condition, str):
            return parse_condition(predicate.condition, has_quoted_identifiers(df))
        expression = getattr(predicate.condition, "_expr", None)
        if expression is not None and "connect" in type(expression).__module__:
            return _from_connect(expression, has_quoted_identifiers(df))
    except (SqlglotError, UnreadableError, RecursionError):
        return None
    return analysed_tree(analysed or analysed_condition(df, predicate))


def analysed_condition(df: DataFrame, predicate: NativePredicate) -> Any:
    """Return a condition as Spark has analysed it, an object of the JVM.

    None in Spark Connect, where there is no access to analysed plans, and where the condition
    became something else than a filter.
    """
    if not hasattr(df, "_jdf"):
        return None
    plan = df.filter(predicate.condition)._jdf.queryExecution().analyzed()
    return plan.expressions().head() if plan.nodeName() == "Filter" else None


def analysed_tree(analysed: Any) -> exp.Expression | None:
    """Return the tree of an analysed condition, with all casts that Spark adds, if it is known."""
    try:
        return None if analysed is None else parse_condition(str(analysed.sql()), False)
    except (SqlglotError, RecursionError):
        return None


def calls_foreign_code(analysed: Any) -> bool:
    """Whether an analysed condition calls a function that a user wrote, if it is known."""
    plan = "" if analysed is None else str(analysed.toJSON())
    return any(name in plan for name in _FOREIGN_CODE)


def has_quoted_identifiers(df: DataFrame) -> bool:
    """Whether double quotes enclose names in the session, not texts."""
    return is_ansi(df) and _is_set(df, "spark.sql.ansi.doubleQuotedIdentifiers")


def is_ansi(df: DataFrame) -> bool:
    """Whether overflows, divisions by zero and impossible casts are errors in the session."""
    return _is_set(df, "spark.sql.ansi.enabled")


def _is_set(df: DataFrame, name: str) -> bool:
    return str(df.sparkSession.conf.get(name)).lower() == "true"  # with its default value


def column_types(schema: StructType) -> Callable[[tuple[str, ...]], str | None]:
    """Return a function from the parts of a column's name to its type.

    The first parts may be the name of a table. If the name can be read in several ways that differ
    in their types, the type is not known.

    Examples
    --------
    >>> struct = StructType().add("x", "string")
    >>> types = column_types(StructType().add("a", "integer").add("s", struct))
    >>> types(("a",)), types(("t", "A")), types(("s", "x")), types(("b",))
    ('int', 'int', 'string', None)

    """

    def type_of(parts: tuple[str, ...]) -> str | None:
        found = {
            kind.simpleString()
            for start in range(len(parts))
            for kind in _resolve(schema, parts[start:])
        }
        return found.pop() if len(found) == 1 else None

    return type_of


def _resolve(kind: DataType, parts: tuple[str, ...]) -> list[DataType]:
    if not parts:
        return [kind]
    if not isinstance(kind, StructType):
        return []
    return [
        inner
        for each in kind.fields
        if each.name.lower() == parts[0].lower()
        for inner in _resolve(each.dataType, parts[1:])
    ]


def _from_connect(node: Any, quoted_identifiers: bool) -> exp.Expression:
    """Return the tree of an expression of Spark Connect's client."""

    def convert(child: Any) -> exp.Expression:
        return _from_connect(child, quoted_identifiers)

    kind = type(node).__name__
    if kind == "SQLExpression":
        return parse_condition(node._expr, quoted_identifiers)
    if kind == "ColumnReference":
        return parse_condition(node._unparsed_identifier, False)
    if kind == "LiteralExpression":
        return _literal(node._value, node._dataType)
    if kind == "CastExpression":
        target = node._data_type
        text = target if isinstance(target, str) else target.simpleString()
        cast = parse_condition(f"CAST(NULL AS {text})", False)
        cast.set("this", convert(node._expr))
        cast.set("safe", node._eval_mode == "try")
        return cast
    if kind == "CaseWhen":
        ifs = [exp.If(this=convert(c), true=convert(v)) for c, v in node._branches]
        default = None if node._else_value is None else convert(node._else_value)
        return exp.Case(ifs=ifs, default=default)
    if kind != "UnresolvedFunction" or node._is_distinct:
        raise UnreadableError(kind)
    name, arguments = node._name.lower(), [convert(each) for each in node._args]
    if name in _OPERATORS and len(arguments) == 2:
        return _OPERATORS[name](this=exp.paren(arguments[0]), expression=exp.paren(arguments[1]))
    if name in ("not", "!"):
        return exp.Not(this=exp.paren(arguments[0]))
    if name == "negative":
        return exp.Neg(this=exp.paren(arguments[0]))
    if name == "in":
        return exp.In(this=arguments[0], expressions=arguments[1:])
    return exp.Anonymous(this=name, expressions=arguments)


def _literal(value: Any, kind: DataType) -> exp.Expression:
    """Return a constant, with a cast where its type would not be seen otherwise."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    name = kind.simpleString()
    if name == "string":
        return exp.Literal.string(value)
    if name == "date":
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=value)
        return exp.cast(exp.Literal.string(day.isoformat()), "date")
    number = exp.cast(exp.Literal.number(str(abs(value))), name) if _is_numeric(value) else None
    if number is None or type_name(number.to) is None:
        raise UnreadableError(name)
    return exp.Neg(this=number) if value < 0 else number


def _is_numeric(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
