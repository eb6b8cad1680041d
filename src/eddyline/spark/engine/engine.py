"""`el.Engine`: continuous queries over shared streams, added and dropped while they run."""

from __future__ import annotations

import os
import pathlib
import uuid
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eddyline.errors import EngineError
from eddyline.journal import Journal
from eddyline.journal.events import BatchLost, CatalogueRepaired, EngineStarted
from eddyline.ordering import Policy
from eddyline.report.run import QueryStates
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Engine:
    """Runs many continuous queries over shared streams as one Spark streaming query.

    Everything that must survive is in the engine's folder: the catalogue of streams, tables,
    function names and queries, offsets, results and a journal. An engine that is opened again
    continues where it was: register the same streams and functions, then start.

    Needs a classic session: queries are admitted, planned and handed to sinks by the process that
    opened the engine, which under Spark Connect is not the one that runs micro-batches.

    Parameters
    ----------
    spark
        The session to run in.
    path
        A folder that this process and Spark can both read and write; made if it does not exist.
    policy
        Decides the order in which rows visit the operators that queries share: "tickets",
        "as_written", "agreedy", "sweep", "independent", "local_swaps", "lottery", or a `Policy`
        object. Every worker's eddy learns with a copy of its own.
    seed
        For whatever is drawn at random.
    repair
        Open a folder in which records of micro-batches are missing or damaged, and continue
        without their results. What is lost is in the journal. Without it, such a folder is
        refused.

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
        self._policy = eddy_policy(policy)
        self._seed = seed
        self.spark = spark
        self.path = pathlib.Path(path).absolute()
        self._folder = EngineFolder(spark, self.path)
        as_bytes = spark.conf.get("spark.sql.execution.pyspark.binaryAsBytes", "true")
        timezone = str(spark.conf.get("spark.sql.session.timeZone"))
        self._session = SessionSettings(timezone, as_bytes == "true")
        self._registry = Registry(spark, self._folder, timezone)
        results, registry = self._folder.results, self._registry
        self._lookups = TableLookups(results, registry.table_versions, self._folder.note)
        self._compiler = QueryCompiler(
            spark, results, registry.functions, self._lookups, registry.stream_named
        )
        self._queries = EngineQueries(self._folder, registry, self._compiler, timezone)
        self._run: Run | None = None
        self._planner: EddyPlanner | None = None
        self._handle_damage(repair)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Engine({str(self.path)!r}, {len(self._folder.catalogue.names())} queries)"

    # --- what queries may name ---------------------------------------------------------------

    def stream(
        self, name: str, df: DataFrame, time: str | None = None, delay: str | None = None
    ) -> None:
        """Register a stream.

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

        """
        if self._run is not None and self._run.is_active:
            raise EngineError(f"stop the engine before registering the stream {name!r}")
        self._registry.add_stream(name, df, time, delay)
        self._planner = None

    def table(self, name: str, df: DataFrame) -> None:
        """Register a static table that queries may join; its rows are copied now.

        Registered again with other rows, it is replaced from the next micro-batch on.
        """
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
        self._registry.add_function(name, function, returns, spark_name, timeout_s)

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
        self._check_open()
        self._queries.add(queries, sink)

    def drop(self, name: str) -> None:
        """Drop a query; its name can be used again."""
        self._queries.drop(name)

    def resume(self, name: str) -> None:
        """Let a paused query run again, on the rows that are read from now on."""
        self._queries.resume(name)

    def queries(self) -> QueryStates:
        """Return all queries: whether they run, and how many rows they matched."""
        return self._queries.states()

    def results(self, name: str) -> DataFrame:
        """Return the results of a query over all finished micro-batches."""
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
        self._check_open()
        if self._run is not None and self._run.is_active:
            raise EngineError("the engine runs already; stop it first")
        self._registry.check_streams(self._queries.readers_of)
        self._queries.check_all()
        if self._planner is None:  # kept from run to run, so that workers keep their eddies
            self._planner = self._make_planner()
        self._run = Run(self._folder, self._registry, self._queries, self._planner, trigger)
        self._folder.note(
            EngineStarted(
                queries=len(self._folder.catalogue.names()),
                streams=tuple(stream.name for stream in self._registry.streams()),
            )
        )
        return self._run

    def journal(self) -> Journal:
        """Return every decision since the engine was opened; its folder has all of them."""
        return self._folder.journal

    def close(self) -> None:
        """Stop, and release the folder."""
        try:
            if self._run is not None:
                self._run.stop()
        finally:
            self._folder.close()

    def _handle_damage(self, repair: bool) -> None:
        """Warn of a damaged catalogue; refuse lost micro-batches, or accept them."""
        damage = self._folder.catalogue.damage
        if damage:
            self._folder.note(CatalogueRepaired(damage=damage))
            warnings.warn(damage, stacklevel=3)
        if not repair:
            try:
                self._folder.log.refuse_if_lost()
            except EngineError:
                self._folder.close()
                raise
        for reason in self._folder.log.accept_losses() if repair else []:
            self._folder.note(BatchLost(reason=reason))

    def _check_open(self) -> None:
        if self._folder.is_closed:
            raise EngineError("the engine is closed; open it again with el.Engine(spark, path)")

    def _make_planner(self) -> EddyPlanner:
        streams = self._registry.streams()
        routes = NativeRoutes(streams, self._folder.note, self._seed)
        crossings = CrossingPlanner(self._registry.functions, self._lookups.operator_or_all, routes)
        return EddyPlanner(
            uuid.uuid4().hex, streams, crossings, routes, self._policy, self._session, self._seed
        )
