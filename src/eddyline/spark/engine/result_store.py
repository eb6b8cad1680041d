"""What an engine keeps in Parquet: matching rows of the streams, and copies of static tables.

A row is stored once, however many queries it matches, together with their numbers. A query's result
is made of its rows when it is asked for: by Spark, from the query's own SELECT.
"""

from __future__ import annotations

import pathlib
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from eddyline.spark.engine.batch_log import BatchRecord
from eddyline.spark.engine.planner import CompiledQuery
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.sql.placeholders import ROWS, TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = "queries"
_MICROSECONDS = "yyyy-MM-dd HH:mm:ss.SSSSSS"


class Stored:
    """The Parquet files of one engine."""

    def __init__(self, spark: SparkSession, folder: pathlib.Path) -> None:
        self._spark = spark
        self._results = folder / "results"
        self._tables = folder / "tables"

    # --- matching rows -----------------------------------------------------------------------

    def folder_of(self, batch: int) -> str:
        """Return where a micro-batch's rows go."""
        return str(self._results / f"batch={batch}")

    def results(
        self,
        compiled: CompiledQuery,
        stream: StreamInfo,
        batches: Mapping[int, BatchRecord],
    ) -> DataFrame:
        """Return a query's result over some micro-batches."""
        by_tables: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for batch, record in batches.items():
            versions = tuple((name, record.tables[name]) for name in compiled.query.tables)
            by_tables.setdefault(versions, []).append(batch)
        parts = [
            self._run(compiled.query.result, self._rows(compiled, stream, own), dict(versions))
            for versions, own in by_tables.items()
        ]
        if not parts:
            parts = [self.empty_result(compiled, stream)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        return whole

    def empty_result(self, compiled: CompiledQuery, stream: StreamInfo) -> DataFrame:
        """Return the result over no rows."""
        fields = [column for column in stream.schema if column.name in compiled.query.columns]
        return self._over_nothing(compiled, StructType(fields), compiled.query.result)

    def analysed(self, compiled: CompiledQuery, stream: StreamInfo, text: str) -> str:
        """Return what Spark makes of the query, or of a variant of it, as text to compare."""
        frame = self._over_nothing(compiled, stream.schema, text)
        plan = str(frame._jdf.queryExecution().optimizedPlan())
        plan = re.sub(r"_pyspark_\w+", "view", plan).replace("Join Cross", "Join Inner")
        numbers: dict[str, str] = {}  # of attributes, as they come: they differ from plan to plan
        return re.sub(r"#\d+", lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), plan)

    def _over_nothing(self, compiled: CompiledQuery, schema: StructType, text: str) -> DataFrame:
        rows = self._spark.createDataFrame([], schema)
        newest = {name: self.newest_version(name) for name in compiled.query.tables}
        return self._run(text, rows, newest)

    def _rows(
        self, compiled: CompiledQuery, stream: StreamInfo, batches: Sequence[int]
    ) -> DataFrame:
        fields = [column for column in stream.schema if column.name in compiled.query.columns]
        schema = StructType(
            [
                StructField(stream.field, StructType(fields)),
                StructField(QUERIES, ArrayType(IntegerType())),
            ]
        )
        folders = [f"{self.folder_of(batch)}/{SOURCE}={stream.number}" for batch in batches]
        read = self._spark.read.schema(schema).parquet(*folders)
        return read.filter(F.array_contains(QUERIES, compiled.number)).select(f"{stream.field}.*")

    def _run(self, text: str, rows: DataFrame, versions: Mapping[str, int]) -> DataFrame:
        tables = {TABLE + name: self.table(name, version) for name, version in versions.items()}
        return self._spark.sql(text, **{ROWS: rows}, **tables)

    # --- static tables -----------------------------------------------------------------------

    def table(self, name: str, version: int) -> DataFrame:
        """Return a static table as it was registered."""
        return self._spark.read.parquet(str(self._tables / name / str(version)))

    def newest_version(self, name: str) -> int:
        """Return the newest version of a table; 0 if there is none."""
        folder = self._tables / name
        versions = [int(f.name) for f in folder.glob("*") if f.name.isdigit()]
        return max((v for v in versions if (folder / str(v) / "_SUCCESS").exists()), default=0)

    def keep_table(self, name: str, df: DataFrame) -> int:
        """Write a new version of a table; return its number."""
        version = self.newest_version(name) + 1
        folder = self._tables / name / str(version)
        shutil.rmtree(folder, ignore_errors=True)
        df.write.parquet(str(folder))
        return version


def fingerprint(df: DataFrame) -> list[Any]:
    """Return what two tables of equal rows share, whatever the order of the rows."""
    exact = {"timestampFormat": _MICROSECONDS, "timestampNTZFormat": _MICROSECONDS}
    hashed = F.xxhash64(F.to_json(F.struct("*"), exact)).cast("decimal(38,0)")
    row = df.select(F.count(F.lit(1)), F.sum(hashed)).head()
    return [int(row[0]), str(row[1])]
