"""From the text of a query to what can be run: parsed, and checked with Spark."""

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
from eddyline.spark.native.failing import may_raise
from eddyline.sql.names import Schemas
from eddyline.sql.parse import STREAM, parse, shown
from eddyline.sql.query import PredicateSpec, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class QueryCompiler:
    """Makes queries ready to run, or says what is wrong with them.

    Parameters
    ----------
    spark
        The session that says what expressions mean.
    stored
        Reads a query as it would be run over stored rows.
    functions
        The Python functions registered so far.
    lookups
        Joins with static tables as lookups.
    stream_of
        Finds a stream by name.

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
        """Return a name that no other engine of the session uses."""
        return f"{function}{self._suffix}"

    def shown(self, text: str) -> str:
        """Return an expression as its author would write it."""
        return shown(text).replace(self._suffix, "")

    def compile(
        self, number: int, name: str, text: str, sink: str, schemas: Schemas
    ) -> CompiledQuery:
        """Parse a query and check with Spark whatever only Spark can."""
        try:
            query = parse(text, schemas)
            return self._check_with_spark(CompiledQuery(number, name, query, sink))
        except QueryError as error:
            raise QueryError(f"query {name!r}: {self.shown(str(error))}") from None
        except (AnalysisException, ParseException) as error:
            said = str(error).split("\n")[0].split(";")[0]
            raise QueryError(f"query {name!r}: {self.shown(said)}") from None

    def _check_with_spark(self, compiled: CompiledQuery) -> CompiledQuery:
        query, stream = compiled.query, self._stream_of(compiled.query.stream)
        missing = sorted(set(query.functions) - set(self._functions))
        if missing:
            raise QueryError(
                f"the function {missing[0]!r} is not registered in this process; call "
                f"engine.function({missing[0]!r}, ...) first"
            )
        # What is compared with constants only was taken over exactly.
        if query.predicates or not query.is_plain or "\\" in query.text or "''" in query.text:
            self._check_meaning(compiled, stream)
        types: dict[str, DataType] = {}
        if query.predicates:
            probe = self._spark.createDataFrame([], stream.schema).alias(STREAM)
            query = self._check_predicates(probe, query)
            for text in {t for spec in query.predicates for t in spec.arguments}:
                types[text] = probe.select(F.expr(text)).schema[0].dataType
        query = replace(query, lookups=tuple(self._lookups.shippable(query, stream)))
        return replace(compiled, query=query, argument_types=types)

    def _check_meaning(self, compiled: CompiledQuery, stream: StreamInfo) -> None:
        """Make sure that Spark takes the query as it was written for what was understood."""
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
                f"{self.shown(compiled.query.understood)}; write it in another way"
            )

    def _check_predicates(self, probe: DataFrame, query: Query) -> Query:
        own = [spec for spec in query.predicates if spec.function is None]
        for spec in query.predicates:
            why = self._functions[spec.function].why_not(spec) if spec.function else None
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
