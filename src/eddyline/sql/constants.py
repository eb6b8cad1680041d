"""Literals of SQL as the constants that a column of some type is compared with."""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from decimal import Decimal

from sqlglot import exp

from eddyline.operators.domain import Constant

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?",
)
_YEAR_MIN = 1970  # time zones and calendars of earlier years are left to Spark
_FLOAT32_EXACT = 2**24  # larger integers may not be exact as a 32-bit float
_DIGITS_MAX = 30  # Spark may round a literal with more digits


def to_typed_constant(data_type: str, node: exp.Expression, timezone: str) -> Constant | None:
    """Return a literal as the constant that a column is compared with.

    Parameters
    ----------
    data_type
        Type of the column, as Spark SQL writes it.
    node
        The other side of the comparison.
    timezone
        Time zone of the session.

    Returns
    -------
    The constant in the form that the domain of the column takes; None if the node is not a literal,
    or if the comparison depends on how Spark casts it.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> to_typed_constant("int", parse_one("-2.5"), "UTC")
    Decimal('-2.5')
    >>> to_typed_constant("date", parse_one("'1970-01-03'"), "UTC")
    2
    >>> to_typed_constant("int", parse_one("'5'"), "UTC") is None
    True

    """
    if data_type == "boolean":
        return int(node.this) if isinstance(node, exp.Boolean) else None
    if data_type == "string":
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    if data_type in ("date", "timestamp", "timestamp_ntz"):
        return _time_constant(data_type, node, timezone)
    number = _number(node)
    if number is None:
        return None
    if isinstance(number, float):  # a literal such as 1e3: Spark compares as double
        if data_type in ("float", "double"):
            return number
        return Decimal(number) if data_type in ("tinyint", "smallint", "int") else None
    if data_type == "float" and isinstance(number, int) and abs(number) > _FLOAT32_EXACT:
        return None
    return number


def to_constant(node: exp.Expression) -> Constant | None:
    """Return the value of a number or string literal; None for any other expression.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> to_constant(parse_one("-2.5")), to_constant(parse_one("'a'")), to_constant(parse_one("a"))
    (Decimal('-2.5'), 'a', None)

    """
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    return _number(node)


def _number(node: exp.Expression) -> int | float | Decimal | None:
    if isinstance(node, exp.Neg):
        number = _number(node.this)
        return None if number is None else -number
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this).lower()
    try:
        if "e" in text:
            return float(text) if math.isfinite(float(text)) else None
        exact = Decimal(text)
    except (ValueError, ArithmeticError):
        return None
    if len(exact.as_tuple().digits) > _DIGITS_MAX:
        return None
    return int(exact) if "." not in text else exact


def _time_constant(data_type: str, node: exp.Expression, timezone: str) -> int | None:
    """Return a date as days, or a timestamp as microseconds, since 1970."""
    is_date = data_type == "date"
    if isinstance(node, exp.Cast):
        target = node.to.this
        is_date = is_date or target == exp.DType.DATE
        plain = {"date": exp.DType.DATE, "timestamp": exp.DType.TIMESTAMP}
        if target != plain.get(data_type) and not (
            data_type != "date" and target == exp.DType.DATE
        ):
            return None
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    match = _TIMESTAMP.fullmatch(str(node.this))
    if match is None or int(match[1]) < _YEAR_MIN or (is_date and match[4] is not None):
        return None
    microseconds = int((match[7] or "0").ljust(6, "0"))
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        seconds = datetime.datetime(year, month, day, hour, minute, second)
        if data_type == "date":
            return (seconds.date() - datetime.date(1970, 1, 1)).days
        zone = datetime.UTC if data_type == "timestamp_ntz" else zoneinfo.ZoneInfo(timezone)
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):
        return None
    local = seconds.replace(tzinfo=zone)
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return None  # the clock shows this time twice, or never
    return int(local.timestamp()) * 10**6 + microseconds
