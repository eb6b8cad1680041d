"""Filtering by a native condition, with an error that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eddyline.errors import InvalidPredicateError
from eddyline.spark.common.predicates import NativePredicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def filter_by(df: DataFrame, predicate: NativePredicate) -> DataFrame:
    """Filter by a native condition; name it in the error if Spark refuses it."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        filtered = df.filter(predicate.column())
        filtered.schema  # noqa: B018  Connect analyses a plan only when asked for its schema
    except (AnalysisException, ParseException) as error:
        raise InvalidPredicateError(
            f"predicate {predicate.name!r} cannot be evaluated by Spark: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return filtered
