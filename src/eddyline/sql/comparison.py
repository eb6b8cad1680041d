"""Comparisons of a column with constants, as sets of accepted values.

A grouped filter can evaluate these. Spark casts both sides of a comparison to a common type first.
A comparison becomes a value set only where this cast is known not to change the answer; every other
predicate is left to Spark, so that answers are always the same as Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from eddyline.operators.domain import Constant, Domain, Floating, Text, Whole
from eddyline.operators.value_set import NOT_NULL, NOTHING, ONLY_NULL, ValueSet
from eddyline.sql.constants import to_typed_constant

#: Sign of each comparison class of sqlglot.
COMPARISON_SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
#: Sign of a comparison after its sides are exchanged.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class ColumnTypes:
    """Types of the columns of a stream.

    Parameters
    ----------
    types
        By column, the type as Spark SQL writes it.
    timezone
        Time zone of the session.
    ansi
        Whether the session follows the ANSI standard. If not, texts in a list are compared with
        other types as texts.

    """

    types: Mapping[str, str]
    timezone: str = "UTC"
    ansi: bool = True

    def domain(self, column: str) -> Domain | None:
        """Return the domain of a column; None if a grouped filter cannot hold its values.

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
    """Return the column that a predicate tests and the values it accepts.

    None if the predicate is not a comparison of one column with constants, or if types differ so
    that only Spark's own casts give the right answer.

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
            return _if_supported(column, ONLY_NULL, columns)
        return None
    if isinstance(predicate, exp.In):
        return _in_list(predicate, columns)
    if isinstance(predicate, exp.Not):
        return _negated_values(predicate.this.unnest(), columns)
    return None


def _negated_values(predicate: exp.Expression, columns: ColumnTypes) -> tuple[str, ValueSet] | None:
    if isinstance(predicate, exp.Not):
        return to_values(predicate.this.unnest(), columns)
    accepted = to_values(predicate, columns)
    if accepted is None:
        return None
    column, values = accepted
    if isinstance(predicate, exp.Is):
        return column, NOT_NULL
    # x NOT IN (..., NULL) is never true.
    has_null = isinstance(predicate, exp.In) and any(
        isinstance(item, exp.Null) for item in predicate.expressions
    )
    return column, NOTHING if has_null else ~values


def _in_list(predicate: exp.In, columns: ColumnTypes) -> tuple[str, ValueSet] | None:
    column = predicate.this.unnest()
    if not isinstance(column, exp.Column) or not predicate.expressions:
        return None
    if column.name not in columns.types:
        return None
    data_type, domain = columns.types[column.name], columns.domain(column.name)
    if domain is None:
        return None
    constants: set[Constant] = set()
    for item in predicate.expressions:
        if isinstance(item, exp.Null):
            continue
        # Spark casts all items of a list to one type, so one unsuitable item affects the others.
        constant = to_typed_constant(data_type, item, columns.timezone)
        is_text = isinstance(item, exp.Literal) and item.is_string
        if constant is None or (is_text and data_type != "string" and not columns.ansi):
            return None
        constants.add(constant)
    return column.name, domain.equal_to_any(constants)


def _if_supported(
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
    constant = to_typed_constant(columns.types[column.name], other, columns.timezone)
    if domain is None or constant is None:
        return None
    return column.name, domain.compare(comparison, constant)
