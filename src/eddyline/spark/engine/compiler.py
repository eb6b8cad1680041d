"""From the SQL text of a query to a query that can run: parsed, then checked with Spark."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType

from eddyline.errors import QueryError
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.lookups import TableLookups
from eddyline.spark.engine.result_store import ResultStore
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.native.failing import casts_may_raise, may_raise, text_may_raise
from eddyline.sql.parse import parse
from eddyline.sql.placeholders import STREAM, display_text
from eddyline.sql.query import PredicateSpec, Query, guarded_by
from eddyline.sql.schemas import Schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        self._suffix = f"__{uuid.uuid4().hex[:8]}"

    def name_for_spark(self, function: str) -> str:
        """Return a name for the function that no other engine of the session uses."""
        return f"{function}{self._suffix}"

    def display_text(self, text: str) -> str:
        """Return an expression in the form in which the user wrote it."""
        return display_text(text).replace(self._suffix, "")

    def compile(
        self, number: int, name: str, text: str, sink: str, schemas: Schemas
    ) -> CompiledQuery:
        """Parse a query and check with Spark what only Spark can decide."""
        try:
            query = parse(text, schemas)
            return self._check_with_spark(CompiledQuery(number, name, query, sink))
        except QueryError as error:
            raise QueryError(f"query {name!r}: {self.display_text(str(error))}") from None
        except (AnalysisException, ParseException) as error:
            summary = str(error).split("\n")[0].split(";")[0]
            raise QueryError(f"query {name!r}: {self.display_text(summary)}") from None

    def _check_with_spark(self, compiled: CompiledQuery) -> CompiledQuery:
        query, stream = compiled.query, self._stream_of(compiled.query.stream)
        missing = sorted(set(query.functions) - set(self._functions))
        if missing:
            raise QueryError(
                f"the function {missing[0]!r} is not registered in this process; call "
                f"engine.function({missing[0]!r}, ...) first"
            )
        # A plain query that only compares columns with constants means the same to Spark, except
        # where strings contain escapes: those are read differently.
        if query.predicates or not query.is_plain or "\\" in query.text or "''" in query.text:
            self._check_meaning(compiled, stream)
        argument_types: dict[str, DataType] = {}
        if query.predicates:
            empty_stream = self._spark.createDataFrame([], stream.schema).alias(STREAM)
            query = self._check_predicates(empty_stream, query)
            for text in {text for spec in query.predicates for text in spec.arguments}:
                argument_types[text] = empty_stream.select(F.expr(text)).schema[0].dataType
        query = replace(query, lookups=tuple(self._lookups.shippable(query, stream)))
        return replace(
            compiled,
            query=query,
            argument_types=argument_types,
            select_may_fail=self._select_may_fail(compiled, stream),
            select_calls_python=any(self._suffix in text for text in query.computed),
        )

    def _select_may_fail(self, compiled: CompiledQuery, stream: StreamInfo) -> bool:
        """Whether SELECT could fail on some row, as far as its text and its casts tell."""
        computed = compiled.query.computed
        if not computed or any(map(text_may_raise, computed)):
            return bool(computed)
        return casts_may_raise(self._stored.analysed(compiled, stream, compiled.query.result))

    def _check_meaning(self, compiled: CompiledQuery, stream: StreamInfo) -> None:
        """Refuse a query to which Spark gives another meaning than the parser did."""
        written, understood = (
            self._stored.analysed(compiled, stream, text)
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
                f"{self.display_text(compiled.query.understood)}; write it in another way"
            )

    def _check_predicates(self, empty_stream: DataFrame, query: Query) -> Query:
        """Check the types of predicates, and protect those that could fail on a row."""
        native = [spec for spec in query.predicates if spec.function is None]
        for spec in query.predicates:
            if spec.function is not None:
                self._check_function_test(spec, self._functions[spec.function])
        for spec in native:
            data_type = empty_stream.select(F.expr(spec.condition)).schema[0].dataType
            if not isinstance(data_type, BooleanType):
                raise QueryError(
                    f"{self.display_text(spec.condition)} is {data_type.simpleString()}, not a "
                    f"condition; compare it"
                )
        fallible = [s for s in native if may_raise(empty_stream, NativePredicate(s.condition))]
        if fallible:
            query = query.merge_native_conditions()
        for spec in fallible:
            if spec in query.predicates:
                raise QueryError(
                    f"{self.display_text(spec.condition)} could fail on some rows and stands in an "
                    f"OR with a Python function, so that nothing can protect it; write it so that "
                    f"it cannot fail (try_divide, try_cast, try_add), or without the OR"
                )
        guarded = {
            spec.key: _guard_arguments(empty_stream, query, spec) for spec in query.predicates
        }
        return replace(
            query,
            predicates=tuple(guarded.values()),
            required=tuple(guarded[key].key for key in query.required),
        )

    def _check_function_test(self, spec: PredicateSpec, function: Function) -> None:
        reason = function.reason_not_testable(spec.comparison, spec.constant)
        if reason is not None:
            raise QueryError(f"{self.display_text(spec.key)}: {reason}")


def _guard_arguments(empty_stream: DataFrame, query: Query, spec: PredicateSpec) -> PredicateSpec:
    """Return the predicate with fallible arguments computed only where all conditions hold."""
    if spec.key not in query.required or not query.conditions:
        return spec
    arguments = tuple(
        guarded_by(query.conditions, text)
        if may_raise(empty_stream, NativePredicate(f"{text} IS NULL"))
        else text
        for text in spec.arguments
    )
    if arguments == spec.arguments:
        return spec
    return replace(spec, key=guarded_by(query.conditions, spec.key), arguments=arguments)
