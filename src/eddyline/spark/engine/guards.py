"""Expressions that could fail on a row, computed only where Spark would compute them.

Spark computes the arguments of a Python function, and evaluates conditions with such functions, on
the rows that fulfil all conditions without them (`docs/decisions/0012`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.failing import may_raise
from eddyline.sql.specs import PredicateSpec, guarded_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def could_fail(empty_stream: DataFrame, text: str) -> bool:
    """Whether an expression could fail on a row of the stream, as far as its syntax tells."""
    return may_raise(empty_stream, NativePredicate(text))


def guard_arguments(
    empty_stream: DataFrame, conditions: Sequence[str], spec: PredicateSpec
) -> PredicateSpec:
    """Return a predicate with fallible arguments computed only where all conditions hold."""
    if not conditions:
        return spec
    arguments = tuple(
        guarded_by(conditions, text) if could_fail(empty_stream, f"{text} IS NULL") else text
        for text in spec.arguments
    )
    if arguments == spec.arguments:
        return spec
    return replace(spec, key=guarded_by(conditions, spec.key), arguments=arguments)
