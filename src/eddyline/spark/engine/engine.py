"""`el.Engine`: continuous queries over shared streams, added and dropped while they run."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import re
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructType, TimestampNTZType, TimestampType

from eddyline.errors import EngineError, LookupTableError, QueryError
from eddyline.journal import Journal, Record
from eddyline.spark.engine.batch_log import BatchLog, write_whole
from eddyline.spark.engine.catalogue import Catalogue, CataloguedQuery
from eddyline.spark.engine.flow_plan import CompiledQuery, FlowPlanner, StreamInfo
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.run import Run
from eddyline.spark.engine.sinks import kind_of
from eddyline.spark.engine.states import QueryState, QueryStates
from eddyline.spark.engine.stored import Stored, fingerprint
from eddyline.spark.native import may_raise
from eddyline.spark.plan import common_type, plan_lookup
from eddyline.spark.predicates import (
    LOOKUP_ROWS_MAX,
    LookupPredicate,
    NativePredicate,
    kind_of_udf,
)
from eddyline.spark.worker import OperatorPlan
from eddyline.sql import STREAM, LookupSpec, PredicateSpec, Query, Schemas, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DELAY = re.compile(r"\s*(\d+)\s*(microsecond|millisecond|second|minute|hour|day)s?\s*")
_UNIT_US = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
}


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
        self._suffix = f"__{uuid.uuid4().hex[:8]}"
        self._lock_file = self._lock()
        self._journal = Journal()
        self.catalogue = Catalogue(self.path)
        self.log = BatchLog(self.path / "batches")
        self.stored = Stored(spark, self.path)
        self._streams: dict[str, tuple[StreamInfo, DataFrame]] = {}
        self.functions: dict[str, Function] = {}
        self.sinks: dict[int, Callable[..., object]] = {}
        self._compiled: dict[int, CompiledQuery] = {}
        self._named_here: set[str] = set()
        self._shipped: dict[tuple[str, int, tuple[str, ...]], OperatorPlan] = {}
        self._run: Run | None = None
        self._planner: FlowPlanner | None = None
        self._timezone = str(spark.conf.get("spark.sql.session.timeZone"))
        if self.catalogue.damage:
            self.note("damage", what=self.catalogue.damage)
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
        _check_name(name, "stream")
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
            "delay_us": _delay_us(name, df.schema, time, delay),
        }
        known = self.catalogue.streams.get(name)
        if known is not None:
            self._check_schema(name, StructType.fromJson(known["schema"]), df.schema)
        self.catalogue.set_stream(name, {**about, "schema": known["schema"]} if known else about)
        number = list(self.catalogue.streams).index(name)
        info = StreamInfo(number, name, df.schema, self._timezone, time, about["delay_us"])
        self._streams[name] = (info, df)
        self._planner = None

    def table(self, name: str, df: DataFrame) -> None:
        """Name a static table that queries may join; what it holds now is copied.

        Registered again with other rows, it is replaced from the next micro-batch on.
        """
        _check_name(name, "table")
        if name in self.catalogue.streams:
            raise EngineError(
                f"{name!r} is a stream already; streams and tables need their own names"
            )
        if df.isStreaming:
            raise EngineError(f"table {name!r} is a streaming DataFrame; use engine.stream")
        about = {"schema": json.loads(df.schema.json()), "fingerprint": fingerprint(df)}
        known = self.catalogue.tables.get(name)
        if known is not None:
            self._check_schema(name, StructType.fromJson(known["schema"]), df.schema)
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
        _check_name(name, "function")
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
        self.spark.udf.register(self._name_for_spark(name), getattr(made, "_unwrapped", made))
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
        compiled: dict[str, CompiledQuery] = {}
        schemas = self._schemas()
        for name, text in queries.items():
            kind = kind_of(sink, name)
            if self._is_known(name, text, kind):
                continue
            compiled[name] = self._compile(0, name, text, kind, schemas)
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
                self._lookup_or_all,
                self._timezone,
                as_bytes == "true",
                self._seed,
            )
        self._run = Run(self, self._planner, infos, frames, trigger)
        self.note("start", queries=len(self.catalogue.names()), streams=[i.name for i in infos])
        return self._run

    def journal(self) -> Journal:
        """Return every decision since the engine was opened; all of them are in its folder."""
        return self._journal

    def note(self, kind: str, rows: int = 0, **numbers: Any) -> None:
        """Write a decision down."""
        record = Record(kind, rows, numbers)
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
        name = compiled.query.stream
        if name in self._streams:
            return self._streams[name][0]
        about = self.catalogue.streams[name]
        number = list(self.catalogue.streams).index(name)
        return StreamInfo(number, name, StructType.fromJson(about["schema"]), self._timezone)

    def compiled(self, entry: CataloguedQuery) -> CompiledQuery:
        """Return a query of the catalogue, ready to be run."""
        found = self._compiled.get(entry.number)  # another thread may drop it meanwhile
        if found is None:
            found = self._compile(entry.number, entry.name, entry.text, entry.sink, self._schemas())
            self._compiled[entry.number] = found
        return found

    def table_versions(self) -> dict[str, int]:
        """Return which copy of each static table is in use."""
        return {name: about["version"] for name, about in self.catalogue.tables.items()}

    def _lock(self) -> Any:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = open(self.path / "engine.lock", "a+")  # noqa: SIM115  held as long as open
        except OSError as error:
            raise EngineError(
                f"cannot open an engine in {self.path}: {error.strerror or error}"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise EngineError(
                f"the engine in {self.path} is open already ({holder}); close it there, or use "
                f"another folder"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        return file

    def _check_open(self) -> None:
        if self._lock_file.closed:
            raise EngineError("the engine is closed; open it again with el.Engine(spark, path)")

    def _is_known(self, name: str, text: str, kind: str) -> bool:
        """Say whether a query is in the catalogue from before; refuse another of its name."""
        _check_name(name, "query")
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
            {name: self._name_for_spark(name) for name in self.catalogue.functions},
            self._timezone,
        )

    def _name_for_spark(self, function: str) -> str:
        """Return a name that no other engine of the session uses."""
        return f"{function}{self._suffix}"

    def shown(self, text: str) -> str:
        """Return an expression as its author would write it."""
        return text.replace(f"`{STREAM}`.", "").replace(self._suffix, "")

    def _compile(
        self, number: int, name: str, text: str, sink: str, schemas: Schemas
    ) -> CompiledQuery:
        """Parse a query and check with Spark whatever only Spark can."""
        self._check_open()
        try:
            query = parse(text, schemas)
            return self._check_with_spark(CompiledQuery(number, name, query, sink))
        except QueryError as error:
            raise QueryError(f"query {name!r}: {self.shown(str(error))}") from None
        except (AnalysisException, ParseException) as error:
            said = str(error).split("\n")[0].split(";")[0]
            raise QueryError(f"query {name!r}: {self.shown(said)}") from None

    def _check_with_spark(self, compiled: CompiledQuery) -> CompiledQuery:
        query = compiled.query
        missing = sorted(set(query.functions) - set(self.functions))
        if missing:
            raise QueryError(
                f"the function {missing[0]!r} is not registered in this process; call "
                f"engine.function({missing[0]!r}, ...) first"
            )
        # What is compared with constants only was taken over exactly.
        if query.predicates or not query.is_plain or "\\" in query.text or "''" in query.text:
            self._check_meaning(compiled)
        types: dict[str, DataType] = {}
        if query.predicates:
            schema = self.stream_of(compiled).schema
            probe = self.spark.createDataFrame([], schema).alias(STREAM)
            query = self._check_predicates(probe, query)
            for text in {t for spec in query.predicates for t in spec.arguments}:
                types[text] = probe.select(F.expr(text)).schema[0].dataType
        query = replace(query, lookups=tuple(self._shippable(query)))
        return replace(compiled, query=query, argument_types=types)

    def _check_meaning(self, compiled: CompiledQuery) -> None:
        """Make sure that Spark takes the query as it was written for what was understood."""
        written, understood = (
            self.stored.analysed(compiled, self.stream_of(compiled), text)
            for text in (compiled.query.written, compiled.query.understood)
        )
        for node in ("Aggregate", "Window"):
            if re.search(rf"^\W*{node}\b", written, re.MULTILINE):
                raise QueryError(
                    "it needs more than one row to compute something, and every row is judged by "
                    "itself; aggregate run.results(...)"
                )
        if written != understood:
            raise QueryError(
                f"it was not understood as Spark understands it, but as "
                f"{self.shown(compiled.query.understood)}; write it in another way"
            )

    def _check_predicates(self, probe: DataFrame, query: Query) -> Query:
        own = [spec for spec in query.predicates if spec.function is None]
        for spec in query.predicates:
            why = self.functions[spec.function].why_not(spec) if spec.function else None
            if why:
                raise QueryError(f"{self.shown(spec.key)}: {why}")
        for spec in own:
            kind = probe.select(F.expr(spec.condition)).schema[0].dataType
            if not isinstance(kind, BooleanType):
                said = self.shown(spec.condition)
                raise QueryError(f"{said} is {kind.simpleString()}, not a condition; compare it")
        risky = [s for s in own if may_raise(probe, NativePredicate(s.condition))]
        if risky:
            query = query.judged_by_spark()
        for spec in risky:
            if spec in query.predicates:
                raise QueryError(
                    f"{self.shown(spec.condition)} could fail on some rows and stands in an OR "
                    f"with a Python function, so that nothing can protect it; write it so that it "
                    f"cannot fail (try_divide, try_cast, try_add), or without the OR"
                )
        guarded = {spec.key: self._guarded(probe, query, spec) for spec in query.predicates}
        return replace(
            query,
            predicates=tuple(guarded.values()),
            required=tuple(guarded[key].key for key in query.required),
        )

    def _guarded(self, probe: DataFrame, query: Query, spec: PredicateSpec) -> PredicateSpec:
        """Let arguments that could fail be computed only where the other conditions hold."""
        if spec.key not in query.required or not query.conditions:
            return spec
        guard = " AND ".join(f"({condition})" for condition in query.conditions)
        arguments = tuple(
            f"CASE WHEN {guard} THEN {text} END"
            if may_raise(probe, NativePredicate(f"{text} IS NULL"))
            else text
            for text in spec.arguments
        )
        if arguments == spec.arguments:
            return spec
        return replace(spec, key=f"{spec.key} where {guard}", arguments=arguments)

    def _shippable(self, query: Query) -> list[LookupSpec]:
        """Return the lookups of tables that are small enough; the others Spark joins anyway."""
        shipped = []
        for spec in query.lookups:
            try:
                stream = self.stream_of(CompiledQuery(0, "", query, "count"))
                self._lookup_operator(spec, stream, self.table_versions()[spec.table])
                shipped.append(spec)
            except Exception as error:  # Spark joins the table anyway
                self.note("no lookup", table=spec.table, why=str(error).split("\n")[0])
        return shipped

    def _lookup_operator(self, spec: LookupSpec, stream: StreamInfo, version: int) -> OperatorPlan:
        """Return how to look up keys in a version of a table; collected once for each version."""
        types = {column.name: column.dataType for column in stream.schema}
        own = [types[name] for name in spec.columns]
        key = (spec.key, version, tuple(kind.simpleString() for kind in own))
        if key in self._shipped:
            return self._shipped[key]
        table = self.stored.table(spec.table, version)
        if spec.condition:
            table = table.filter(spec.condition)
        for name, other, kind in zip(spec.columns, spec.keys, own, strict=True):
            if common_type(kind, table.schema[other].dataType, spec.key, name) != kind:
                raise LookupTableError(f"{spec.key}: {name} and {other} are of different types")
        predicate = LookupPredicate(
            table, spec.columns, spec.keys, False, spec.key, LOOKUP_ROWS_MAX
        )
        made = plan_lookup(predicate, own, tuple(range(len(own))))
        for known in [k for k in self._shipped if (k[0], k[2]) == (key[0], key[2])]:
            del self._shipped[known]
        self._shipped[key] = made
        return made

    def _lookup_or_all(self, spec: LookupSpec, stream: StreamInfo, version: int) -> OperatorPlan:
        """Return the lookup, or what lets all rows pass where a table cannot be shipped any more.

        A lookup only spares work: Spark joins the table with what is left in any case.
        """
        try:
            return self._lookup_operator(spec, stream, version)
        except Exception as error:
            self.note("no lookup", table=spec.table, why=str(error).split("\n")[0])
            return OperatorPlan("arrow", spec.key, (), _all_rows)

    def _check_schema(self, name: str, known: StructType, given: StructType) -> None:
        before = {column.name: column.dataType.simpleString() for column in known}
        now = {column.name: column.dataType.simpleString() for column in given}
        if before == now:
            return
        changed = [
            f"{column} {before.get(column, '(new)')} -> {now.get(column, '(gone)')}"
            for column in {**before, **now}
            if before.get(column) != now.get(column)
        ]
        raise EngineError(
            f"{name!r} has another schema than when the catalogue was written: "
            f"{', '.join(changed) or 'the order of its columns'}; give it the columns it had, or "
            f"open a new engine"
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


def _all_rows(*keys: Any) -> Any:
    return pa.repeat(True, len(keys[0]))


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or (what != "query" and not _NAME.fullmatch(name)) or not name:
        raise EngineError(
            f"{name!r} cannot be the name of a {what}; use letters, digits and underscores, "
            f"beginning with a letter"
        )


def _delay_us(name: str, schema: StructType, time: str | None, delay: str | None) -> int:
    if time is None:
        if delay is not None:
            raise EngineError(f"stream {name!r}: a delay needs the column that tells the time")
        return 0
    kinds = {column.name: column.dataType for column in schema}
    if time not in kinds:
        raise EngineError(
            f"stream {name!r} has no column {time!r} for the time; it has {', '.join(kinds)}"
        )
    if not isinstance(kinds[time], TimestampType | TimestampNTZType):
        raise EngineError(
            f"stream {name!r}: the time {time!r} is {kinds[time].simpleString()}, not a timestamp; "
            f"cast it"
        )
    found = _DELAY.fullmatch(delay or "0 seconds")
    if found is None:
        raise EngineError(f'stream {name!r}: cannot read the delay {delay!r}; write "10 seconds"')
    return int(found[1]) * _UNIT_US[found[2]]
