"""Which types of columns the results of an engine can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, AtomicType, DataType, MapType, StructType

from eddyline.errors import QueryError
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_storable(spark: SparkSession, compiled: CompiledQuery, stream: StreamInfo) -> None:
    """Refuse a query whose matching rows Parquet could not hold."""
    if not compiled.is_stored:
        return
    for column in stream.schema:
        if column.name in compiled.query.columns and not is_storable(spark, column.dataType):
            raise QueryError(
                f"the column {column.name!r} is {column.dataType.simpleString()}, which Parquet "
                f"cannot store; select other columns, or cast it in the stream"
            )


def is_storable(spark: SparkSession, data_type: DataType) -> bool:
    """Return True if Parquet can store columns of a type.

    Examples
    --------
    >>> from pyspark.sql.types import CalendarIntervalType, IntegerType
    >>> is_storable(spark, ArrayType(IntegerType())), is_storable(spark, CalendarIntervalType())
    (True, False)

    """
    if isinstance(data_type, AtomicType):
        return True
    if isinstance(data_type, ArrayType):
        return is_storable(spark, data_type.elementType)
    if isinstance(data_type, MapType):
        return all(is_storable(spark, kind) for kind in (data_type.keyType, data_type.valueType))
    if isinstance(data_type, StructType):
        return bool(data_type.fields) and all(is_storable(spark, f.dataType) for f in data_type)
    parquet = spark._jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
    java_type = spark._jsparkSession.parseDataType(data_type.json())
    return bool(parquet.supportDataType(java_type))
