"""From the SQL text of a query to a query that can run: parsed, then checked with Spark."""

from __future__ import annotations

import collections
import contextlib
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql.types import BooleanType, DataType, StructType

from eddyline.errors import QueryError
from eddyline.spark.engine.column_types import check_storable
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.expressions import Expression, StreamExpressions
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.guards import guard_arguments, is_null
from eddyline.spark.engine.join_compiler import JoinCompiler
from eddyline.spark.engine.lookups import TableLookups
from eddyline.spark.engine.result_store import ResultStore
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.native.failing import casts_may_raise, text_may_raise
from eddyline.sql.meaning import alias_of, same_meaning, shape_of
from eddyline.sql.parse import parse
from eddyline.sql.placeholders import ROWS, STREAM, display_text
from eddyline.sql.query import Query
from eddyline.sql.schemas import Schemas
from eddyline.sql.specs import OrderedFilter, guarded_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Queries of one shape that Spark must read as the parser does before others of it are believed to.
ALIKE_MIN = 2
SHAPES_MAX = 10_000


class QueryCompiler:
    """Compiles queries, or explains what is wrong with them.

    Parameters
    ----------
    spark
        Session in which expressions are analysed.
    stored
        Analyses a query as it would run over stored rows.
    functions
        The Python functions registered so far, by name.
    lookups
        Decides which joins with static tables become lookups.
    stream_of
        Returns a stream by name.

    """

    def __init__(
        self,
        spark: SparkSession,
        stored: ResultStore,
        functions: Mapping[str, Function],
        lookups: TableLookups,
        stream_of: Callable[[str], StreamInfo],
    ) -> None:
        self._spark = spark
        self._stored = stored
        self._functions = functions
        self._lookups = lookups
        self._stream_of = stream_of
        self._joins = JoinCompiler(self._expressions_over, stream_of, self._check_filter)
        self._expressions: dict[str, StreamExpressions] = {}
        self._lock = threading.Lock()
        self._suffix = f"__{uuid.uuid4().hex[:8]}"

    def name_for_spark(self, function: str) -> str:
        """Return a name for the function that no other engine of the session uses."""
        return f"{function}{self._suffix}"

    def display_text(self, text: str) -> str:
        """Return an expression in the form in which the user wrote it."""
        return display_text(text).replace(self._suffix, "")

    def with_session_rules(self, schemas: Schemas) -> Schemas:
        """Return the schemas with the settings of the session that change what SQL means."""

        def is_set(key: str) -> bool:
            return str(self._spark.conf.get(key)).lower() == "true"

        ansi = is_set("spark.sql.ansi.enabled")
        return replace(
            schemas,
            ansi=ansi,
            double_quoted_identifiers=ansi and is_set("spark.sql.ansi.doubleQuotedIdentifiers"),
        )

    def compile(
        self, number: int, name: str, text: str, sink: str, schemas: Schemas
    ) -> CompiledQuery:
        """Parse a query and check with Spark what only Spark can decide."""
        (compiled,) = self.check_all([self.read(number, name, text, sink, schemas)])
        return compiled

    def read(self, number: int, name: str, text: str, sink: str, schemas: Schemas) -> CompiledQuery:
        """Parse a query; `check_all` must follow before it can run."""
        with self._explained(name):
            return CompiledQuery(number, name, parse(text, schemas), sink)

    def check_all(self, queries: Sequence[CompiledQuery]) -> list[CompiledQuery]:
        """Check with Spark what only Spark can decide, for many queries at once.

        Raises what the first query that is wrong would raise by itself.
        """
        with self._lock:
            try:
                self._prepare([compiled.query for compiled in queries])
                return [self._check(compiled) for compiled in queries]
            finally:
                for expressions in self._expressions.values():
                    expressions.forget()

    def blanked(self, stream: str, text: str) -> str | None:
        """Return an expression without the constants that cannot change what Spark says of it.

        None if Spark would have to be asked.
        """
        with self._lock:
            return self._expressions_over(self._stream_of(stream)).blanked(text)

    @contextlib.contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Let errors name the query."""
        try:
            yield
        except QueryError as error:
            raise QueryError(f"query {name!r}: {self.display_text(str(error))}") from None
        except (AnalysisException, ParseException) as error:
            raise QueryError(f"query {name!r}: {self.display_text(_summary(error))}") from None
        except (PySparkException, Py4JError) as error:  # the optimiser computes constants
            raise QueryError(
                f"query {name!r}: Spark fails on it, whatever the rows: "
                f"{self.display_text(_summary(error))}"
            ) from None

    def _prepare(self, queries: Sequence[Query]) -> None:
        """Let Spark analyse the expressions of many queries in few plans."""
        wanted: dict[str, list[Expression]] = {}
        pending: collections.Counter[tuple[str, str]] = collections.Counter()
        for query in queries:
            if set(query.functions) - set(self._functions):
                continue
            for part in query.join.parts if query.join else (query,):
                wanted.setdefault(part.stream, []).extend(_filter_expressions(part))
            own = wanted.setdefault(query.stream, [])
            own += [Expression(f"`{STREAM}`", text) for text in _select_texts(query)]
            if needs_comparison(query):
                shape = shape_of(query)
                expressions = self._expressions_over(self._stream_of(query.stream))
                if shape is None or expressions.read_alike[shape] + pending[shape] < ALIKE_MIN:
                    own += _comparisons(query) or ()
                if shape is not None and not pending[shape] and not expressions.read_alike[shape]:
                    own += _comparisons(query, with_others=True) or ()
                    pending[shape] += 1
                if shape is not None:
                    pending[shape] += 1
        for stream, texts in wanted.items():
            if texts:
                self._expressions_over(self._stream_of(stream)).prepare(texts)

    def _expressions_over(self, stream: StreamInfo) -> StreamExpressions:
        known = self._expressions.get(stream.name)
        if known is None or known.schema != stream.schema:
            known = self._expressions[stream.name] = StreamExpressions(self._spark, stream.schema)
        return known

    def _check(self, compiled: CompiledQuery) -> CompiledQuery:
        with self._explained(compiled.name):
            return self._check_with_spark(compiled)

    def _check_with_spark(self, compiled: CompiledQuery) -> CompiledQuery:
        query = compiled.query
        missing = sorted(set(query.functions) - set(self._functions))
        if missing:
            raise QueryError(
                f"the function {missing[0]!r} is not registered in this process; call "
                f"engine.function({missing[0]!r}, ...) first"
            )
        self._check_functions(query)
        if needs_comparison(query) and not self._is_read_alike(query):
            self._check_meaning(compiled)
            if _is_over_stream(query):
                self._note_alike(query, 1)
        rows = self._stream_of(query.stream).schema
        if query.join is None:
            compiled = self._check_filter(compiled)
        else:
            compiled = self._joins.compile(compiled)
            assert compiled.join is not None
            rows = compiled.join.row_schema
        return compiled.changed(
            select_may_fail=self._select_may_fail(compiled, rows),
            select_calls_python=any(self._suffix in text for text in query.computed),
        )

    def _check_filter(self, compiled: CompiledQuery) -> CompiledQuery:
        """Check the conditions of a query over one stream."""
        query, stream = compiled.query, self._stream_of(compiled.query.stream)
        check_storable(self._spark, compiled, stream)
        argument_types: dict[str, DataType] = {}
        if query.predicates:
            expressions = self._expressions_over(stream)
            types = {text: expressions.type_of(text) for text in _typed_texts(query)}
            query = self._check_predicates(expressions, query, types)
            arguments = {text for spec in query.predicates for text in spec.arguments}
            argument_types = {text: types[text] for text in arguments}
        query = replace(query, lookups=tuple(self._lookups.shippable(query, stream)))
        return compiled.changed(query=query, argument_types=argument_types)

    def _select_may_fail(self, compiled: CompiledQuery, rows: StructType) -> bool:
        """Whether SELECT could fail on some row, as far as its text and its casts tell."""
        query = compiled.query
        computed = query.computed
        if not computed or any(map(text_may_raise, computed)):
            return bool(computed)
        if _select_texts(query):
            expressions = self._expressions_over(self._stream_of(query.stream))
            if expressions.are_safe(computed):
                return False
        (frame,) = self._stored.over_nothing(compiled, {ROWS: rows}, [compiled.query.result])
        return casts_may_raise(str(frame._jdf.queryExecution().optimizedPlan()))

    def _is_read_alike(self, query: Query) -> bool:
        """Whether comparing expressions shows that Spark gives a query the parser's meaning."""
        expressions = self._expressions_over(self._stream_of(query.stream))
        native = [spec.condition for spec in query.predicates if spec.function is None]
        if not expressions.are_conditions(native):  # Spark says what is wrong
            return False
        shape = shape_of(query)
        if shape is not None and expressions.read_alike[shape] >= ALIKE_MIN:
            return expressions.accepts([*_select_texts(query), *_typed_texts(query)])
        comparisons = _comparisons(query)
        if comparisons is None:
            return False
        expressions.prepare(comparisons)  # those of a shape that a query before it did not show
        is_alike = all(map(expressions.is_true, comparisons))
        if is_alike:
            others = _comparisons(query, with_others=True) or ()
            self._note_alike(query, 1 + all(map(expressions.is_true, others)))
        return is_alike

    def _note_alike(self, query: Query, times: int) -> None:
        """Note that Spark reads a query as the parser does, and how often that was seen."""
        shape = shape_of(query)
        if shape is not None:
            read_alike = self._expressions_over(self._stream_of(query.stream)).read_alike
            if len(read_alike) >= SHAPES_MAX:
                read_alike.clear()
            read_alike[shape] += times

    def _check_meaning(self, compiled: CompiledQuery) -> None:
        """Refuse a query to which Spark gives another meaning than the parser did."""
        query = compiled.query
        schemas = {ROWS: self._stream_of(query.stream).schema}
        if query.join is not None:
            schemas = {
                f"{ROWS}_{number}": self._stream_of(part.stream).schema
                for number, part in enumerate(query.join.parts)
            }
        frames = self._stored.over_nothing(compiled, schemas, [query.written, query.understood])
        written, understood = (frame._jdf.queryExecution().optimizedPlan() for frame in frames)
        for node in ("Aggregate", "Window"):
            if re.search(rf"^\W*{node}\b", str(written), re.MULTILINE):
                raise QueryError(
                    "it needs more than one row to compute something, and every row is judged by "
                    "itself; aggregate run.results(...)"
                )
        # Plans that give the same result may differ in the letter case of names; the names of the
        # result may not.
        results = {frame._jdf.schema().json() for frame in frames}
        if len(results) > 1 or not written.sameResult(understood):
            raise QueryError(
                f"it was not understood as Spark understands it, but as "
                f"{self.display_text(query.understood)}; write it in another way"
            )

    def _check_predicates(
        self, expressions: StreamExpressions, query: Query, types: dict[str, DataType]
    ) -> Query:
        """Check the types of predicates, and protect those that could fail on a row.

        The types of arguments that are protected are added to `types`.
        """
        native = [spec for spec in query.predicates if spec.function is None]
        for spec in native:
            if not isinstance(types[spec.condition], BooleanType):
                raise QueryError(
                    f"{self.display_text(spec.condition)} is "
                    f"{types[spec.condition].simpleString()}, not a condition; compare it"
                )
        if any(expressions.could_fail(spec.condition) for spec in native):
            if query.ordered is None:
                query = query.merge_native_conditions()
            else:
                query = self._protect_alternatives(expressions, query, query.ordered)
        specs = {
            spec.key: guard_arguments(expressions, query.conditions, spec)
            for spec in query.predicates
        }
        for spec in query.predicates:
            protected = specs[spec.key].arguments
            types |= zip(protected, [types[text] for text in spec.arguments], strict=True)
        return query.with_predicates(specs)

    def _protect_alternatives(
        self, expressions: StreamExpressions, query: Query, ordered: OrderedFilter
    ) -> Query:
        """Let Spark evaluate fallible alternatives to a Python function only where it would.

        Behind a call that takes the answer of the function, which is not known here: evaluated
        wherever the other conditions hold. If that fails, Spark itself judges (`arbiter`).
        """
        changed = query.order_native_conditions()
        protected = {spec.key: spec for spec in changed.predicates}
        for spec in ordered.predicates:
            if spec.function is not None or not expressions.could_fail(spec.condition):
                continue
            # Spark evaluates what is required after the conditions that call no function.
            is_required = spec.key in ordered.required
            guards = () if is_required else ordered.guards.get(spec.key, ())
            text = guarded_by((*ordered.conditions, *guards), spec.condition)
            protected[spec.key] = replace(spec, key=text, condition=text)
        return changed.with_predicates(protected)

    def _check_functions(self, query: Query) -> None:
        """Check how conditions call Python functions, and what they do with the answers."""
        for part in query.join.parts if query.join else (query,):
            for spec in part.predicates:
                if spec.function is None:
                    continue
                function = self._functions[spec.function]
                reason = function.reason_not_callable(len(spec.arguments))
                reason = reason or function.reason_not_testable(spec.comparison, spec.constant)
                if reason is not None:
                    raise QueryError(f"{self.display_text(spec.key)}: {reason}")


def needs_comparison(query: Query) -> bool:
    """Whether Spark could give a query another meaning than the parser did.

    One that only compares columns with constants means the same to Spark, except where strings
    contain escapes: those are read differently.
    """
    return bool(query.predicates or not query.is_plain or "\\" in query.text or "''" in query.text)


def needs_expressions(query: Query) -> bool:
    """Whether Spark has to analyse expressions before a query can run."""
    return query.join is not None or bool(query.computed) or needs_comparison(query)


def _comparisons(query: Query, with_others: bool = False) -> list[Expression] | None:
    """Return what is true if Spark reads a query alike; None if only plans can be compared.

    With `with_others`, of a query with other constants.
    """
    conditions, alias = same_meaning(query, with_others), alias_of(query)
    return None if conditions is None else [Expression(alias, text) for text in conditions]


def _select_texts(query: Query) -> Sequence[str]:
    """Return the computed items of SELECT that can be expressions over the stream."""
    return query.computed if _is_over_stream(query) else ()


def _is_over_stream(query: Query) -> bool:
    """Whether all parts of a query can be expressions over one stream."""
    return query.join is None and not query.tables and not query.has_lateral_aliases


def _filter_expressions(query: Query) -> list[Expression]:
    """Return what the conditions on a stream are checked with."""
    arguments = [text for spec in query.predicates for text in spec.arguments]
    texts = [*_typed_texts(query), *map(is_null, arguments if query.conditions else ())]
    return [Expression(f"`{STREAM}`", text) for text in texts]


def _typed_texts(query: Query) -> list[str]:
    """Return all expressions that Spark evaluates for the predicates of a query."""
    specs = [*query.predicates, *(query.ordered.predicates if query.ordered else ())]
    texts = dict.fromkeys(text for spec in specs for text in spec.arguments)
    return list(texts | dict.fromkeys(s.condition for s in specs if s.function is None))


def _summary(error: Exception) -> str:
    """Return the first line of what Spark says, which names what is wrong."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    summary = (lines or [type(error).__name__])[0].split(";")[0]
    if "UNRESOLVED_ROUTINE" in summary:
        summary += ". A Python function is registered with engine.function(name, f)"
    return summary
