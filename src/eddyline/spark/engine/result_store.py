"""What an engine keeps in Parquet: matching rows of the streams, and copies of static tables.

A row is stored once, with the numbers of all queries that it matches. The result of a query is
computed when it is read: Spark runs the query's own SELECT over its rows (`docs/decisions/0009`).
"""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from eddyline.errors import EngineError
from eddyline.spark.common.columns import quoted
from eddyline.spark.engine.causes import first_cause
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.stored_files import alone_folder, check_files, list_written
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.state.join_plan import late_number
from eddyline.spark.state.result_writer import late_field
from eddyline.sql.placeholders import ROWS, TABLE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

QUERIES = "queries"
EMPTY_FRAMES_MAX = 100
#: Where a stored row is: name of its file, and its index in the file.
FILE, INDEX = "_metadata.file_name", "_metadata.row_index"
# Whatever the session says: timestamps keep their microseconds; a finished table is marked.
_WRITE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
}
_WRITE_ROWS = {**_WRITE, "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
# Whatever the session says: a damaged or missing file is an error, not fewer rows.
_READ = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}


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
        self._root = folder
        self._table_files = table_files
        #: The folder of matching rows.
        self.matches = folder / "results"
        self._tables = folder / "tables"
        self._empty_frames: dict[str, DataFrame] = {}

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
        writer = writer.options(**_WRITE_ROWS)
        writer.parquet(str(self._folder_of(batch)))
        return list_written(self._folder_of(batch), self._root)

    def write_alone(
        self, batch: int, rows: DataFrame, compiled: CompiledQuery, stream: StreamInfo
    ) -> dict[str, int]:
        """Store rows of a micro-batch for one query, in files of its own; return these.

        Parameters
        ----------
        batch
            The micro-batch.
        rows
            The columns of the stream.
        compiled, stream
            The query, and the stream that it reads.

        """
        struct = F.struct(*[F.col(quoted(name)) for name in compiled.query.columns])
        numbers = F.array(F.lit(compiled.number)).alias(QUERIES)
        folder = self._folder_of(batch, compiled.number)
        writer = rows.select(struct.alias(stream.field), numbers).write.mode("overwrite")
        writer = writer.options(**_WRITE_ROWS)
        try:
            writer.parquet(str(folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            files = list_written(folder, self._root)
        return files

    def _folder_of(self, batch: int, alone: int | None = None) -> pathlib.Path:
        name = f"batch={batch}"
        return self.matches / name if alone is None else alone_folder(self.matches, name, alone)

    def results(
        self,
        compiled: CompiledQuery,
        stream: StreamInfo,
        parts: Iterable[ResultPart],
        within: Column | None = None,
    ) -> DataFrame:
        """Return the result of a query in some parts of the stored results.

        Parameters
        ----------
        compiled, stream
            The query, and the stream that it reads.
        parts
            The parts.
        within
            A condition on `FILE` and `INDEX`, the places where rows are stored; None for all rows.

        """
        by_tables: dict[tuple[tuple[str, int], ...], list[ResultPart]] = {}
        for part in parts:
            versions = tuple((name, part.tables[name]) for name in compiled.query.tables)
            by_tables.setdefault(versions, []).append(part)
        frames = [
            self._run(
                compiled.query.result, self.rows(compiled, stream, own, within), dict(versions)
            )
            for versions, own in by_tables.items()
        ]
        if not frames:
            frames = [self.empty_result(compiled, stream)]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def empty_result(self, compiled: CompiledQuery, stream: StreamInfo) -> DataFrame:
        """Return the result over no rows."""
        fields = [column for column in stream.schema if column.name in compiled.query.columns]
        schema = StructType(fields) if compiled.join is None else compiled.join.row_schema
        (frame,) = self.over_nothing(compiled, {ROWS: schema}, [compiled.query.result])
        return frame

    def over_nothing(
        self, compiled: CompiledQuery, schemas: Mapping[str, StructType], texts: Sequence[str]
    ) -> list[DataFrame]:
        """Return what SQL texts give over no rows; their plans have the same leaves.

        Parameters
        ----------
        compiled
            The query.
        schemas
            For each placeholder of rows, their schema.
        texts
            SQL with these placeholders.

        """
        rows = {name: self._empty_frame(schema) for name, schema in schemas.items()}
        newest = {name: self.newest_version(name) for name in compiled.query.tables}
        tables = self._tables_at(newest)
        return [self._spark.sql(text, **rows, **tables) for text in texts]

    def _empty_frame(self, schema: StructType) -> DataFrame:
        """Return a DataFrame without rows, made once: making one takes Spark a plan."""
        key = schema.json()
        if key not in self._empty_frames:
            if len(self._empty_frames) >= EMPTY_FRAMES_MAX:
                self._empty_frames.clear()
            self._empty_frames[key] = self._spark.createDataFrame([], schema)
        return self._empty_frames[key]

    def rows(
        self,
        compiled: CompiledQuery,
        stream: StreamInfo,
        parts: Sequence[ResultPart],
        within: Column | None = None,
        with_places: bool = False,
    ) -> DataFrame:
        """Return the stored rows of a query, without those that its SELECT failed on.

        With `with_places`, `FILE` and `INDEX` are further columns.
        """
        stored = _stored_fields(compiled, stream)
        fields = [StructField(name, schema) for name, schema in stored.items()]
        schema = StructType([*fields, StructField(QUERIES, ArrayType(IntegerType()))])
        paths = [path for part in parts for path in self._paths(part, stream, compiled)]
        read = self._spark.read.options(**_READ).schema(schema).parquet(*paths)
        read = read.filter(F.array_contains(QUERIES, compiled.number))
        for part in parts:
            for file, indexes in part.excluded_by_file(compiled.number).items():
                read = read.filter((F.col(FILE) != file) | ~F.col(INDEX).isin(indexes))
        if within is not None:
            read = read.filter(within)
        places = [F.col(FILE).alias("file"), F.col(INDEX).alias("index")] if with_places else []
        if compiled.join is None:
            return read.select(f"{stream.field}.*", *places)
        roles = [F.col(field.name).alias(field.alias) for field in compiled.join.fields]
        return read.select(*roles, *places)

    def late(self, stream: StreamInfo, parts: Sequence[ResultPart]) -> DataFrame:
        """Return the late rows of a stream in some parts; columns that no join read are NULL."""
        names = [(self.matches / part.folder, part) for part in parts]
        for folder, part in names:
            check_files(folder, part.join_files, f"micro-batch {part.batch}")
        paths = [str(folder / name) for folder, part in names for name in part.join_files]
        if not paths:
            return self._spark.createDataFrame([], stream.schema)
        struct = StructField(late_field(stream.number), stream.schema)
        numbers = StructField(QUERIES, ArrayType(IntegerType()))
        read = self._spark.read.options(**_READ).schema(StructType([struct, numbers]))
        rows = read.parquet(*paths).filter(F.array_contains(QUERIES, late_number(stream.number)))
        return rows.select(f"{late_field(stream.number)}.*")

    def shared_rows(self, part: ResultPart, stream: StreamInfo) -> DataFrame:
        """Return all rows of a stream in a part that are stored for all queries together."""
        struct = StructField(stream.field, stream.schema)
        numbers = StructField(QUERIES, ArrayType(IntegerType()))
        read = self._spark.read.options(**_READ).schema(StructType([struct, numbers]))
        return read.parquet(*self._paths(part, stream))

    def _paths(
        self, part: ResultPart, stream: StreamInfo, compiled: CompiledQuery | None = None
    ) -> list[str]:
        """Return the files of a stream's rows in a part, after checking all of them.

        Files of its own, if the query has such; files of combinations, if it joins streams.
        """
        folder, files = self.matches / part.folder, part.files
        source = f"{SOURCE}={stream.number}"
        if compiled is not None and compiled.join is not None:
            files = part.join_files
        elif compiled is not None and compiled.number in part.alone:
            folder = alone_folder(self.matches, part.folder, compiled.number)
            files = part.alone[compiled.number]
        else:
            files = {n: size for n, size in (files or {}).items() if n.startswith(f"{source}/")}
        check_files(folder, files, f"micro-batch {part.batch}")
        # Records of earlier versions do not list files.
        return [str(folder / name) for name in files] or [str(folder / source)]

    def _run(self, text: str, rows: DataFrame, versions: Mapping[str, int]) -> DataFrame:
        return self._spark.sql(text, **{ROWS: rows}, **self._tables_at(versions))

    def _tables_at(self, versions: Mapping[str, int]) -> dict[str, DataFrame]:
        return {TABLE + name: self.table(name, version) for name, version in versions.items()}

    # --- static tables -----------------------------------------------------------------------

    def table(self, name: str, version: int) -> DataFrame:
        """Return a version of a static table; raise if one of its files is missing or changed."""
        folder = self._tables / name / str(version)
        check_files(folder, self._table_files.get((name, version), {}), f"table {name!r}")
        try:
            return self._spark.read.options(**_READ).parquet(str(folder))
        except Exception as error:
            raise EngineError(
                f"the copy of table {name!r} in {folder} cannot be read: {first_cause(error)}; "
                f"restore it from a backup, or register the table again"
            ) from error

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
        return version, list_written(folder, self._root)


def _stored_fields(compiled: CompiledQuery, stream: StreamInfo) -> dict[str, StructType]:
    """Return the structs that hold the rows of a query, by name."""
    if compiled.join is not None:
        return {field.name: field.schema for field in compiled.join.fields}
    fields = [column for column in stream.schema if column.name in compiled.query.columns]
    return {stream.field: StructType(fields)}
