"""What an engine keeps in Parquet: matching rows of the streams, and copies of static tables.

A row is stored once, with the numbers of all queries that it matches. The result of a query is
computed when it is read: Spark runs the query's own SELECT over its rows (`docs/decisions/0009`).
"""

from __future__ import annotations

import pathlib
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from eddyline.spark.common.columns import quoted
from eddyline.spark.engine.batch_log import BatchRecord
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.stored_files import check_files, list_files
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.sql.placeholders import ROWS, TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = "queries"
_MICROSECONDS = "yyyy-MM-dd HH:mm:ss.SSSSSS"
# Whatever the session says: timestamps keep their microseconds, and a finished copy is marked.
_WRITE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
}
# Whatever the session says: a damaged or missing file is an error, not fewer rows.
_READ = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false", "mergeSchema": "false"}


class ResultStore:
    """The Parquet files of one engine.

    Parameters
    ----------
    spark
        The session that reads and writes them.
    folder
        The folder of the engine.
    table_files
        Files of every version of a static table, by name and version, with their sizes.

    """

    def __init__(
        self,
        spark: SparkSession,
        folder: pathlib.Path,
        table_files: Mapping[tuple[str, int], Mapping[str, int]],
    ) -> None:
        self._spark = spark
        self._table_files = table_files
        self._matches = folder / "results"
        self._tables = folder / "tables"

    # --- matching rows -----------------------------------------------------------------------

    def write_matches(
        self, batch: int, matches: DataFrame, stored_columns: Mapping[int, Sequence[str]]
    ) -> dict[str, int]:
        """Store the matching rows of a micro-batch, replacing those of an attempt before.

        Returns the files that were written, with their sizes in bytes.

        Parameters
        ----------
        batch
            The micro-batch.
        matches
            `SOURCE`, a struct for each stream, and `QUERIES`.
        stored_columns
            For each stream, by number, the columns to keep; streams without any are left out.

        """
        structs = [
            F.when(
                F.col(SOURCE) == number,
                F.struct(*[F.col(f"s{number}.{quoted(column)}") for column in columns]),
            ).alias(f"s{number}")
            for number, columns in stored_columns.items()
            if columns
        ]
        writer = matches.select(SOURCE, *structs, QUERIES).write.mode("overwrite")
        writer = writer.option("partitionOverwriteMode", "static").partitionBy(SOURCE)
        writer = writer.options(**_WRITE)
        writer.parquet(str(self._folder_of(batch)))
        return list_files(self._folder_of(batch))

    def _folder_of(self, batch: int) -> pathlib.Path:
        return self._matches / f"batch={batch}"

    def results(
        self,
        compiled: CompiledQuery,
        stream: StreamInfo,
        batches: Mapping[int, BatchRecord],
    ) -> DataFrame:
        """Return the result of a query over some micro-batches."""
        by_tables: dict[tuple[tuple[str, int], ...], dict[int, BatchRecord]] = {}
        for batch, record in batches.items():
            versions = tuple((name, record.tables[name]) for name in compiled.query.tables)
            by_tables.setdefault(versions, {})[batch] = record
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
        """Return the optimised plan of a text over no rows, in a form that can be compared."""
        frame = self._over_nothing(compiled, stream.schema, text)
        plan = str(frame._jdf.queryExecution().optimizedPlan())
        plan = re.sub(r"_pyspark_\w+", "view", plan).replace("Join Cross", "Join Inner")
        numbers: dict[str, str] = {}  # attribute numbers differ from plan to plan
        return re.sub(r"#\d+", lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), plan)

    def _over_nothing(self, compiled: CompiledQuery, schema: StructType, text: str) -> DataFrame:
        rows = self._spark.createDataFrame([], schema)
        newest = {name: self.newest_version(name) for name in compiled.query.tables}
        return self._run(text, rows, newest)

    def _rows(
        self, compiled: CompiledQuery, stream: StreamInfo, batches: Mapping[int, BatchRecord]
    ) -> DataFrame:
        fields = [column for column in stream.schema if column.name in compiled.query.columns]
        schema = StructType(
            [
                StructField(stream.field, StructType(fields)),
                StructField(QUERIES, ArrayType(IntegerType())),
            ]
        )
        paths = [
            path for batch, record in batches.items() for path in self._paths(batch, record, stream)
        ]
        read = self._spark.read.options(**_READ).schema(schema).parquet(*paths)
        return read.filter(F.array_contains(QUERIES, compiled.number)).select(f"{stream.field}.*")

    def _paths(self, batch: int, record: BatchRecord, stream: StreamInfo) -> list[str]:
        """Return the files of a stream's rows in a micro-batch, after checking all of them."""
        folder, part = self._folder_of(batch), f"{SOURCE}={stream.number}"
        check_files(folder, record.files, f"micro-batch {batch}")
        files = [str(folder / name) for name in record.files if name.startswith(f"{part}/")]
        return files or [str(folder / part)]  # records of earlier versions do not list files

    def _run(self, text: str, rows: DataFrame, versions: Mapping[str, int]) -> DataFrame:
        tables = {TABLE + name: self.table(name, version) for name, version in versions.items()}
        return self._spark.sql(text, **{ROWS: rows}, **tables)

    # --- static tables -----------------------------------------------------------------------

    def table(self, name: str, version: int) -> DataFrame:
        """Return a version of a static table; raise if one of its files is missing or changed."""
        folder = self._tables / name / str(version)
        check_files(folder, self._table_files.get((name, version), {}), f"table {name!r}")
        return self._spark.read.options(**_READ).parquet(str(folder))

    def newest_version(self, name: str) -> int:
        """Return the newest version of a table; 0 if there is none."""
        folder = self._tables / name
        versions = [int(f.name) for f in folder.glob("*") if f.name.isdigit()]
        return max((v for v in versions if (folder / str(v) / "_SUCCESS").exists()), default=0)

    def keep_table(self, name: str, df: DataFrame) -> tuple[int, dict[str, int]]:
        """Write a new version of a table; return its number and its files."""
        version = self.newest_version(name) + 1
        folder = self._tables / name / str(version)
        shutil.rmtree(folder, ignore_errors=True)
        df.write.options(**_WRITE).parquet(str(folder))
        return version, list_files(folder)


def fingerprint(df: DataFrame) -> tuple[int, str]:
    """Return a number of rows and a sum of hashes: equal for equal rows in any order."""
    exact = {"timestampFormat": _MICROSECONDS, "timestampNTZFormat": _MICROSECONDS}
    hashed = F.xxhash64(F.to_json(F.struct("*"), exact)).cast("decimal(38,0)")
    row = df.select(F.count(F.lit(1)), F.sum(hashed)).head()
    return int(row[0]), str(row[1])
