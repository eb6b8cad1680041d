"""Expressions that could fail on a row, computed only where Spark would compute them.

Spark computes the arguments of a Python function, and evaluates conditions with such functions, on
the rows that fulfil all conditions without them (`docs/decisions/0012`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eddyline.spark.engine.expressions import StreamExpressions
from eddyline.sql.specs import PredicateSpec, guarded_by


def guard_arguments(
    expressions: StreamExpressions, conditions: Sequence[str], spec: PredicateSpec
) -> PredicateSpec:
    """Return a predicate with fallible arguments computed only where all conditions hold."""
    if not conditions:
        return spec
    arguments = tuple(
        guarded_by(conditions, text) if expressions.could_fail(is_null(text)) else text
        for text in spec.arguments
    )
    if arguments == spec.arguments:
        return spec
    return replace(spec, key=guarded_by(conditions, spec.key), arguments=arguments)


def is_null(text: str) -> str:
    """Return a condition that fails on a row exactly if an expression does."""
    return f"{text} IS NULL"
