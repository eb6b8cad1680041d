"""Tests of the answer of a Python function, as far as workers can make them.

Spark would have to call a function that stands within a larger expression on every row; workers
call it lazily (`docs/decisions/0012`). They can test an answer in the ways that are read here.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eddyline.operators.domain import Constant
from eddyline.sql.comparison import COMPARISON_SIGNS, MIRRORED
from eddyline.sql.constants import to_constant
from eddyline.sql.resolve import ResolvedQuery


@dataclass(frozen=True)
class FunctionTest:
    """A test of the answer of a Python function.

    Parameters
    ----------
    call
        The call.
    comparison, constant
        As in `PredicateSpec`.

    """

    call: exp.Anonymous
    comparison: str
    constant: Constant | tuple[Constant | None, ...] | None = None


def to_function_test(literal: exp.Expression, resolved: ResolvedQuery) -> FunctionTest | None:
    """Return the test that a predicate is; None if it is not a test of one function's answer.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int"}}, functions={"f": "f__1"})
    >>> (spec,) = parse("SELECT a FROM s WHERE 2 < f(a)", schemas).predicates
    >>> spec.comparison, spec.constant
    ('>', 2)
    >>> (spec,) = parse("SELECT a FROM s WHERE f(a) NOT IN (1, 2)", schemas).predicates
    >>> spec.comparison, spec.constant
    ('not in', (1, 2))

    """
    if not resolved.functions:
        return None
    is_negated = isinstance(literal, exp.Not)
    test = literal.this.unnest() if is_negated else literal
    if resolved.registered_function(test):
        return FunctionTest(test, "not" if is_negated else "")
    if isinstance(test, exp.In):
        return _list_test(test, is_negated, resolved)
    if isinstance(test, exp.Is | exp.NullSafeEQ):
        return _is_test(test, is_negated, resolved)
    if type(test) in COMPARISON_SIGNS and not is_negated:
        return _comparison_test(test, resolved)
    return None


def _comparison_test(test: exp.Expression, resolved: ResolvedQuery) -> FunctionTest | None:
    call, other = test.this.unnest(), test.expression.unnest()
    sign = COMPARISON_SIGNS[type(test)]
    if not resolved.registered_function(call):
        call, other, sign = other, call, MIRRORED[sign]
    if not resolved.registered_function(call):
        return None
    if isinstance(other, exp.Boolean) and sign in ("=", "<>"):
        return FunctionTest(call, "" if (sign == "=") == other.this else "not")
    constant = to_constant(other)
    return None if constant is None else FunctionTest(call, sign, constant)


def _is_test(
    test: exp.Is | exp.NullSafeEQ, is_negated: bool, resolved: ResolvedQuery
) -> FunctionTest | None:
    """Return a test for NULL, TRUE or FALSE, in which an unknown answer is not unknown."""
    call, other = test.this.unnest(), test.expression.unnest()
    if not resolved.registered_function(call):
        return None
    if isinstance(other, exp.Null):
        return FunctionTest(call, "is not null" if is_negated else "is null")
    if isinstance(other, exp.Boolean):
        if is_negated:
            return FunctionTest(call, "is not true" if other.this else "is not false")
        return FunctionTest(call, "" if other.this else "not")
    return None


def _list_test(test: exp.In, is_negated: bool, resolved: ResolvedQuery) -> FunctionTest | None:
    call = test.this.unnest()
    if not resolved.registered_function(call) or not test.expressions:
        return None
    constants: list[Constant | None] = []
    for item in test.expressions:
        constant = to_constant(item)
        if constant is None and not isinstance(item, exp.Null):
            return None
        constants.append(constant)
    return FunctionTest(call, "not in" if is_negated else "in", tuple(constants))
