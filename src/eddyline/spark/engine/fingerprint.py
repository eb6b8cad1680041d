"""Whether two DataFrames have the same rows, in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MICROSECONDS = "yyyy-MM-dd HH:mm:ss.SSSSSS"


def fingerprint(df: DataFrame) -> tuple[int, str]:
    """Return a number of rows and a sum of hashes: equal for equal rows in any order."""
    exact = {"timestampFormat": _MICROSECONDS, "timestampNTZFormat": _MICROSECONDS}
    hashed = F.xxhash64(F.to_json(F.struct("*"), exact)).cast("decimal(38,0)")
    row = df.select(F.count(F.lit(1)), F.sum(hashed)).head()
    return int(row[0]), str(row[1])
