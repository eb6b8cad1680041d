"""Which predicates a grouped filter can answer: a column of the stream against constants.

Spark makes the types of both sides equal before it compares. Only where that is known to change
nothing is a comparison taken here; whatever else is left to Spark, so that answers are always its.
"""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from eddyline.operators.domain import Constant, Domain, Floating, Text, Whole
from eddyline.operators.value_set import NOT_NULL, NOTHING, ONLY_NULL, ValueSet

COMPARISON_SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")
_YEAR_MIN = 1970  # before, zones and calendars are a field of their own
_FLOAT32_EXACT = 2**24


@dataclass(frozen=True)
class ColumnTypes:
    """Types of a stream's columns, as Spark names them, and the session's time zone."""

    types: Mapping[str, str]
    timezone: str = "UTC"

    def domain(self, column: str) -> Domain | None:
        """Return how a column's values compare; None if a grouped filter cannot hold them.

        Examples
        --------
        >>> types = ColumnTypes({"a": "int", "b": "decimal(10,2)", "c": "array<int>"})
        >>> types.domain("b").scale, types.domain("c")
        (2, None)

        """
        kind = self.types[column]
        if kind in (*_INTEGERS, "boolean", "date", "timestamp", "timestamp_ntz"):
            return Whole()
        if kind in ("float", "double"):
            return Floating()
        if kind == "string":
            return Text()
        decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
        if decimal and int(decimal[1]) <= 18:
            return Whole(scale=int(decimal[2]))
        return None


def to_values(predicate: exp.Expression, columns: ColumnTypes) -> tuple[str, ValueSet] | None:
    """Return the column a predicate is about and the values it accepts; None if Spark must judge.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> types = ColumnTypes({"a": "int", "s": "string"})
    >>> to_values(parse_one("5 < a"), types)
    ('a', ValueSet(bounds=(6,), below=False, null=False))
    >>> to_values(parse_one("a IN (1, 2)"), types)
    ('a', ValueSet(bounds=(1, 3), below=False, null=False))
    >>> to_values(parse_one("s > 5"), types) is None  # Spark casts s
    True

    """
    if isinstance(predicate, exp.Column):
        return _compare(predicate, "=", exp.true(), columns)
    comparison = COMPARISON_SIGNS.get(type(predicate))
    if comparison is not None:
        left, right = predicate.this.unnest(), predicate.expression.unnest()
        if not isinstance(left, exp.Column):
            left, right, comparison = right, left, MIRRORED[comparison]
        return _compare(left, comparison, right, columns)
    if isinstance(predicate, exp.Is):
        column = predicate.this.unnest()
        if isinstance(column, exp.Column) and isinstance(predicate.expression, exp.Null):
            return _if_held(column, ONLY_NULL, columns)
        return None
    if isinstance(predicate, exp.In):
        return _in_list(predicate, columns)
    if isinstance(predicate, exp.Not):
        return _opposite(predicate.this.unnest(), columns)
    return None


def _opposite(predicate: exp.Expression, columns: ColumnTypes) -> tuple[str, ValueSet] | None:
    inside = to_values(predicate, columns)
    if inside is None:
        return None
    column, values = inside
    if isinstance(predicate, exp.Is):
        return column, NOT_NULL
    has_null = isinstance(predicate, exp.In) and any(
        isinstance(item, exp.Null) for item in predicate.expressions
    )
    return column, NOTHING if has_null else ~values


def _in_list(predicate: exp.In, columns: ColumnTypes) -> tuple[str, ValueSet] | None:
    column = predicate.this.unnest()
    if not isinstance(column, exp.Column) or not predicate.expressions:
        return None
    found = NOTHING
    for item in predicate.expressions:
        if isinstance(item, exp.Null):
            continue
        # In a list Spark makes all types equal, so that one odd item changes the others.
        one = _compare(column, "=", item, columns)
        if one is None:
            return None
        found = found | one[1]
    return _if_held(column, found, columns)


def _if_held(
    column: exp.Column, values: ValueSet, columns: ColumnTypes
) -> tuple[str, ValueSet] | None:
    if column.name not in columns.types or columns.domain(column.name) is None:
        return None
    return column.name, values


def _compare(
    column: exp.Expression, comparison: str, other: exp.Expression, columns: ColumnTypes
) -> tuple[str, ValueSet] | None:
    if not isinstance(column, exp.Column) or column.name not in columns.types:
        return None
    domain = columns.domain(column.name)
    constant = _constant(columns.types[column.name], other, columns.timezone)
    if domain is None or constant is None:
        return None
    return column.name, domain.compare(comparison, constant)


def _constant(kind: str, node: exp.Expression, timezone: str) -> Constant | None:
    """Return a constant in the form the column's domain takes; None if types differ too much."""
    if kind == "boolean":
        return int(node.this) if isinstance(node, exp.Boolean) else None
    if kind == "string":
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return _moment(kind, node, timezone)
    number = _number(node)
    if number is None:
        return None
    if isinstance(number, float):  # a literal like 1e3: Spark compares as double
        exact = kind in ("float", "double", "tinyint", "smallint", "int")
        return (number if kind in ("float", "double") else Decimal(number)) if exact else None
    if kind == "float" and isinstance(number, int) and abs(number) > _FLOAT32_EXACT:
        return None
    return number


def to_constant(node: exp.Expression) -> int | float | str | None:
    """Return the number or text that a literal stands for; None if it is something else."""
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    number = _number(node)
    return float(number) if isinstance(number, Decimal) else number


def _number(node: exp.Expression) -> int | float | Decimal | None:
    if isinstance(node, exp.Neg):
        inside = _number(node.this)
        return None if inside is None else -inside
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this).lower()
    try:
        if "e" in text:
            return float(text) if math.isfinite(float(text)) else None
        number = Decimal(text)
    except (ValueError, ArithmeticError):
        return None
    if len(number.as_tuple().digits) > 30:  # Spark would round it
        return None
    return int(number) if "." not in text else number


def _moment(kind: str, node: exp.Expression, timezone: str) -> int | None:
    """Return a date as days, or a timestamp as microseconds, since 1970."""
    is_date = kind == "date"
    if isinstance(node, exp.Cast):
        target = node.to.this
        is_date = is_date or target == exp.DType.DATE
        plain = {"date": exp.DType.DATE, "timestamp": exp.DType.TIMESTAMP}
        if target != plain.get(kind) and not (kind != "date" and target == exp.DType.DATE):
            return None
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    found = _MOMENT.fullmatch(str(node.this))
    if found is None or int(found[1]) < _YEAR_MIN or (is_date and found[4] is not None):
        return None
    fraction = int((found[7] or "0").ljust(6, "0"))
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        whole = datetime.datetime(year, month, day, hour, minute, second)
        if kind == "date":
            return (whole.date() - datetime.date(1970, 1, 1)).days
        zone = datetime.UTC if kind == "timestamp_ntz" else zoneinfo.ZoneInfo(timezone)
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):
        return None
    local = whole.replace(tzinfo=zone)
    if local.utcoffset() != local.replace(fold=1).utcoffset():  # twice, or never, on the clock
        return None
    return int(local.timestamp()) * 10**6 + fraction
