"""`el.Engine`: continuous queries over shared streams, added and dropped while they run."""

from __future__ import annotations

import json
import os
import pathlib
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eddyline.errors import EngineError
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import CatalogueRepaired, EngineStarted
from eddyline.spark.common.predicates import kind_of_udf
from eddyline.spark.engine.batch_log import BatchLog, write_whole
from eddyline.spark.engine.catalogue import Catalogue, CataloguedQuery
from eddyline.spark.engine.checks import check_name, check_schema, read_delay_us
from eddyline.spark.engine.compiler import QueryCompiler
from eddyline.spark.engine.folder_lock import lock_folder
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.lookups import TableLookups
from eddyline.spark.engine.native_routes import NativeRoutes
from eddyline.spark.engine.planner import CompiledQuery, FlowPlanner
from eddyline.spark.engine.result_store import Stored, fingerprint
from eddyline.spark.engine.run import Run
from eddyline.spark.engine.sinks import kind_of
from eddyline.spark.engine.states import QueryState, QueryStates
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.sql.schemas import Schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Engine:
    """Runs many continuous queries over shared streams as one Spark streaming query.

    Everything that must survive is under the engine's folder: the catalogue of streams, tables,
    functions (by name) and queries, offsets, results and a journal. Opened again, it goes on where
    it was: register the same streams and functions, then start.

    In a classic session only: queries are taken in, planned and handed to sinks by the process
    that opened the engine, which in Spark Connect is not the one that runs micro-batches.

    Parameters
    ----------
    spark
        The session to run in.
    path
        A folder that this process and Spark can both read and write; made if it is not there.
    seed
        For whatever is drawn at random.

    Examples
    --------
    >>> import tempfile
    >>> rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    >>> engine = Engine(spark, tempfile.mkdtemp())
    >>> engine.stream("numbers", rows)
    >>> engine.query("small", "SELECT value FROM numbers WHERE value < 5")
    >>> run = engine.start(trigger="available now")
    >>> run.process_all_available()
    >>> run.results("small").count()
    5
    >>> engine.close()

    """

    def __init__(
        self, spark: SparkSession, path: str | os.PathLike[str], *, seed: int | None = None
    ) -> None:
        if ".connect." in type(spark).__module__:
            raise EngineError(
                "an engine needs a classic Spark session: it plans every micro-batch in the "
                "process that opened it; use SparkSession.builder.master(...)"
            )
        if "://" in str(path):
            raise EngineError(
                f"the engine's path {str(path)!r} is an address; give a folder that this process "
                f"can write itself, such as a mounted one"
            )
        self.spark = spark
        self.path = pathlib.Path(path).absolute()
        self._seed = seed
        self._lock_file = lock_folder(self.path)
        self._journal = Journal()
        self.catalogue = Catalogue(self.path)
        self.log = BatchLog(self.path / "batches")
        self.stored = Stored(spark, self.path)
        self._streams: dict[str, tuple[StreamInfo, DataFrame]] = {}
        self.functions: dict[str, Function] = {}
        self.sinks: dict[int, Callable[..., object]] = {}
        self._compiled: dict[int, CompiledQuery] = {}
        self._named_here: set[str] = set()
        self._lookups = TableLookups(self.stored, self.table_versions, self.note)
        self.compiler = QueryCompiler(
            spark, self.stored, self.functions, self._lookups, self.stream_named
        )
        self._run: Run | None = None
        self._planner: FlowPlanner | None = None
        self._timezone = str(spark.conf.get("spark.sql.session.timeZone"))
        if self.catalogue.damage:
            self.note(CatalogueRepaired(damage=self.catalogue.damage))
            warnings.warn(self.catalogue.damage, stacklevel=2)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Engine({str(self.path)!r}, {len(self.catalogue.names())} queries)"

    # --- what queries may name ---------------------------------------------------------------

    def stream(
        self, name: str, df: DataFrame, time: str | None = None, delay: str | None = None
    ) -> None:
        """Name a stream.

        Parameters
        ----------
        name
            How queries call it.
        df
            A streaming DataFrame.
        time
            The column that says when a row happened; the report then tells how many were late.
        delay
            How late a row may be, for example "10 seconds".

        """
        check_name(name, "stream")
        if self._run is not None and self._run.is_active:
            raise EngineError(f"stop the engine before registering the stream {name!r}")
        if name in self._streams:
            raise EngineError(f"stream {name!r} is registered already")
        if name in self.catalogue.tables:
            raise EngineError(
                f"{name!r} is a table already; streams and tables need their own names"
            )
        if not df.isStreaming:
            raise EngineError(
                f"stream {name!r} is a batch DataFrame; read it with spark.readStream, or register "
                f"it with engine.table"
            )
        folded = [column.lower() for column in df.columns]
        twice = sorted({column for column in df.columns if folded.count(column.lower()) > 1})
        if twice:
            raise EngineError(f"stream {name!r} has columns of the same name: {', '.join(twice)}")
        about = {
            "schema": json.loads(df.schema.json()),
            "time": time,
            "delay_us": read_delay_us(name, df.schema, time, delay),
        }
        known = self.catalogue.streams.get(name)
        if known is not None:
            check_schema(name, StructType.fromJson(known["schema"]), df.schema)
        self.catalogue.set_stream(name, {**about, "schema": known["schema"]} if known else about)
        number = list(self.catalogue.streams).index(name)
        info = StreamInfo(number, name, df.schema, self._timezone, time, about["delay_us"])
        self._streams[name] = (info, df)
        self._planner = None

    def table(self, name: str, df: DataFrame) -> None:
        """Name a static table that queries may join; what it holds now is copied.

        Registered again with other rows, it is replaced from the next micro-batch on.
        """
        check_name(name, "table")
        if name in self.catalogue.streams:
            raise EngineError(
                f"{name!r} is a stream already; streams and tables need their own names"
            )
        if df.isStreaming:
            raise EngineError(f"table {name!r} is a streaming DataFrame; use engine.stream")
        about = {"schema": json.loads(df.schema.json()), "fingerprint": fingerprint(df)}
        known = self.catalogue.tables.get(name)
        if known is not None:
            check_schema(name, StructType.fromJson(known["schema"]), df.schema)
            if known["fingerprint"] == about["fingerprint"]:
                return
        with self.catalogue.lock:
            self.catalogue.set_table(name, {**about, "version": self.stored.keep_table(name, df)})
            # Whether its keys can be shipped is to be found out anew.
            for number, compiled in list(self._compiled.items()):
                if name in compiled.query.tables:
                    del self._compiled[number]

    def function(self, name: str, function: Any, returns: str = "boolean") -> None:
        """Name a Python function that queries may call.

        Parameters
        ----------
        name
            How queries call it.
        function
            A plain function of values, or a PySpark `udf`, `pandas_udf` or `arrow_udf`.
        returns
            The type of its answer, for a plain function.

        """
        check_name(name, "function")
        if name in self.functions:
            raise EngineError(f"function {name!r} is registered already")
        if self.spark.sql(f"SHOW SYSTEM FUNCTIONS LIKE '{name}'").head() is not None:
            raise EngineError(f"{name!r} is a function of Spark's already; choose another name")
        if not callable(function):
            raise EngineError(f"function {name!r} is {type(function).__name__}, not a function")
        is_udf = hasattr(function, "evalType") and hasattr(function, "func")
        with warnings.catch_warnings():  # PySpark remarks on annotations that it cannot use
            warnings.simplefilter("ignore")
            made = function if is_udf else F.udf(function, returns)
        kind, other_answers = kind_of_udf(made, name)
        returns = made.returnType.simpleString()
        self.functions[name] = Function(name, made.func, kind, returns, other_answers)
        self.spark.udf.register(
            self.compiler.name_for_spark(name), getattr(made, "_unwrapped", made)
        )
        self.catalogue.set_function(name)

    # --- queries -----------------------------------------------------------------------------

    def query(self, name: str, sql: str, sink: Any = None) -> None:
        """Add a query; it sees the rows that are read from now on.

        Parameters
        ----------
        name
            Its own name, to drop it and read its results.
        sql
            SELECT ... FROM a stream [, static tables] [WHERE ...] [WINDOW n SECONDS].
        sink
            Where results go: None stores them under the engine's path, "count" only counts them, a
            function of (DataFrame, batch id) is called for each micro-batch that has any, and
            `el.callback(function)` calls a function with a list of rows.

        """
        self.add({name: sql}, sink)

    def add(self, queries: Mapping[str, str], sink: Any = None) -> None:
        """Add many queries at once, all of them or, if one of them is wrong, none."""
        fresh: list[tuple[str, str, str]] = []
        self._check_open()
        compiled: dict[str, CompiledQuery] = {}
        schemas = self._schemas()
        for name, text in queries.items():
            kind = kind_of(sink, name)
            if self._is_known(name, text, kind):
                continue
            compiled[name] = self.compiler.compile(0, name, text, kind, schemas)
            fresh.append((name, text, kind))
        with self.catalogue.lock:  # no micro-batch may see a query before its sink is known
            for entry in self.catalogue.add_queries(fresh) if fresh else []:
                compiled[entry.name].number = entry.number
                self._compiled[entry.number] = compiled[entry.name]
            self._named_here |= set(queries)
            if callable(sink):
                for name in queries:
                    self.sinks[self.catalogue.query(name).number] = sink

    def drop(self, name: str) -> None:
        """Drop a query; its name is free from now on."""
        entry = self.catalogue.drop_query(name)
        self._named_here.discard(name)
        self.sinks.pop(entry.number, None)
        self._compiled.pop(entry.number, None)

    def resume(self, name: str) -> None:
        """Let a paused query go on, with the rows that are read from now on."""
        entry = self.catalogue.query(name)
        self.compiled(entry)
        self._check_sink(entry)
        self.catalogue.resume(name)

    def queries(self) -> QueryStates:
        """Return all queries: what they are, whether they run, what they matched."""
        matched = self.log.matched
        states = []
        for name in self.catalogue.names():
            entry = self.catalogue.query(name)
            state = "paused" if entry.error else "active"
            states.append(
                QueryState(
                    name, entry.text, entry.sink, state, matched.get(entry.number, 0), entry.error
                )
            )
        return QueryStates(states)

    def results(self, name: str) -> DataFrame:
        """Return what a query has produced so far, all finished micro-batches of it."""
        entry = self.catalogue.query(name)
        if entry.sink == "count":
            raise EngineError(
                f'the matches of query {name!r} are only counted (sink="count"); see '
                f"engine.queries()"
            )
        compiled = self.compiled(entry)
        batches = {
            batch: record
            for batch, record in self.log.finished().items()
            if entry.number in record.counts
        }
        return self.stored.results(compiled, self.stream_of(compiled), batches)

    # --- running -----------------------------------------------------------------------------

    def start(self, trigger: str = "1 second") -> Run:
        """Start, or go on after a stop.

        Parameters
        ----------
        trigger
            How often to read the streams, such as "1 second"; or "available now": once, all there
            is.

        """
        self._check_open()
        if self._run is not None and self._run.is_active:
            raise EngineError("the engine runs already; stop it first")
        self._check_complete()
        infos = sorted((info for info, _ in self._streams.values()), key=lambda i: i.number)
        frames = [self._streams[info.name][1] for info in infos]
        if self._planner is None:  # kept from run to run: workers then keep their flows
            as_bytes = self.spark.conf.get("spark.sql.execution.pyspark.binaryAsBytes", "true")
            self._planner = FlowPlanner(
                uuid.uuid4().hex,
                infos,
                self.functions,
                self._lookups.operator_or_all,
                NativeRoutes(infos, self.note, self._seed),
                self._timezone,
                as_bytes == "true",
                self._seed,
            )
        self._run = Run(self, self._planner, infos, frames, trigger)
        streams = tuple(info.name for info in infos)
        self.note(EngineStarted(queries=len(self.catalogue.names()), streams=streams))
        return self._run

    def journal(self) -> Journal:
        """Return every decision since the engine was opened; all of them are in its folder."""
        return self._journal

    def note(self, event: Event, rows: int = 0) -> None:
        """Write a decision to the journal, in memory and on disk."""
        record = Record(event, rows)
        self._journal.write(record)
        with open(self.path / "journal.jsonl", "a") as file:
            file.write(json.dumps(record.to_dict()) + "\n")

    def close(self) -> None:
        """Stop and let go of the folder."""
        if self._run is not None:
            self._run.stop()
        if not self._lock_file.closed:
            self._lock_file.close()

    # --- inside ------------------------------------------------------------------------------

    def stream_of(self, compiled: CompiledQuery) -> StreamInfo:
        """Return the stream a query reads, as it was registered last."""
        return self.stream_named(compiled.query.stream)

    def stream_named(self, name: str) -> StreamInfo:
        """Return a stream, as it was registered last."""
        if name in self._streams:
            return self._streams[name][0]
        about = self.catalogue.streams[name]
        number = list(self.catalogue.streams).index(name)
        return StreamInfo(number, name, StructType.fromJson(about["schema"]), self._timezone)

    def compiled(self, entry: CataloguedQuery) -> CompiledQuery:
        """Return a query of the catalogue, ready to be run."""
        found = self._compiled.get(entry.number)  # another thread may drop it meanwhile
        if found is None:
            found = self.compiler.compile(
                entry.number, entry.name, entry.text, entry.sink, self._schemas()
            )
            self._compiled[entry.number] = found
        return found

    def table_versions(self) -> dict[str, int]:
        """Return which copy of each static table is in use."""
        return {name: about["version"] for name, about in self.catalogue.tables.items()}

    def _check_open(self) -> None:
        if self._lock_file.closed:
            raise EngineError("the engine is closed; open it again with el.Engine(spark, path)")

    def _is_known(self, name: str, text: str, kind: str) -> bool:
        """Say whether a query is in the catalogue from before; refuse another of its name."""
        check_name(name, "query")
        if not self.catalogue.has(name):
            return False
        entry = self.catalogue.query(name)
        if name in self._named_here:
            raise EngineError(f"query {name!r} exists already; drop it first, or choose a name")
        if (entry.text, entry.sink) != (text, kind):
            raise EngineError(
                f"query {name!r} is in the catalogue of {self.path} with another text or sink: "
                f"{entry.text!r}, {entry.sink}; drop it first, or choose another name"
            )
        return True

    def _schemas(self) -> Schemas:
        def types(about: Mapping[str, Any]) -> dict[str, str]:
            schema = StructType.fromJson(about["schema"])
            return {column.name: column.dataType.simpleString() for column in schema}

        return Schemas(
            {name: types(about) for name, about in self.catalogue.streams.items()},
            {name: types(about) for name, about in self.catalogue.tables.items()},
            {name: self.compiler.name_for_spark(name) for name in self.catalogue.functions},
            self._timezone,
        )

    def _check_complete(self) -> None:
        if not self._streams:
            raise EngineError("no streams; register one with engine.stream(name, df)")
        known = set(self.catalogue.streams)
        for name in self.catalogue.streams:
            if name not in self._streams:
                users = [q.name for q in self._live() if self.compiled(q).query.stream == name]
                used = f" (queries {', '.join(users[:5])})" if users else ""
                raise EngineError(
                    f"stream {name!r} is in the catalogue{used} but was not registered; call "
                    f"engine.stream({name!r}, df) before start"
                )
        started = self.path / "streams.json"
        if started.exists():
            before = json.loads(started.read_text())
            added = sorted(known - set(before))
            if added:
                raise EngineError(
                    f"stream {added[0]!r} is new, but the offsets of this engine are of "
                    f"{', '.join(before)}; open a new engine for another set of streams"
                )
        else:
            write_whole(started, list(self.catalogue.streams))
        for entry in self._live():
            self.compiled(entry)
            self._check_sink(entry)

    def _check_sink(self, entry: CataloguedQuery) -> None:
        if entry.sink in ("function", "callback") and entry.number not in self.sinks:
            raise EngineError(
                f"query {entry.name!r} hands its results to a function, which cannot be kept "
                f"on disk; call engine.query({entry.name!r}, sql, sink=...) again"
            )

    def _live(self) -> list[CataloguedQuery]:
        return [q for q in self.catalogue.queries.values() if not q.is_dropped and not q.error]
