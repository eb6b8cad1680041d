"""Types of values in Spark SQL, as their short names, and which conversions cannot fail."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from sqlglot import exp

#: Digits of the largest value of each integer type.
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
FLOATS = ("float", "double")
TIMES = ("date", "timestamp", "timestamp_ntz")

_DTYPES = {
    "TEXT": "string",
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "BINARY": "binary",
    "VARBINARY": "binary",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")
_WHOLE = re.compile(r"[+-]?\d+")


def type_name(written: exp.DataType) -> str | None:
    """Return the short name of a type in SQL; None for one that is not known here.

    Examples
    --------
    >>> type_name(exp.DataType.build("decimal(10, 2)")), type_name(exp.DataType.build("text"))
    ('decimal(10,2)', 'string')

    """
    name = written.this.name if hasattr(written.this, "name") else str(written.this)
    if name == "DECIMAL":
        sizes = [int(param.name) for param in written.expressions]
        precision, scale = (*sizes, 10, 0)[:2] if not sizes else (*sizes, 0)[:2]
        return f"decimal({precision},{scale})"
    return None if written.expressions else _DTYPES.get(name)


def is_text(name: str) -> bool:
    """Whether a type is text, of whatever collation."""
    return name == "string" or name.startswith("string collate")


def is_number(name: str) -> bool:
    """Whether a type has numbers."""
    return name in INTEGERS or name in FLOATS or name.startswith("decimal")


def is_atomic(name: str) -> bool:
    """Whether a type has single values, each of which can be written as text."""
    return is_text(name) or is_number(name) or name in (*TIMES, "boolean", "binary", "void")


def digits(name: str) -> tuple[int, int]:
    """Return the digits before and after the point of an integer or decimal type.

    Examples
    --------
    >>> digits("int"), digits("decimal(12,2)")
    ((10, 0), (10, 2))

    """
    if name in INTEGERS:
        return INTEGERS[name], 0
    sizes = _DECIMAL.fullmatch(name)
    if sizes is None:
        raise ValueError(f"{name} has no fixed number of digits")
    precision, scale = int(sizes[1]), int(sizes[2])
    return precision - scale, scale


def is_exact(name: str) -> bool:
    """Whether a type has a fixed number of digits."""
    return name in INTEGERS or name.startswith("decimal")


def decimal_result(operation: type[exp.Expression], one: str, other: str) -> str | None:
    """Return the type of decimal arithmetic in Spark; None if it may not hold every result.

    Integers count with all digits of their type, so the result may be wider than Spark's.

    Examples
    --------
    >>> decimal_result(exp.Add, "decimal(12,2)", "int")
    'decimal(13,2)'
    >>> decimal_result(exp.Mul, "decimal(12,2)", "decimal(20,4)")
    'decimal(33,6)'
    >>> decimal_result(exp.Mul, "decimal(20,2)", "decimal(20,4)")

    """
    (before, after), (other_before, other_after) = digits(one), digits(other)
    if operation is exp.Mul:
        after += other_after
        precision = before + other_before + after + 1
    elif operation is exp.Div:
        divisor_precision = other_before + other_after
        before += other_after
        after = max(6, after + divisor_precision + 1)
        precision = before + after
    else:
        after = max(after, other_after)
        precision = max(before, other_before) + after + 1
    return f"decimal({precision},{after})" if precision <= 38 else None


def cast_can_fail(source: str, target: str) -> bool:
    """Whether a cast can fail on some value of the source type, in ANSI mode.

    Examples
    --------
    >>> cast_can_fail("bigint", "string"), cast_can_fail("string", "bigint")
    (False, True)
    >>> cast_can_fail("int", "bigint"), cast_can_fail("bigint", "int")
    (False, True)

    """
    if source in (target, "void") or (is_text(target) and is_atomic(source)):
        return False
    if target == "binary":
        return not is_text(source)
    if target in TIMES:
        return source not in TIMES
    if target == "boolean":
        return not is_number(source)
    if not is_number(target) or not (is_number(source) or source == "boolean"):
        return True
    if target in FLOATS:
        return False
    if source in FLOATS:
        return True
    if source == "boolean":
        return digits(target)[0] < 1
    before, after = digits(source)
    target_before, target_after = digits(target)
    if target in INTEGERS:
        return source not in INTEGERS or target_before < before
    return target_before < before or target_after < after


def constant_fits(value: str, is_string: bool, target: str) -> bool:
    """Whether a constant can surely be cast to a type.

    Examples
    --------
    >>> constant_fits("2024-02-30", True, "date"), constant_fits("2024-02-29", True, "date")
    (False, True)
    >>> constant_fits("300", False, "tinyint"), constant_fits("300", False, "double")
    (False, True)

    """
    if is_text(target):
        return True
    if target in TIMES and is_string:
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            return False
        return re.fullmatch(r"\d{4}-\d{2}-\d{2}([ T][\d:.]+)?", value) is not None and bool(moment)
    if target == "boolean" and is_string:
        return value.lower() in ("true", "false")
    if target in FLOATS:
        return _NUMBER.fullmatch(value) is not None
    if target in INTEGERS:
        limit = 2 ** {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[target]
        return _WHOLE.fullmatch(value) is not None and -limit <= int(value) < limit
    if target.startswith("decimal") and _NUMBER.fullmatch(value):
        whole, _, fraction = value.lstrip("+-").partition(".")
        before, after = digits(target)
        return len(whole.lstrip("0")) <= before and len(fraction) <= after
    return False


def common_type(names: Sequence[str]) -> str | None:
    """Return the type to which Spark converts values of several types, if that cannot fail.

    Examples
    --------
    >>> common_type(["int", "double"]), common_type(["string", "int"])
    ('double', None)

    """
    found = "void"
    for name in names:
        both = _common(found, name)
        if both is None:
            return None
        found = both
    return found


def _common(one: str, other: str) -> str | None:
    if other in (one, "void"):
        return one
    if one == "void":
        return other
    if one in TIMES and other in TIMES:
        return "timestamp" if "timestamp" in (one, other) else "timestamp_ntz"
    if not (is_number(one) and is_number(other)):
        return None
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.__getitem__)
    if one in FLOATS or other in FLOATS:
        return "double"
    before = max(digits(one)[0], digits(other)[0])
    after = max(digits(one)[1], digits(other)[1])
    return f"decimal({before + after},{after})" if before + after <= 38 else None
