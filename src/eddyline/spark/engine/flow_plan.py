"""From the queries of one version of the catalogue to the UDF that runs them all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    StructField,
    StructType,
)

from eddyline.operators.domain import Domain
from eddyline.spark.attributes import quoted
from eddyline.spark.engine.flow_worker import Changes, FlowPlan, StreamPlan, run_task
from eddyline.spark.engine.functions import Function, FunctionPlan
from eddyline.spark.worker import OperatorPlan
from eddyline.sql import STREAM, LookupSpec, PredicateSpec, Query, StandingQuery
from eddyline.sql.comparison import ColumnTypes

if TYPE_CHECKING:
    from pyspark.sql import Column

MATCHED = StructType(
    [StructField("queries", ArrayType(IntegerType(), False)), StructField("note", BinaryType())]
)
SOURCE = "_source"  # which stream a row is of
CHANGES_MIN = 64  # so many changes travel with the plan before all queries do anew


@dataclass
class StreamInfo:
    """A stream as its queries see it.

    Parameters
    ----------
    number
        Its place among the engine's streams.
    name, schema
        As registered.
    timezone
        Of the session.
    time, delay_us
        The column that says when a row happened, and how late a row may be.

    """

    number: int
    name: str
    schema: StructType
    timezone: str
    time: str | None = None
    delay_us: int = 0

    @property
    def field(self) -> str:
        """The struct column that holds its rows."""
        return f"s{self.number}"

    @property
    def types(self) -> dict[str, str]:
        """Names and types of its columns."""
        return {column.name: column.dataType.simpleString() for column in self.schema}

    def domains(self) -> dict[str, Domain]:
        """Return what the columns hold that can be compared with constants."""
        columns = ColumnTypes(self.types, self.timezone)
        known = {name: columns.domain(name) for name in self.types}
        return {name: domain for name, domain in known.items() if domain is not None}

    def column(self, name: str) -> Column:
        """Return one of its columns."""
        return F.col(f"{self.field}.{quoted(name)}")

    def expression(self, text: str) -> Column:
        """Return an expression over its columns."""
        return F.expr(text.replace(f"`{STREAM}`", f"`{self.field}`"))


@dataclass
class CompiledQuery:
    """A query that can be run: its parts, and where its results go."""

    number: int
    name: str
    query: Query
    sink: str
    argument_types: Mapping[str, DataType] = field(default_factory=dict)

    @property
    def is_stored(self) -> bool:
        """Whether its rows are wanted, or only their number."""
        return self.sink != "count"

    def standing(self) -> StandingQuery:
        """Return what a flow must know of it."""
        return self.query.standing(self.number, self.is_stored)


@dataclass
class Planned:
    """What runs all queries of a version.

    Parameters
    ----------
    matches
        The column that says which queries a row matches.
    stored
        For each stream, the columns that some query makes its result of.
    evaluated
        What Spark evaluates, each with the stream it is over and the queries that have it.
    queries
        The queries, by number.

    """

    matches: Column
    stored: dict[int, list[str]]
    evaluated: dict[tuple[int, str], list[int]]
    queries: dict[int, CompiledQuery]


_Given = tuple[list[CompiledQuery], dict[str, int]]


class _History:
    """The queries over one stream at some version, and what changed since."""

    def __init__(self) -> None:
        self._base: bytes | None = None
        self._base_version = 0
        self._changes: list[Changes] = []
        self._known: dict[int, StandingQuery] = {}

    def plan(
        self, version: int, queries: Mapping[int, StandingQuery], domains: dict[str, Domain]
    ) -> StreamPlan:
        known = self._known
        added = [query for number, query in queries.items() if known.get(number) != query]
        dropped = [number for number, query in known.items() if queries.get(number) != query]
        self._known = dict(queries)
        if added or dropped:
            self._changes.append(Changes(version, added, dropped))
        changed = sum(len(change.added) + len(change.dropped) for change in self._changes)
        if self._base is None or changed > max(CHANGES_MIN, len(queries) // 4):
            self._base = pickle.dumps(list(queries.values()), protocol=pickle.HIGHEST_PROTOCOL)
            self._base_version, self._changes = version, []
        return StreamPlan(domains, self._base, self._base_version, list(self._changes))


class FlowPlanner:
    """Plans the runs of one engine.

    Parameters
    ----------
    run_id
        Tells the flows of this run from those of others that a worker may have seen.
    streams
        In their order.
    functions
        The registered Python functions, by name.
    lookup_plan
        Makes the operator of a lookup in a version of its table.
    timezone, binary_as_bytes
        Session settings that matter for converting values.

    """

    def __init__(
        self,
        run_id: str,
        streams: Sequence[StreamInfo],
        functions: Mapping[str, Function],
        lookup_plan: Callable[[LookupSpec, StreamInfo, int], OperatorPlan],
        timezone: str,
        binary_as_bytes: bool,
        seed: int | None = None,
    ) -> None:
        self._run_id = run_id
        self._streams = list(streams)
        self._functions = functions
        self._lookup_plan = lookup_plan
        self._timezone = timezone
        self._binary_as_bytes = binary_as_bytes
        self._seed = seed
        self._plans = 0
        self._last: tuple[_Given, Planned] | None = None
        self._histories = [_History() for _ in streams]

    def plan(self, queries: Sequence[CompiledQuery], tables: Mapping[str, int]) -> Planned:
        """Return what runs the given queries, with the given versions of static tables.

        Made anew only if there are other queries, or other tables, than the last time.
        """
        given = (list(queries), dict(tables))
        if self._last is not None and self._is_same(self._last[0], given):
            return self._last[1]
        self._plans += 1
        arguments: list[Column] = [F.col(SOURCE)]
        plans, evaluated = [], {}
        stored: dict[int, list[str]] = {}
        for stream, history in zip(self._streams, self._histories, strict=True):
            own = {c.number: c for c in queries if c.query.stream == stream.name}
            standing = {number: compiled.standing() for number, compiled in own.items()}
            plan = history.plan(self._plans, standing, stream.domains())
            columns, asked = self._plan_columns(stream, own, plan, tables)
            arguments += columns
            for text, numbers in asked.items():
                evaluated[stream.number, text] = numbers
            plans.append(plan)
            wanted = {n for c in own.values() if c.is_stored for n in c.query.columns}
            stored[stream.number] = [c.name for c in stream.schema if c.name in wanted]
        whole = FlowPlan(
            self._run_id, self._plans, plans, self._timezone, self._binary_as_bytes, self._seed
        )
        matches = make_flow_udf(whole)(*arguments)
        planned = Planned(matches, stored, evaluated, {c.number: c for c in queries})
        self._last = (given, planned)
        return planned

    @staticmethod
    def _is_same(before: _Given, now: _Given) -> bool:
        return (
            before[1] == now[1]
            and len(before[0]) == len(now[0])
            and all(a is b for a, b in zip(before[0], now[0], strict=True))
        )

    def _plan_columns(
        self,
        stream: StreamInfo,
        queries: Mapping[int, CompiledQuery],
        plan: StreamPlan,
        tables: Mapping[str, int],
    ) -> tuple[list[Column], dict[str, list[int]]]:
        """Say which columns cross into Python, and what is done with them there."""
        columns: list[Column] = []
        places: dict[str, int] = {}

        def place(label: str, make: Callable[[str], Column], text: str, kind: DataType) -> int:
            if label not in places:  # making a Column asks the JVM: once for all queries
                places[label] = len(columns)
                columns.append(make(text))
                plan.columns.append((label, kind))
            return places[label]

        types = {c.name: c.dataType for c in stream.schema}
        conditions: dict[str, list[int]] = {}
        arguments: dict[str, list[int]] = {}
        for compiled in queries.values():
            query = compiled.query
            compared = [*query.accepts, *[name for c in query.clauses for name in c.accepts]]
            for name in compared:
                plan.values[name] = place(quoted(name), stream.column, name, types[name])
            for spec in query.predicates:
                if spec.function is None:
                    conditions.setdefault(spec.key, []).append(compiled.number)
                    continue
                for text in spec.arguments:
                    arguments.setdefault(text, []).append(compiled.number)
                if spec.key not in plan.operators:
                    at = tuple(
                        place(text, stream.expression, text, compiled.argument_types[text])
                        for text in spec.arguments
                    )
                    plan.operators[spec.key] = self._function_plan(spec, at)
            for lookup in query.lookups:
                if lookup.key not in plan.operators:
                    at = tuple(
                        place(quoted(name), stream.column, name, types[name])
                        for name in lookup.columns
                    )
                    made = self._lookup_plan(lookup, stream, tables[lookup.table])
                    plan.operators[lookup.key] = replace(made, columns=at)
        if conditions:
            answers = F.array(*[stream.expression(text) for text in conditions])
            plan.native = (len(columns), list(conditions))
            columns.append(F.when(F.col(SOURCE) == stream.number, answers))
            plan.columns.append(("answers", ArrayType(BooleanType())))
            for number, key in enumerate(conditions):
                position = len(plan.columns) + number
                plan.operators[key] = OperatorPlan("verdict", key, (position,))
        if not columns:  # a batch without columns would not know how many rows it has
            place(SOURCE, F.col, SOURCE, IntegerType())
        return columns, {**conditions, **arguments}

    def _function_plan(
        self, spec: PredicateSpec, at: tuple[int, ...]
    ) -> OperatorPlan | FunctionPlan:
        assert spec.function is not None
        function = self._functions[spec.function]
        if spec.comparison:
            return FunctionPlan(function.name, at, function, spec)
        return OperatorPlan(
            function.kind, function.name, at, function.function, function.other_answers
        )


def make_flow_udf(plan: FlowPlan) -> Callable[..., Column]:
    """Return the one iterator Arrow UDF of an engine: columns in, matching queries out."""

    def eddyline_flow(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return run_task(plan, batches)

    udf = F.arrow_udf(eddyline_flow, returnType=MATCHED)
    # Not deterministic, for its notes: Spark must neither repeat it nor move it.
    made: Callable[..., Column] = udf.asNondeterministic()
    return made
