"""What queries may name: streams, static tables and Python functions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException
from pyspark.sql import functions as F
from pyspark.sql.udf import UserDefinedFunction

from eddyline.errors import EngineError
from eddyline.spark.common.predicate_checks import kind_of_udf
from eddyline.spark.engine.atomic_file import read_checked, write_atomically
from eddyline.spark.engine.catalogue_entries import StreamEntry, TableEntry
from eddyline.spark.engine.checks import (
    check_columns,
    check_free,
    check_name,
    check_schema,
    read_delay_us,
    read_idle_us,
    read_schema,
)
from eddyline.spark.engine.fingerprint import fingerprint
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.functions import Function, check_timeout, limited
from eddyline.spark.engine.schema_changes import SchemaChange
from eddyline.spark.engine.settings import PinnedSettings
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Registry:
    """Registers streams, tables and functions of one engine, in the catalogue and for this process.

    Parameters
    ----------
    spark
        The session of the engine.
    folder
        The folder of the engine.
    settings
        Session settings that the queries are written under.

    """

    def __init__(self, spark: SparkSession, folder: EngineFolder, settings: PinnedSettings) -> None:
        self._spark = spark
        self._catalogue = folder.catalogue
        self._results = folder.results
        self._folder = folder
        self._started_streams = folder.path / "streams.json"
        #: Checks the settings of every session that an engine is given something of.
        self.settings = settings
        self._streams: dict[str, tuple[StreamInfo, DataFrame]] = {}
        #: The functions that were registered in this process, by name.
        self.functions: dict[str, Function] = {}

    # --- registration ------------------------------------------------------------------------

    def add_stream(
        self,
        name: str,
        df: DataFrame,
        time: str | None,
        delay: str | None,
        idle: str | None,
        check_users: Callable[[SchemaChange], None],
    ) -> bool:
        """Register a stream; return True if its columns differ from those in the catalogue.

        Columns may have been added. One that is gone, or has another type, is refused if stored
        results need it as it was, or a query, which `check_users` decides.
        """
        check_name(name, "stream")
        check_free(name, "stream", [*self._catalogue.streams, *self._catalogue.tables])
        if name in self._streams:
            raise EngineError(f"stream {name!r} is registered already")
        if name in self._catalogue.tables:
            raise EngineError(
                f"{name!r} is a table already; streams and tables need different names"
            )
        if not df.isStreaming:
            raise EngineError(
                f"stream {name!r} is a batch DataFrame; read it with spark.readStream, or register "
                f"it with engine.table"
            )
        self.settings.check(df.sparkSession)
        check_columns(name, df.columns)
        delay_us = read_delay_us(name, df.schema, time, delay)
        idle_us = read_idle_us(name, time, idle)
        schema = json.loads(df.schema.json())
        known = self._catalogue.streams.get(name)
        is_changed = False
        if known is not None:
            change = SchemaChange.between(name, read_schema(known.schema), df.schema)
            is_changed = bool(change.before or change.now)
            if is_changed:
                check_users(change)
                self._check_stored(change)
            else:
                schema = known.schema  # it may differ in what does not matter: nullability
        self._catalogue.set_stream(name, StreamEntry(schema, time, delay_us))
        info = StreamInfo(
            self._number_of(name), name, df.schema, self.settings.timezone, time, delay_us, idle_us
        )
        self._streams[name] = (info, df)
        return is_changed

    def _check_stored(self, change: SchemaChange) -> None:
        """Refuse a change of columns if stored results need them as they were."""
        parts = list(self._folder.log.state.parts.values())
        change.check_stored(self._number_of(change.stream), self._results.matches, parts)

    def changed_table(self, name: str, df: DataFrame) -> TableEntry | None:
        """Check a table; return its entry if it is new or has other rows, else None.

        The version of the entry is the one before the change, 0 for a new table.
        """
        check_name(name, "table")
        check_free(name, "table", [*self._catalogue.streams, *self._catalogue.tables])
        if name in self._catalogue.streams:
            raise EngineError(
                f"{name!r} is a stream already; streams and tables need different names"
            )
        if df.isStreaming:
            raise EngineError(f"table {name!r} is a streaming DataFrame; use engine.stream")
        self.settings.check(df.sparkSession)
        check_columns(name, df.columns)
        rows, hash_sum = fingerprint(df)
        known = self._catalogue.tables.get(name)
        if known is None:
            return TableEntry(json.loads(df.schema.json()), rows, hash_sum, version=0)
        check_schema(name, read_schema(known.schema), df.schema)
        if (known.rows, known.hash_sum) == (rows, hash_sum):
            return None
        return TableEntry(json.loads(df.schema.json()), rows, hash_sum, known.version)

    def store_table(self, name: str, df: DataFrame, entry: TableEntry) -> None:
        """Copy a table and let micro-batches use the copy from now on."""
        version, files = self._results.keep_table(name, df)
        self._catalogue.set_table(name, replace(entry, version=version, files=files))

    def add_function(
        self, name: str, function: Any, returns: str, spark_name: str, timeout_s: float | None
    ) -> None:
        """Register a Python function, with Spark under a name of its own."""
        check_timeout(name, timeout_s)
        check_name(name, "function")
        check_free(name, "function", self._catalogue.functions)
        if name in self.functions:
            raise EngineError(f"function {name!r} is registered already")
        if self._spark.sql(f"SHOW SYSTEM FUNCTIONS LIKE '{name}'").head() is not None:
            raise EngineError(f"{name!r} is a built-in function of Spark; choose another name")
        if not callable(function):
            raise EngineError(f"function {name!r} is {type(function).__name__}, not a function")
        is_udf = hasattr(function, "evalType") and hasattr(function, "func")
        try:
            with warnings.catch_warnings():  # PySpark warns about annotations that it cannot use
                warnings.simplefilter("ignore")
                udf = function if is_udf else F.udf(function, returns)
            kind, other_answers = kind_of_udf(udf, name)
            returned_type = udf.returnType.simpleString()
        except ParseException as error:
            raise EngineError(
                f"function {name!r}: returns={returns!r} is no type of Spark SQL; write for "
                f"example boolean, double, bigint or string"
            ) from error
        in_spark = UserDefinedFunction(
            limited(name, udf.func, kind, timeout_s),
            udf.returnType,
            name,
            udf.evalType,
            bool(getattr(udf, "deterministic", True)),
        )
        try:
            self._spark.udf.register(spark_name, in_spark)
        except PicklingError as error:
            raise EngineError(
                f"function {name!r} cannot be sent to workers: {error}. It must not hold locks, "
                f"connections or the session; make these inside the function"
            ) from error
        self.functions[name] = Function(
            name, udf.func, kind, returned_type, other_answers, timeout_s, in_spark
        )
        self._catalogue.add_function(name)

    # --- removal -----------------------------------------------------------------------------

    def remove_stream(self, name: str) -> None:
        """Remove a stream that no micro-batch has read.

        Spark's checkpoint has an offset for each source, in order, and stored rows have the number
        of their stream, so a stream that took part in a micro-batch keeps its place.
        """
        if self._folder.has_run:
            started = self._read_started() or list(self._catalogue.streams)
            if name in started:
                raise EngineError(
                    f"stream {name!r} took part in micro-batches, and Spark cannot go on without "
                    f"one of the streams that its checkpoint has offsets of: {', '.join(started)}. "
                    f"Leave it registered, its rows cost little without queries; or open a new "
                    f"engine in another folder"
                )
        elif name in self._catalogue.streams:
            # No micro-batch was planned, but sources may have noted where they begin, by number.
            self._folder.checkpoint.delete()
            self._started_streams.unlink(missing_ok=True)
        self._catalogue.remove("stream", name)
        self._streams.pop(name, None)
        self._streams = {
            other: (replace(info, number=self._number_of(other)), df)
            for other, (info, df) in self._streams.items()
        }

    def remove_table(self, name: str) -> None:
        """Remove a table; its copies stay."""
        self._catalogue.remove("table", name)

    def remove_function(self, name: str) -> None:
        """Remove a Python function."""
        self._catalogue.remove("function", name)
        self.functions.pop(name, None)

    # --- reading -----------------------------------------------------------------------------

    def streams(self) -> list[StreamInfo]:
        """Return the registered streams in the order of their numbers."""
        return sorted((info for info, _ in self._streams.values()), key=lambda info: info.number)

    def frames(self) -> list[DataFrame]:
        """Return the DataFrames of the registered streams in the order of their numbers."""
        return [self._streams[info.name][1] for info in self.streams()]

    def stream_named(self, name: str) -> StreamInfo:
        """Return a stream as it was registered, or as the catalogue knows it."""
        if name in self._streams:
            return self._streams[name][0]
        schema = read_schema(self._catalogue.streams[name].schema)
        return StreamInfo(self._number_of(name), name, schema, self.settings.timezone)

    def table_versions(self) -> dict[str, int]:
        """Return the version of each static table that is in use."""
        return {name: entry.version for name, entry in self._catalogue.tables.items()}

    def check_streams(self, readers_of: Callable[[str], list[str]]) -> None:
        """Refuse to start without all streams of the catalogue, or with new ones.

        Parameters
        ----------
        readers_of
            Returns the names of the queries that read a stream.

        """
        if not self._streams:
            raise EngineError("no streams; register one with engine.stream(name, df)")
        names = list(self._catalogue.streams)
        for name in names:
            if name not in self._streams:
                readers = readers_of(name)
                used = f" (queries {', '.join(readers[:5])})" if readers else ""
                raise EngineError(
                    f"stream {name!r} is in the catalogue{used} but was not registered; call "
                    f"engine.stream({name!r}, df) before start"
                )
        started = self._read_started()
        if started is None:
            write_atomically(self._started_streams, names)
            return
        added = sorted(set(names) - set(started))
        if added:
            raise EngineError(
                f"stream {added[0]!r} is new, but the offsets of this engine are of "
                f"{', '.join(started)}; open a new engine for another set of streams, or go on "
                f"without it: engine.remove_stream({added[0]!r})"
            )

    def _read_started(self) -> list[str] | None:
        """Return the streams that the engine was started with; None if it never was."""
        started = read_checked(self._started_streams)
        if started is not None and not isinstance(started, list):
            raise EngineError(f"{self._started_streams} is damaged; restore it from a backup")
        return started

    def _number_of(self, stream: str) -> int:
        return list(self._catalogue.streams).index(stream)
