"""Comparisons of a column with constants, as sets of accepted values.

A grouped filter can evaluate these. Spark casts both sides of a comparison to a common type first.
A comparison becomes a value set only where this cast is known not to change the answer; every other
predicate is left to Spark, so that answers are always the same as Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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

    def compare(self, column: str, sign: str, other: exp.Expression) -> ValueSet | None:
        """Return the values of a column that a comparison with a constant accepts.

        None if the column or the constant is not one, or if only Spark can tell.
        """
        domain = self.domain(column) if column in self.types else None
        if domain is None:
            return None
        constant = to_typed_constant(self.types[column], other, self.timezone)
        return None if constant is None else domain.compare(sign, constant)

    def equal_to_any(self, column: str, items: Sequence[exp.Expression]) -> ValueSet | None:
        """Return the values of a column that equal an item of a list; None as in `compare`."""
        domain = self.domain(column) if column in self.types else None
        if domain is None:
            return None
        data_type = self.types[column]
        constants: set[Constant] = set()
        for item in items:
            if isinstance(item, exp.Null):
                continue
            # Spark casts all items of a list to one type: an unsuitable one affects the others.
            constant = to_typed_constant(data_type, item, self.timezone)
            is_text = isinstance(item, exp.Literal) and item.is_string
            if constant is None or (is_text and data_type != "string" and not self.ansi):
                return None
            constants.add(constant)
        return domain.equal_to_any(constants)

    def are_same(self, term: Mapping[str, ValueSet], other: Mapping[str, ValueSet]) -> bool:
        """Whether two conjunctions of comparisons accept the same values."""
        return term == other


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
    values = columns.equal_to_any(column.name, predicate.expressions)
    return None if values is None else (column.name, values)


def _if_supported(
    column: exp.Column, values: ValueSet, columns: ColumnTypes
) -> tuple[str, ValueSet] | None:
    if column.name not in columns.types or columns.domain(column.name) is None:
        return None
    return column.name, values


def _compare(
    column: exp.Expression, sign: str, other: exp.Expression, columns: ColumnTypes
) -> tuple[str, ValueSet] | None:
    if not isinstance(column, exp.Column):
        return None
    values = columns.compare(column.name, sign, other)
    return None if values is None else (column.name, values)
