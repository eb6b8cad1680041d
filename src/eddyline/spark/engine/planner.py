"""From the queries of one version of the catalogue to the UDF that runs them all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from eddyline.fabric.shared.query import StandingQuery
from eddyline.operators.domain import Domain
from eddyline.spark.common.columns import quoted
from eddyline.spark.common.operator_plans import (
    ComparedAnswerPlan,
    OperatorPlan,
    VerdictPlan,
    plan_function,
)
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.native_routes import NativeGroup, NativeRoutes
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.engine.worker import Changes, FlowPlan, StreamPlan, run_task
from eddyline.sql.query import LookupSpec, PredicateSpec, Query

if TYPE_CHECKING:
    from pyspark.sql import Column

MATCHED = StructType(
    [StructField("queries", ArrayType(IntegerType(), False)), StructField("note", BinaryType())]
)
CHANGES_MIN = 64  # so many changes travel with the plan before all queries do anew


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
    groups
        Conditions of Spark's that one query alone has.

    """

    matches: Column
    stored: dict[int, list[str]]
    evaluated: dict[tuple[int, str], list[int]]
    queries: dict[int, CompiledQuery]
    groups: list[NativeGroup]


_Given = tuple[list[CompiledQuery], dict[str, int], int]


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
    routes
        Compiles conditions of Spark's that one query alone has.
    timezone, binary_as_bytes
        Session settings that matter for converting values.

    """

    def __init__(
        self,
        run_id: str,
        streams: Sequence[StreamInfo],
        functions: Mapping[str, Function],
        lookup_plan: Callable[[LookupSpec, StreamInfo, int], OperatorPlan],
        routes: NativeRoutes,
        timezone: str,
        binary_as_bytes: bool,
        seed: int | None = None,
    ) -> None:
        self._run_id = run_id
        self._streams = list(streams)
        self._functions = functions
        self._lookup_plan = lookup_plan
        self.routes = routes
        self._timezone = timezone
        self._binary_as_bytes = binary_as_bytes
        self._seed = seed
        self._plans = 0
        self._last: tuple[_Given, Planned] | None = None
        self._histories = [_History() for _ in streams]

    def plan(self, queries: Sequence[CompiledQuery], tables: Mapping[str, int]) -> Planned:
        """Return what runs the given queries, with the given versions of static tables.

        Made anew only if there are other queries, tables or routes than the last time.
        """
        given = (list(queries), dict(tables), self.routes.version)
        if self._last is not None and self._is_same(self._last[0], given):
            return self._last[1]
        self._plans += 1
        arguments: list[Column] = [F.col(SOURCE)]
        plans: list[StreamPlan] = []
        evaluated: dict[tuple[int, str], list[int]] = {}
        groups: list[NativeGroup] = []
        stored: dict[int, list[str]] = {}
        for stream, history in zip(self._streams, self._histories, strict=True):
            own = {c.number: c for c in queries if c.query.stream == stream.name}
            standing = {number: compiled.standing() for number, compiled in own.items()}
            plan = history.plan(self._plans, standing, stream.domains())
            columns, asked, alone = self._plan_columns(stream, own, plan, tables)
            arguments += columns
            groups += alone
            for text, numbers in asked.items():
                evaluated[stream.number, text] = numbers
            plans.append(plan)
            wanted = {n for c in own.values() if c.is_stored for n in c.query.columns}
            stored[stream.number] = [c.name for c in stream.schema if c.name in wanted]
        whole = FlowPlan(
            self._run_id, self._plans, plans, self._timezone, self._binary_as_bytes, self._seed
        )
        matches = make_flow_udf(whole)(*arguments)
        planned = Planned(matches, stored, evaluated, {c.number: c for c in queries}, groups)
        self._last = (given, planned)
        return planned

    @property
    def plan_in_use(self) -> Planned | None:
        """What the last micro-batch was run with."""
        return self._last[1] if self._last else None

    @staticmethod
    def _is_same(before: _Given, now: _Given) -> bool:
        return (
            before[1:] == now[1:]
            and len(before[0]) == len(now[0])
            and all(a is b for a, b in zip(before[0], now[0], strict=True))
        )

    def _plan_columns(
        self,
        stream: StreamInfo,
        queries: Mapping[int, CompiledQuery],
        plan: StreamPlan,
        tables: Mapping[str, int],
    ) -> tuple[list[Column], dict[str, list[int]], list[NativeGroup]]:
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
        groups = _alone(stream, queries, conditions)
        if conditions:
            answers = F.array(*self._answers(stream, conditions, groups))
            plan.native = (len(columns), list(conditions))
            columns.append(F.when(F.col(SOURCE) == stream.number, answers))
            plan.columns.append(("answers", ArrayType(BooleanType())))
            for number, key in enumerate(conditions):
                position = len(plan.columns) + number
                plan.operators[key] = VerdictPlan(key, (position,))
        if not columns:  # a batch without columns would not know how many rows it has
            place(SOURCE, F.col, SOURCE, IntegerType())
        return columns, {**conditions, **arguments}, groups

    def _answers(
        self, stream: StreamInfo, conditions: Iterable[str], groups: Sequence[NativeGroup]
    ) -> list[Column]:
        """Return the answer to each condition; the first of a group answers for all of them."""
        leading = {group.conditions[0]: group for group in groups}
        led = {text for group in groups for text in group.conditions[1:]}
        return [
            self.routes.column(leading[text])
            if text in leading
            else (F.lit(True) if text in led else stream.expression(text))
            for text in conditions
        ]

    def _function_plan(self, spec: PredicateSpec, at: tuple[int, ...]) -> OperatorPlan:
        assert spec.function is not None
        function = self._functions[spec.function]
        if spec.comparison:
            return ComparedAnswerPlan(
                function.name,
                at,
                function.function,
                function.returns,
                spec.comparison,
                spec.constant,
                function.other_answers,
            )
        return plan_function(
            function.kind, function.name, at, function.function, function.other_answers
        )


def _alone(
    stream: StreamInfo,
    queries: Mapping[int, CompiledQuery],
    users: Mapping[str, Sequence[int]],
) -> list[NativeGroup]:
    """Return, for each query, those required conditions of Spark's that no other query has."""
    groups = []
    for number, compiled in queries.items():
        alone = [key for key in compiled.query.required if users.get(key) == [number]]
        if alone:
            group = NativeGroup.of(compiled.name, stream.number, compiled.query, alone)
            groups += [group] if group.guards or len(alone) > 1 else []
    return groups


def make_flow_udf(plan: FlowPlan) -> Callable[..., Column]:
    """Return the one iterator Arrow UDF of an engine: columns in, matching queries out."""

    def eddyline_flow(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return run_task(plan, batches)

    udf = F.arrow_udf(eddyline_flow, returnType=MATCHED)
    # Not deterministic, for its notes: Spark must neither repeat it nor move it.
    made: Callable[..., Column] = udf.asNondeterministic()
    return made
