"""The queries of an engine: admission, compilation, sinks and results."""

from __future__ import annotations

import collections
import contextlib
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eddyline.errors import EngineError, QueryError
from eddyline.report.run import OperatorNumbers, QueryState, QueryStates
from eddyline.spark.engine.catalogue_entries import QueryEntry, StreamEntry, TableEntry
from eddyline.spark.engine.checks import check_name, read_schema
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.compiler import QueryCompiler, needs_expressions
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.numbered import Numbered
from eddyline.spark.engine.query_templates import QUERIES_OF_SHAPE, QueryTemplates
from eddyline.spark.engine.registry import Registry
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.schema_changes import SchemaChange
from eddyline.spark.engine.settings import PinnedSettings
from eddyline.spark.engine.sinks import FUNCTION_KINDS, is_same_kind, kind_of
from eddyline.spark.state.join_plan import late_number
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: By stream and name of the operator.
WorkByStream = Mapping[str, Mapping[str, OperatorNumbers]]
IDLE_WINDOW = (
    "WINDOW says how far apart rows of several streams may be, and this query reads one stream, "
    "of which every row is judged by itself"
)


class EngineQueries:
    """Queries of one engine, as in its catalogue, and what only this process knows of them.

    Parameters
    ----------
    folder
        The folder of the engine.
    registry
        What queries may name.
    compiler
        Parses and checks queries.
    settings
        Session settings that the queries are written under.

    """

    def __init__(
        self,
        folder: EngineFolder,
        registry: Registry,
        compiler: QueryCompiler,
        settings: PinnedSettings,
    ) -> None:
        self._folder = folder
        self._catalogue = folder.catalogue
        self._registry = registry
        self._compiler = compiler
        self._settings = settings
        self._compiled: Numbered[CompiledQuery] = Numbered()
        #: The queries that run, and what that depends on.
        self._running: tuple[tuple[int, ...], tuple[CompiledQuery, ...]] | None = None
        #: How often compiled queries were forgotten.
        self._forgotten = 0
        self._sinks: dict[int, Callable[..., object]] = {}
        #: Queries that were in the catalogue before are named here once a user gives them again.
        self._first_new = folder.catalogue.largest_number + 1
        self._given_again: Numbered[bool] = Numbered()
        self._templates: tuple[int, QueryTemplates | None] = (0, None)

    # --- queries come and go -----------------------------------------------------------------

    def add(self, queries: Mapping[str, str], sink: Any) -> None:
        """Add queries, by name: all of them or, if one is wrong, none."""
        self._settings.check()
        for name, text in queries.items():
            if not isinstance(text, str):
                raise QueryError(f"query {name!r}: the SQL is {type(text).__name__}, not text")
        while not self._try_to_add(queries, sink):
            pass

    def _try_to_add(self, queries: Mapping[str, str], sink: Any) -> bool:
        """Add queries; False if what they may name changed while they were compiled."""
        registrations = self._catalogue.registrations
        new: list[tuple[str, str, str]] = []
        failure: EngineError | None = None
        for name, text in queries.items():
            try:
                kind = kind_of(sink, name)
                if not self._is_known(name, text, kind):
                    new.append((name, text, kind))
            except EngineError as error:  # unless a query before it is wrong
                failure = error
                break
        compiled = {
            query.name: query for query in self._compile_all([QueryEntry(0, *q) for q in new], True)
        }
        if failure is not None:
            raise failure
        with self._catalogue.lock:  # no micro-batch may see a query before its sink is known
            if self._catalogue.registrations != registrations:
                return False
            for name, _, _ in new:  # another thread may have added it meanwhile
                self._is_known(name, queries[name], kind_of(sink, name))
            for entry in self._catalogue.add_queries(new) if new else []:
                compiled[entry.name].enter(entry)
                self._compiled[entry.number] = compiled[entry.name]
            for name in queries:
                if (number := self._catalogue.query(name).number) < self._first_new:
                    self._given_again[number] = True
            if callable(sink):
                for name in queries:
                    self._sinks[self._catalogue.query(name).number] = sink
        return True

    def drop(self, name: str) -> None:
        """Drop a query; its name can be used again."""
        with self._catalogue.lock:
            entry = self._catalogue.drop_query(name)
            self._given_again.pop(entry.number, None)
            self._sinks.pop(entry.number, None)
            self._compiled.pop(entry.number, None)

    def resume(self, name: str) -> None:
        """Let a paused query run again."""
        self._settings.check()
        entry = self._catalogue.query(name)
        self.compiled(entry)
        self._check_sink(entry)
        self._catalogue.resume(name)

    def forget_users_of(self, name: str) -> None:
        """Compile queries again that read a table or a stream, because it has changed.

        Whether the keys of a table can be shipped depends on its rows, and what SELECT * stands
        for on the columns of the stream.
        """
        with self._catalogue.lock:
            for number, compiled in list(self._compiled.items()):
                if name in (*compiled.outline.tables, *compiled.outline.streams):
                    del self._compiled[number]
            self._forgotten += 1

    def check_users(self, change: SchemaChange) -> None:
        """Refuse a change of a stream's columns if a query, paused or not, uses what it loses."""
        schemas = self._schemas()
        for entry in self._catalogue.named() if change.lost else ():
            if change.stream.lower() in entry.text.lower():
                with contextlib.suppress(QueryError):  # it could not be compiled before either
                    change.check_query(entry.name, parse(entry.text, schemas))

    # --- reading -----------------------------------------------------------------------------

    def states(self) -> QueryStates:
        """Return all queries: whether they run, and how many rows they matched."""
        states = []
        for entry in self._catalogue.named():
            error = entry.error  # another thread may pause or resume it meanwhile
            state = "paused" if error else "active"
            matched = self._folder.log.state.matched.get(entry.number, 0)
            states.append(QueryState(entry.name, entry.text, entry.sink, state, matched, error))
        return QueryStates(states)

    def costs(self, work: Iterable[WorkByStream]) -> dict[str, float]:
        """Return the seconds that were spent on the conditions of each query, by name.

        Parameters
        ----------
        work
            What operators did in each micro-batch; queries that share one share its time.

        """
        busy_s: dict[tuple[str, str], float] = collections.defaultdict(float)
        for by_stream in work:
            for stream, by_name in by_stream.items():
                for name, numbers in by_name.items():
                    busy_s[stream, name] += numbers.busy_s
        users: dict[tuple[str, str], list[str]] = {}
        for entry in self._catalogue.named():
            compiled = self._compiled.get(entry.number)
            for part in compiled.filters() if compiled is not None else ():
                for operator in part.shared().operators:
                    key = (part.outline.stream, self.display_text(operator))
                    users.setdefault(key, []).append(entry.name)
        costs: dict[str, float] = collections.defaultdict(float)
        for key, names in users.items():
            for name in names:
                costs[name] += busy_s[key] / len(names)
        return dict(costs)

    def results(self, name: str) -> DataFrame:
        """Return the results of a query over all finished micro-batches."""
        self._settings.check()
        entry = self._catalogue.query(name)
        if entry.sink == "count":
            raise EngineError(
                f'the matches of query {name!r} are only counted (sink="count"); see '
                f"engine.queries()"
            )
        self._folder.log.refuse_if_lost()
        compiled = self.compiled(entry)
        return self.results_of(compiled, self._folder.log.parts_of(entry.number))

    def late(self, stream: str) -> DataFrame:
        """Return the rows of a stream that were too late for every join that wanted them."""
        self._settings.check()
        names = [own.name for own in self._registry.streams()]
        if stream not in names:
            raise EngineError(f"no stream {stream!r}; streams are {', '.join(names) or 'none'}")
        info = self._registry.stream_named(stream)
        self._folder.log.refuse_if_lost()
        return self._folder.results.late(info, self._folder.log.parts_of(late_number(info.number)))

    def results_of(self, compiled: CompiledQuery, parts: Sequence[ResultPart]) -> DataFrame:
        """Return the results of a query in some parts."""
        stream = self._registry.stream_named(compiled.outline.stream)
        return self._folder.results.results(compiled, stream, parts)

    def running_at(self, version: int) -> Sequence[CompiledQuery]:
        """Return the queries that run at a version of the catalogue and are not paused.

        The same sequence again, as long as nothing changes.
        """
        key = (version, self._catalogue.version, self._forgotten)
        known = self._running  # another thread may replace it
        if known is None or known[0] != key:
            known = self._running = key, tuple(self._find_running(version))
        return known[1]

    def _find_running(self, version: int) -> list[CompiledQuery]:
        running = []
        for entry in self._catalogue.running_at(version):
            try:
                if entry.error is None:
                    running.append(self.compiled(entry))
            except QueryError:
                if not entry.is_dropped:  # what a dropped query named may be gone
                    raise
        return running

    def resumed_at(self, compiled: CompiledQuery, version: int) -> int:
        """Return how often a query had been resumed at a version of the catalogue."""
        return self._catalogue.queries[compiled.number].resumed_at(version)

    def sink_of(self, compiled: CompiledQuery) -> Callable[..., object] | None:
        """Return the function that results are handed to; None for other kinds of sinks."""
        if compiled.sink not in FUNCTION_KINDS:
            return None
        return self._sinks.get(compiled.number)

    def compiled(self, entry: QueryEntry) -> CompiledQuery:
        """Return a query of the catalogue, compiled."""
        compiled = self._compiled.get(entry.number)  # another thread may drop it meanwhile
        if compiled is None:
            (compiled,) = self._compile_entries([entry])
        return compiled

    def _compile_entries(self, entries: Sequence[QueryEntry]) -> list[CompiledQuery]:
        """Compile queries of the catalogue, and keep them as long as they mean the same."""
        registrations = self._catalogue.registrations
        compiled = self._compile_all(entries)
        for entry, one in zip(entries, compiled, strict=True):
            if one.has_idle_window:  # earlier versions accepted it
                warnings.warn(f"query {entry.name!r}: {IDLE_WINDOW}", stacklevel=3)
            with self._catalogue.lock:
                if not entry.is_dropped and self._catalogue.registrations == registrations:
                    self._compiled[entry.number] = one
        return compiled

    def name_for_spark(self, function: str) -> str:
        """Return the name under which a function is registered with Spark."""
        return self._compiler.name_for_spark(function)

    def _compile_all(
        self, entries: Sequence[QueryEntry], refuse_idle_windows: bool = False
    ) -> list[CompiledQuery]:
        """Compile queries together; raise what the first one that is wrong raises by itself."""
        templates = self._current_templates()
        self._learn_shapes(entries, templates)
        compiled: list[CompiledQuery] = []
        unchecked: list[int] = []
        failure: QueryError | None = None
        for entry in entries:
            template = templates.find(entry.text)
            try:
                if template is not None:
                    one = CompiledQuery.of(entry, template)
                else:
                    one = self._read(entry, templates)
                    if needs_expressions(one.query):
                        unchecked.append(len(compiled))
                    else:  # at once: those that follow may be of the same template
                        (one,) = self._compiler.check_all([one])
                        templates.learn(one)
            except QueryError as error:  # unless a query before it is wrong
                failure = error
                break
            compiled.append(one)
            if refuse_idle_windows and one.has_idle_window:
                failure = QueryError(f"query {entry.name!r}: {IDLE_WINDOW}; leave it out")
                break
        checked = self._compiler.check_all([compiled[place] for place in unchecked])
        for place, one in zip(unchecked, checked, strict=True):
            compiled[place] = one
            templates.learn(one)
        if failure is not None:
            raise failure
        return compiled

    def _read(self, entry: QueryEntry, templates: QueryTemplates) -> CompiledQuery:
        return self._compiler.read(
            entry.number, entry.name, entry.text, entry.sink, templates.schemas
        )

    def _learn_shapes(self, entries: Sequence[QueryEntry], templates: QueryTemplates) -> None:
        """Make templates for shapes that several entries have, from the first of each."""
        for _ in range(2):  # which constants matter, then the queries in which these are equal
            by_shape: dict[Hashable, list[QueryEntry]] = {}
            for entry in entries if len(entries) > QUERIES_OF_SHAPE else ():
                shape = templates.awaits(entry.text)
                if shape is not None:
                    by_shape.setdefault(shape, []).append(entry)
            first = [
                own[:QUERIES_OF_SHAPE] for own in by_shape.values() if len(own) > QUERIES_OF_SHAPE
            ]
            with contextlib.suppress(QueryError):  # the caller compiles them again
                queries = [self._read(entry, templates) for own in first for entry in own]
                for one in self._compiler.check_all(queries):
                    templates.learn(one)

    def _current_templates(self) -> QueryTemplates:
        """Return the templates for the streams, tables and functions that there are now."""
        with self._catalogue.lock:
            registrations, templates = self._templates
            if templates is None or registrations != self._catalogue.registrations:
                schemas = self._schemas()
                templates = QueryTemplates(
                    schemas,
                    # A sink that stores rows asks more of a query than one that counts them.
                    lambda text, own: self._compiler.compile(0, "", text, "parquet", own),
                    self._compiler.blanked,
                )
                self._templates = (self._catalogue.registrations, templates)
            return templates

    def display_text(self, text: str) -> str:
        """Return an expression as its author would write it."""
        return self._compiler.display_text(text)

    # --- checks ------------------------------------------------------------------------------

    def check_all(self) -> None:
        """Refuse to start if a query cannot be compiled or lacks its sink."""
        self._settings.check()
        entries = self._active()
        self._compile_entries([entry for entry in entries if entry.number not in self._compiled])
        for entry in entries:
            self._check_sink(entry)

    def readers_of(self, stream: str) -> list[str]:
        """Return the names of the active queries that read a stream."""
        return [e.name for e in self._active() if stream in self.compiled(e).outline.streams]

    def refuse_if_used(self, what: str, name: str) -> None:
        """Refuse to remove a `stream`, `table` or `function` that a query names, paused or not."""
        users = [e.name for e in self._catalogue.named() if self._may_use(e, what, name)]
        if users:
            more = f" and {len(users) - 5} more" if len(users) > 5 else ""
            raise EngineError(
                f"{what} {name!r} is used by the queries {', '.join(users[:5])}{more}; drop them "
                f"first"
            )

    def _may_use(self, entry: QueryEntry, what: str, name: str) -> bool:
        if name.lower() not in entry.text.lower():
            return False
        try:
            query = self.compiled(entry).outline
        except QueryError:  # such as one that calls a function which is not registered yet
            return True
        used = {"stream": query.streams, "table": query.tables, "function": query.functions}
        return name in used[what]

    def _active(self) -> list[QueryEntry]:
        with self._catalogue.lock:
            entries = self._catalogue.queries.listed()
        return [entry for entry in entries if not entry.is_dropped and not entry.error]

    def _check_sink(self, entry: QueryEntry) -> None:
        if entry.sink in FUNCTION_KINDS and entry.number not in self._sinks:
            raise EngineError(
                f"query {entry.name!r} hands its results to a function, which cannot be kept "
                f"on disk; call engine.query({entry.name!r}, sql, sink=...) again"
            )

    def _is_known(self, name: str, text: str, kind: str) -> bool:
        """Return True if the catalogue has the query; refuse another one of its name."""
        check_name(name, "query")
        if not self._catalogue.has(name):
            return False
        number = self._catalogue.query(name).number
        if number >= self._first_new or number in self._given_again:
            raise EngineError(f"query {name!r} exists already; drop it first, or choose a name")
        entry = self._catalogue.query(name)
        if entry.text != text or not is_same_kind(entry.sink, kind):
            raise EngineError(
                f"query {name!r} is in the catalogue of {self._folder.path} with another text or "
                f"sink: {entry.text!r}, {entry.sink}; drop it first, or choose another name"
            )
        return True

    def _schemas(self) -> Schemas:
        catalogue = self._catalogue
        schemas = Schemas(
            {name: _types(entry) for name, entry in catalogue.streams.items()},
            {name: _types(entry) for name, entry in catalogue.tables.items()},
            {name: self._compiler.name_for_spark(name) for name in catalogue.functions},
            self._settings.timezone,
            times={name: e.time for name, e in catalogue.streams.items() if e.time is not None},
        )
        return self._compiler.with_session_rules(schemas)


def _types(entry: StreamEntry | TableEntry) -> dict[str, str]:
    return {column.name: column.dataType.simpleString() for column in read_schema(entry.schema)}
