"""Which columns of a stream cross into Python, and what is evaluated before they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType

from eddyline.spark.common.columns import quoted
from eddyline.spark.common.operator_plans import (
    ComparedAnswerPlan,
    LimitedPlan,
    OperatorPlan,
    VerdictPlan,
    plan_function,
)
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.native_routes import NativeGroup, NativeRoutes, guarded, sole_conditions
from eddyline.spark.engine.plans import NativeAnswers
from eddyline.spark.engine.shared_guards import common_guards
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.sql.query import Query
from eddyline.sql.specs import LookupSpec, PredicateSpec

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass
class Crossing:
    """The columns of one stream that cross, each once, and what the worker does with them.

    Parameters
    ----------
    columns, types
        The columns, and their names and types.
    values
        Positions of the columns that are compared with constants, by name.
    operators
        How to make each shared predicate, by key.
    functions
        Names of the Python functions among them, by key.
    evaluated
        SQL text that Spark evaluates before the crossing, with the numbers of its queries.
    groups
        Native conditions that one query alone has.
    native
        Where the answers to native conditions are; None without such conditions.

    """

    columns: list[Column] = field(default_factory=list)
    types: list[tuple[str, DataType]] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    operators: dict[str, OperatorPlan] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    evaluated: dict[str, list[int]] = field(default_factory=dict)
    groups: list[NativeGroup] = field(default_factory=list)
    native: NativeAnswers | None = None
    _positions: dict[str, int] = field(default_factory=dict)

    def place(self, label: str, make: Callable[[str], Column], text: str, kind: DataType) -> int:
        """Return the position of a column, which is added unless one of this label crosses."""
        if label not in self._positions:  # making a Column is a call to the JVM
            self._positions[label] = len(self.columns)
            self.columns.append(make(text))
            self.types.append((label, kind))
        return self._positions[label]


class CrossingPlanner:
    """Plans crossings for the queries of a micro-batch.

    Parameters
    ----------
    functions
        The registered Python functions, by name.
    lookup_plan
        Makes the operator of a lookup in a version of its table.
    routes
        Compiles native conditions that one query alone has.

    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        lookup_plan: Callable[[LookupSpec, StreamInfo, int], OperatorPlan],
        routes: NativeRoutes,
    ) -> None:
        self._functions = functions
        self._lookup_plan = lookup_plan
        self._routes = routes

    def plan(
        self,
        stream: StreamInfo,
        queries: Mapping[int, CompiledQuery],
        table_versions: Mapping[str, int],
    ) -> Crossing:
        """Return the crossing of a stream.

        Parameters
        ----------
        stream, queries
            The stream, and the queries over it by number.
        table_versions
            Version of each static table.

        """
        crossing = Crossing()
        types = {column.name: column.dataType for column in stream.schema}
        users: dict[str, list[int]] = {}
        for compiled in queries.values():
            query = compiled.outline
            compared = [*query.accepts, *[n for c in query.clauses for n in sorted(c.columns)]]
            for name in compared:
                position = crossing.place(quoted(name), stream.column, name, types[name])
                crossing.values[name] = position
            for spec in compiled.predicates:
                if spec.function is None:
                    users.setdefault(spec.key, []).append(compiled.number)
                else:
                    self._add_function(crossing, stream, compiled, spec)
            for lookup in query.lookups:
                if lookup.key not in crossing.operators:
                    positions = tuple(
                        crossing.place(quoted(name), stream.column, name, types[name])
                        for name in lookup.columns
                    )
                    made = self._lookup_plan(lookup, stream, table_versions[lookup.table])
                    crossing.operators[lookup.key] = replace(made, columns=positions)
        crossing.groups = sole_conditions(stream, queries, users)
        if users:
            self._add_native(crossing, stream, queries, users)
        if not crossing.columns:  # a batch without columns has no number of rows
            crossing.place(SOURCE, F.col, SOURCE, IntegerType())
        return crossing

    def _add_function(
        self, crossing: Crossing, stream: StreamInfo, compiled: CompiledQuery, spec: PredicateSpec
    ) -> None:
        for text in spec.arguments:
            crossing.evaluated.setdefault(text, []).append(compiled.number)
        if spec.key not in crossing.operators:
            positions = tuple(
                crossing.place(text, stream.expression, text, compiled.argument_types[text])
                for text in spec.arguments
            )
            crossing.operators[spec.key] = self._function_plan(spec, positions)
            crossing.functions[spec.key] = spec.function or ""

    def _function_plan(self, spec: PredicateSpec, positions: tuple[int, ...]) -> OperatorPlan:
        assert spec.function is not None
        function = self._functions[spec.function]
        plan: OperatorPlan
        if spec.comparison:
            plan = ComparedAnswerPlan(
                function.name,
                positions,
                function.function,
                function.returns,
                spec.comparison,
                spec.constant,
                function.other_answers,
            )
        else:
            plan = plan_function(
                function.kind, function.name, positions, function.function, function.other_answers
            )
        if function.timeout_s is None:
            return plan
        return LimitedPlan(plan.name, plan.columns, plan, function.timeout_s)

    def _add_native(
        self,
        crossing: Crossing,
        stream: StreamInfo,
        queries: Mapping[int, CompiledQuery],
        users: Mapping[str, list[int]],
    ) -> None:
        """Let the answers to all native conditions cross as one array."""
        crossing.evaluated = {**users, **crossing.evaluated}
        of = {key: [queries[number].query for number in numbers] for key, numbers in users.items()}
        answers = F.array(*self._answers(stream, of, crossing.groups))
        crossing.native = NativeAnswers(len(crossing.columns), tuple(users))
        crossing.columns.append(F.when(F.col(SOURCE) == stream.number, answers))
        crossing.types.append(("answers", ArrayType(BooleanType())))
        for number, key in enumerate(users):
            # The worker appends a column for each answer behind those that cross.
            crossing.operators[key] = VerdictPlan(key, (len(crossing.types) + number,))

    def _answers(
        self,
        stream: StreamInfo,
        conditions: Mapping[str, Sequence[Query]],
        groups: Sequence[NativeGroup],
    ) -> list[Column]:
        """Return the answer to each condition; the first of a group answers for all of them.

        Other conditions are guarded by what all their queries compare with constants.
        """
        leading = {group.conditions[0]: group for group in groups}
        led = {text for group in groups for text in group.conditions[1:]}
        answers = []
        for text, queries in conditions.items():
            if text in leading:
                answers.append(self._routes.column(leading[text]))
            elif text in led:
                answers.append(F.lit(True))
            else:
                answer, guards = stream.expression(text), common_guards(queries)
                answers.append(guarded(stream, guards, answer) if guards else answer)
        return answers
