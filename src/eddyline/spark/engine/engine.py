"""`el.Engine`: continuous queries over shared streams, added and dropped while they run."""

from __future__ import annotations

import os
import pathlib
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eddyline.errors import EngineError
from eddyline.journal import Journal
from eddyline.journal.events import EngineStarted
from eddyline.ordering import Policy
from eddyline.report.run import QueryStates
from eddyline.spark.common.worker_python import check_worker_python
from eddyline.spark.engine.checks import check_place, read_keep_s
from eddyline.spark.engine.compiler import QueryCompiler
from eddyline.spark.engine.crossing import CrossingPlanner
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.functions import TIMEOUT_S
from eddyline.spark.engine.lookups import TableLookups
from eddyline.spark.engine.native_routes import NativeRoutes
from eddyline.spark.engine.planner import EddyPlanner, SessionSettings
from eddyline.spark.engine.policies import DEFAULT_POLICY, eddy_policy
from eddyline.spark.engine.queries import EngineQueries
from eddyline.spark.engine.registry import Registry
from eddyline.spark.engine.run import Run
from eddyline.spark.engine.settings import PinnedSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Engine:
    """Runs many continuous queries over shared streams as one Spark streaming query.

    Everything that must survive is in the engine's folder: the catalogue of streams, tables,
    function names and queries, offsets, results and a journal. An engine that is opened again
    continues where it was: register the same streams and functions, then start.

    Needs a classic session: queries are admitted, planned and handed to sinks by the process that
    opened the engine, which under Spark Connect is not the one that runs micro-batches.

    Settings of the session that change what a query means, such as its time zone or ANSI mode, are
    pinned when the engine is opened and kept in its folder. Under other settings it refuses to be
    opened if it has queries, to add queries, to start, to run a micro-batch and to return results.

    Parameters
    ----------
    spark
        The session to run in.
    path
        A folder that this process and Spark can both read and write; made if it does not exist.
    policy
        Decides the order in which rows visit the operators that queries share, and in which rows
        of joins ask for partners: "tickets", "as_written", "agreedy", "sweep", "independent",
        "local_swaps", "lottery", or a `Policy` object. Every worker learns with a copy of its own.
    seed
        For whatever is drawn at random.
    repair
        Open a folder in which records of micro-batches or files of join state are missing or
        damaged, and continue without their results or rows. What is lost is in the journal. Without
        it, missing records are refused here, and missing state when a join needs it.
    keep
        For how long results are kept, for example "7 days": those of micro-batches that finished
        longer ago are removed, at the latest an eighth of that time later, while micro-batches run
        and when the engine is opened. `queries` still counts them. Without it, nothing is removed.

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
        self,
        spark: SparkSession,
        path: str | os.PathLike[str],
        *,
        policy: str | Policy = DEFAULT_POLICY,
        seed: int | None = None,
        repair: bool = False,
        keep: str | None = None,
    ) -> None:
        check_place(spark, path)
        keep_s = read_keep_s(keep)
        self._policy = eddy_policy(policy)
        check_worker_python(spark)
        self._seed = seed
        self.spark = spark
        self.path = pathlib.Path(path).absolute()
        self._folder = EngineFolder(spark, self.path, keep_s)
        try:
            self._folder.handle_damage(repair)
            settings = PinnedSettings(spark, self._folder.catalogue)
        except BaseException:
            self._folder.close()
            raise
        self._session = SessionSettings(settings.timezone, settings.binary_as_bytes)
        self._registry = Registry(spark, self._folder, settings)
        results, registry = self._folder.results, self._registry
        self._lookups = TableLookups(results, registry.table_versions, self._folder.note)
        self._compiler = QueryCompiler(
            spark, results, registry.functions, self._lookups, registry.stream_named
        )
        self._queries = EngineQueries(self._folder, registry, self._compiler, settings)
        #: Held while the engine starts, stops, or changes what only a stopped engine may change.
        self._lock = threading.RLock()
        self._is_closing = False
        self._run: Run | None = None
        self._planner: EddyPlanner | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Engine({str(self.path)!r}, {len(self._folder.catalogue.names())} queries)"

    # --- what queries may name ---------------------------------------------------------------

    def stream(
        self,
        name: str,
        df: DataFrame,
        time: str | None = None,
        delay: str | None = None,
        idle: str | None = None,
    ) -> None:
        """Register a stream.

        An engine that is opened again accepts a stream with further columns; what was stored
        before has NULL in them. A column that is gone or has another type is refused if a query
        uses it, or if stored results hold it in another type.

        Parameters
        ----------
        name
            Its name in queries.
        df
            A streaming DataFrame.
        time
            The event-time column; the report then shows how many rows were late.
        delay
            How late a row may be, for example "10 seconds".
        idle
            After which time without rows joins no longer wait for the stream, for example
            "5 minutes". Without it, a join keeps rows of other streams as long as this one stands
            still. Rows that come after all are late if they are older than those waited for.

        """
        with self._lock:
            self._check_stopped(f"registering the stream {name!r}")
            check_users = self._queries.check_users
            if self._registry.add_stream(name, df, time, delay, idle, check_users):
                self._queries.forget_users_of(name)
            self._planner = None

    def table(self, name: str, df: DataFrame) -> None:
        """Register a static table that queries may join; its rows are copied now.

        Registered again with other rows, it is replaced from the next micro-batch on.
        """
        self._folder.check_open()
        entry = self._registry.changed_table(name, df)
        if entry is not None:
            with self._folder.catalogue.lock:
                self._registry.store_table(name, df, entry)
                self._queries.forget_users_of(name)

    def function(
        self,
        name: str,
        function: Any,
        returns: str = "boolean",
        timeout_s: float | None = TIMEOUT_S,
    ) -> None:
        """Register a Python function that queries may call.

        Parameters
        ----------
        name
            Its name in queries.
        function
            A plain function of values, or a PySpark `udf`, `pandas_udf` or `arrow_udf`.
        returns
            The type of its answer, for a plain function.
        timeout_s
            Seconds that one batch of calls in WHERE, or one call in SELECT, may take; a function
            that takes longer pauses the queries that need its answer. None for no limit.

        """
        spark_name = self._compiler.name_for_spark(name)
        with self._lock:
            self._folder.check_open()
            self._registry.add_function(name, function, returns, spark_name, timeout_s)

    def remove_stream(self, name: str) -> None:
        """Remove a stream that no query reads and no micro-batch has read, while stopped."""
        self._remove("stream", name, self._registry.remove_stream)

    def remove_table(self, name: str) -> None:
        """Remove a static table that no query joins, while stopped."""
        self._remove("table", name, self._registry.remove_table)

    def remove_function(self, name: str) -> None:
        """Remove a Python function that no query calls, while stopped."""
        self._remove("function", name, self._registry.remove_function)

    def _remove(self, what: str, name: str, remove: Callable[[str], None]) -> None:
        with self._lock, self._folder.catalogue.lock:  # no query that uses it may be added now
            self._check_stopped(f"removing the {what} {name!r}")
            self._queries.refuse_if_used(what, name)
            remove(name)
            self._planner = None

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
        """Add many queries at once: all of them or, if one is wrong, none."""
        self._folder.check_open()
        self._queries.add(queries, sink)

    def drop(self, name: str) -> None:
        """Drop a query; its name can be used again."""
        self._folder.check_open()
        self._queries.drop(name)

    def resume(self, name: str) -> None:
        """Let a paused query run again, on the rows that are read from now on."""
        self._folder.check_open()
        self._queries.resume(name)

    def queries(self) -> QueryStates:
        """Return all queries: whether they run, and how many rows they matched."""
        return self._queries.states()

    def results(self, name: str) -> DataFrame:
        """Return the results of a query over all finished micro-batches.

        Refused while the session has other settings than the pinned ones: Spark would compute the
        result with these. The DataFrame reads files that may be merged meanwhile: it is valid for
        10 minutes, and as long as the engine is not opened again.
        """
        return self._queries.results(name)

    # --- running -----------------------------------------------------------------------------

    def start(self, trigger: str = "1 second") -> Run:
        """Start, or continue after a stop.

        Parameters
        ----------
        trigger
            How often to read the streams, such as "1 second"; or "available now" to read once what
            is there and stop.

        """
        with self._lock:
            self._check_stopped("starting it again")
            self._registry.check_streams(self._queries.readers_of)
            self._queries.check_all()
            if self._planner is None:  # kept from run to run, so that workers keep their eddies
                self._planner = self._make_planner()
            self._run = Run(self._folder, self._registry, self._queries, self._planner, trigger)
            streams = tuple(stream.name for stream in self._registry.streams())
            queries = len(self._folder.catalogue.names())
            self._folder.note(EngineStarted(queries=queries, streams=streams))
            return self._run

    def journal(self) -> Journal:
        """Return every decision since the engine was opened; its folder has all of them."""
        return self._folder.journal

    def close(self) -> None:
        """Stop, and release the folder."""
        with self._lock:
            run, self._is_closing = self._run, True
        try:
            if run is not None:  # without the lock: a sink may need it before its run can end
                run.stop()
        finally:
            if run is None or not run.may_be_active:
                self._folder.close()
            self._is_closing = False

    def _check_stopped(self, before: str) -> None:
        """Refuse something that a running engine cannot do, or a closed one."""
        self._folder.check_open()
        if self._is_closing:
            raise EngineError(f"the engine is being closed; wait for it before {before}")
        if self._run is not None and self._run.is_active:
            raise EngineError(f"the engine runs; stop it before {before}")

    def _make_planner(self) -> EddyPlanner:
        streams = self._registry.streams()
        routes = NativeRoutes(streams, self._folder.note, self._seed)
        crossings = CrossingPlanner(self._registry.functions, self._lookups.operator_or_all, routes)
        return EddyPlanner(
            uuid.uuid4().hex, streams, crossings, routes, self._policy, self._session, self._seed
        )
