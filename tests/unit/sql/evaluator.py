"""Evaluates conditions on rows in plain Python, with the three-valued logic of SQL.

There are two independent ways: `is_true` evaluates a condition as it is written, `passes` the
filters that the pipeline makes of it.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Protocol

import sqlglot
from sqlglot import exp

from eddyline.fabric.shared.query import Clause
from eddyline.operators.value_set import Key, ValueSet
from eddyline.sql.comparison import COMPARISON_SIGNS
from eddyline.sql.dialect import VerbatimSpark
from eddyline.sql.specs import PredicateSpec

Row = Mapping[str, Any]
Functions = Mapping[str, Callable[..., Any]]
NO_FUNCTIONS: Functions = {}


class Filters(Protocol):
    """What `RowFilter` and `Query` have in common."""

    @property
    def accepts(self) -> Mapping[str, ValueSet]: ...
    @property
    def predicates(self) -> tuple[PredicateSpec, ...]: ...
    @property
    def required(self) -> tuple[str, ...]: ...
    @property
    def clauses(self) -> tuple[Clause, ...]: ...


@functools.cache
def parse_condition(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, dialect=VerbatimSpark)


def is_true(condition: exp.Expression, row: Row, functions: Functions = NO_FUNCTIONS) -> bool:
    """Return True if the row is kept: the condition is true, neither false nor unknown."""
    return evaluate(condition, row, functions) is True


def evaluate(node: exp.Expression, row: Row, functions: Functions) -> Any:
    """Return the value of an expression; None stands for NULL and for unknown."""
    if isinstance(node, exp.Column):
        return row[node.name]
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else Decimal(str(node.this))
    if isinstance(node, exp.Null | exp.Boolean):
        return None if isinstance(node, exp.Null) else bool(node.this)
    if isinstance(node, exp.Case):
        for branch in node.args["ifs"]:
            if evaluate(branch.this, row, functions) is True:
                return evaluate(branch.args["true"], row, functions)
        return evaluate(node.args["default"], row, functions)
    if isinstance(node, exp.Between):
        parts = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.Binary):
        parts = [node.left, node.right]
    elif isinstance(node, exp.Anonymous):
        parts = node.expressions
    else:
        parts = [node.this, *node.expressions]
    values = [evaluate(part, row, functions) for part in parts]
    if isinstance(node, exp.Anonymous):
        return functions[str(node.this)](*values)
    if type(node) in COMPARISON_SIGNS:
        return _compare(values[0], COMPARISON_SIGNS[type(node)], values[1])
    return _OPERATIONS[type(node)](*values)


def passes(filters: Filters, row: Row, functions: Functions = NO_FUNCTIONS) -> bool:
    """Return True if a row passes the value sets, shared predicates and clauses of a query."""
    holds = {spec.key: _predicate_holds(spec, row, functions) for spec in filters.predicates}

    def accepted(accepts: Mapping[str, ValueSet]) -> list[bool]:
        return [values.has(_key(row[column])) for column, values in accepts.items()]

    return (
        all(accepted(filters.accepts))
        and all(holds[key] for key in filters.required)
        and all(
            any(accepted(clause.accepts))
            or any(holds[key] for key in clause.needs)
            or any(all(accepted(term)) for term in clause.terms)
            for clause in filters.clauses
        )
    )


def _predicate_holds(spec: PredicateSpec, row: Row, functions: Functions) -> bool:
    if spec.function is None:
        return is_true(parse_condition(spec.condition), row)
    arguments = [evaluate(parse_condition(text), row, functions) for text in spec.arguments]
    answer = functions[spec.function](*arguments)
    if spec.comparison in _TESTS:
        return _TESTS[spec.comparison](answer)
    if isinstance(spec.constant, tuple):
        if spec.comparison == "in":
            return any(_compare(answer, "=", constant) is True for constant in spec.constant)
        return all(_compare(answer, "<>", constant) is True for constant in spec.constant)
    return _compare(answer, spec.comparison, spec.constant) is True


def _key(value: Any) -> Key | None:
    """Return a value as a grouped filter orders it; decimals have two digits in these tests."""
    if isinstance(value, Decimal):
        return int(value * 100)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    if isinstance(value, str):
        return value.encode()
    return value


def _compare(left: Any, sign: str, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, datetime.date) and isinstance(right, str):
        right = datetime.date.fromisoformat(right)
    if isinstance(right, datetime.date) and isinstance(left, str):
        left = datetime.date.fromisoformat(left)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    if isinstance(left, float) or isinstance(right, float):
        left, right = _float_order(left), _float_order(right)
    return _ORDERS[sign](left, right)


def _float_order(value: Any) -> tuple[bool, float]:
    """Return a key in which NaN is larger than all numbers and equal to itself."""
    return (True, 0.0) if math.isnan(value) else (False, float(value))


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _and(*truths: bool | None) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _or(*truths: bool | None) -> bool | None:
    return _not(_and(*[_not(truth) for truth in truths]))


def _add(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


_TESTS: dict[str, Callable[[Any], bool]] = {
    "": lambda answer: answer is True,
    "not": lambda answer: answer is False,
    "is null": lambda answer: answer is None,
    "is not null": lambda answer: answer is not None,
    "is not true": lambda answer: answer is not True,
    "is not false": lambda answer: answer is not False,
}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATIONS: dict[type[exp.Expression], Callable[..., Any]] = {
    exp.Paren: lambda value: value,
    exp.Cast: lambda value: value,  # DATE '2024-01-31' is a cast of text, CAST a TryCast
    exp.TryCast: lambda value: value,
    exp.Neg: operator.neg,
    exp.Add: _add,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    exp.Is: lambda value, other: value is other,
    exp.In: lambda value, *items: _or(*[_compare(value, "=", item) for item in items]),
    exp.Between: lambda value, low, high: _and(
        _compare(value, ">=", low), _compare(value, "<=", high)
    ),
}
