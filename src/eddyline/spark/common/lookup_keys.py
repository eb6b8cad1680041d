"""The keys of a small table, collected on the driver and shipped to the workers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FractionalType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eddyline.errors import LookupTableError
from eddyline.spark.common.columns import quoted
from eddyline.spark.common.operator_plans import LookupPlan
from eddyline.spark.common.predicates import LookupPredicate

_KEY_TYPES = (
    BooleanType,
    NumericType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


def plan_lookup(
    predicate: LookupPredicate, types: Sequence[DataType], columns: tuple[int, ...]
) -> LookupPlan:
    """Return the plan of a lookup of the given columns; its keys are cast to the given types."""
    casts = [
        F.col(quoted(key)).cast(common).alias(key)
        for key, common in zip(predicate.keys, types, strict=True)
    ]
    # A NULL equals nothing. (Not `dropna`, which would also drop NaN.)
    known = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in predicate.keys)
    distinct = predicate.table.select(*casts).filter(known).distinct()
    keys = distinct.limit(predicate.rows_max + 1).toArrow()
    if keys.num_rows > predicate.rows_max:
        raise LookupTableError(
            f"{predicate.name}: the table has more than {predicate.rows_max:,} distinct keys, "
            f"too many to ship to every worker; join it with Spark instead, or raise rows_max"
        )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_table(keys)
    return LookupPlan(predicate.name, columns, sink.getvalue().to_pybytes(), predicate.anti)


def common_type(left: DataType, right: DataType, predicate: str, column: str) -> DataType:
    """Return the type in which two key columns are compared, as a join would."""
    for side in (left, right):
        collation = getattr(side, "collation", "UTF8_BINARY")
        if not isinstance(side, _KEY_TYPES) or collation != "UTF8_BINARY":
            raise LookupTableError(
                f"{predicate}: key {column!r} has the type {side.simpleString()}, which a lookup "
                f"cannot compare; join the table with Spark instead"
            )
    if left == right or (isinstance(left, StringType) and isinstance(right, StringType)):
        return left
    if isinstance(left, IntegralType) and isinstance(right, IntegralType):
        return LongType()
    fractional = isinstance(left, FractionalType) or isinstance(right, FractionalType)
    decimal = isinstance(left, DecimalType) or isinstance(right, DecimalType)
    numeric = isinstance(left, NumericType) and isinstance(right, NumericType)
    if numeric and fractional and not decimal:
        return DoubleType()
    raise LookupTableError(
        f"{predicate}: key {column!r} is {left.simpleString()} in the DataFrame and "
        f"{right.simpleString()} in the table; cast one of them so that both are the same"
    )
