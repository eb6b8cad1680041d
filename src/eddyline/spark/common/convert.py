"""Arrow columns as PySpark itself would hand them to a Python function.

PySpark's own converters are used where they exist, so that a function called by Eddyline gets
the same values as when Spark calls it. They are private to PySpark; this file is the only one
that touches them, and it copes with the versions that Eddyline supports.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eddyline.operators import ColumnReader


class SparkColumnReader(ColumnReader):
    """Reads a column of a Spark type.

    Parameters
    ----------
    name
        Name of the column in errors.
    spark_type
        Its type in the DataFrame.
    timezone
        The session's time zone, for timestamps in pandas.
    binary_as_bytes
        The session's setting of that name: bytes or bytearray for binary values.

    """

    def __init__(
        self, name: str, spark_type: DataType, timezone: str, binary_as_bytes: bool = True
    ) -> None:
        super().__init__(name)
        self._spark_type = spark_type
        self._timezone = timezone
        self.mutable = isinstance(spark_type, ArrayType | MapType | StructType) or not (
            binary_as_bytes
        )
        self._convert = ArrowTableToRowsConversion._create_converter(
            spark_type, none_on_identity=True, binary_as_bytes=binary_as_bytes
        )

    def to_objects(self, array: pa.Array) -> list[Any]:
        """Return the values as a row-at-a-time Python UDF would get them."""
        values: list[Any] = array.to_pylist()
        convert = self._convert
        return values if convert is None else [convert(value) for value in values]

    def to_pandas(self, array: pa.Array) -> Any:
        """Return the values as a pandas UDF would get them; a struct as a DataFrame."""
        try:
            from pyspark.sql.conversion import ArrowArrayToPandasConversion
        except ImportError:
            return self._read_pandas_before_4_2(array)
        return ArrowArrayToPandasConversion.convert(
            array,
            self._spark_type,
            ser_name=self.name,
            timezone=self._timezone,
            struct_in_pandas="dict",
            ndarray_as_list=False,
            df_for_struct=True,
        )

    def _read_pandas_before_4_2(self, array: pa.Array) -> Any:
        import pandas as pd
        from pyspark.sql.pandas.types import _create_converter_to_pandas

        def read(values: pa.Array, spark_type: DataType) -> Any:
            converter = _create_converter_to_pandas(
                data_type=spark_type,
                nullable=True,
                timezone=self._timezone,
                struct_in_pandas="dict",
                error_on_duplicated_field_names=True,
                ndarray_as_list=False,
            )
            return converter(
                values.to_pandas(date_as_object=True, coerce_temporal_nanoseconds=True)
            )

        if not isinstance(self._spark_type, StructType):
            return read(array, self._spark_type)
        parts = [
            read(values, field.dataType).rename(field.name)
            for values, field in zip(array.flatten(), self._spark_type, strict=True)
        ]
        return pd.concat(parts, axis=1)
