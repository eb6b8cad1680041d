"""From the queries of one version of the catalogue to the UDF that runs them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    StructField,
    StructType,
)

from eddyline.fabric.shared.learnt import LearntOperator
from eddyline.ordering import Policy
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.crossing import CrossingPlanner
from eddyline.spark.engine.native_routes import NativeGroup, NativeRoutes
from eddyline.spark.engine.numbered import Numbered
from eddyline.spark.engine.plans import EddyPlan, StreamPlan
from eddyline.spark.engine.stream_history import StreamHistory
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.engine.task_note import EddyCounts
from eddyline.spark.engine.wanted_parts import PartBits, can_be_bits
from eddyline.spark.engine.worker import run_probe, run_task
from eddyline.spark.state.join_plan import owner

if TYPE_CHECKING:
    from pyspark.sql import Column

MATCHES_TYPE = StructType(
    [StructField("queries", ArrayType(IntegerType(), False)), StructField("note", BinaryType())]
)


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the Spark session that affect the conversion of values."""

    timezone: str
    binary_as_bytes: bool


@dataclass(frozen=True)
class BatchPlan:
    """What runs all queries of one version on a micro-batch.

    Parameters
    ----------
    matches
        The column that holds the numbers of the queries that a row matches.
    stored_columns
        For each stream, by number, the columns that some query makes its result of.
    evaluated
        What Spark evaluates: stream number and SQL text, with the numbers of its queries.
    queries
        The queries, by number.
    groups
        Native conditions that one query alone has.
    functions
        Names of the Python functions that workers call, by stream number and operator key.
    eddies, crossing
        What `matches` was made of: the plan for workers, and the columns that cross.
    bits
        Does without eddies; None if these are needed.

    """

    matches: Column
    stored_columns: Mapping[int, Sequence[str]]
    evaluated: Mapping[tuple[int, str], Sequence[int]]
    queries: Mapping[int, CompiledQuery]
    groups: Sequence[NativeGroup]
    functions: Mapping[tuple[int, str], str]
    eddies: EddyPlan
    crossing: Sequence[Column]
    bits: PartBits | None = None


@dataclass(frozen=True)
class _PlanInput:
    """What a plan was made of."""

    queries: tuple[CompiledQuery, ...]
    table_versions: Mapping[str, int]
    routes_version: int

    def is_same(self, other: _PlanInput) -> bool:
        """Whether the same plan would come out; queries are compared by identity."""
        return (
            self.table_versions == other.table_versions
            and self.routes_version == other.routes_version
            and (
                self.queries is other.queries
                or list(map(id, self.queries)) == list(map(id, other.queries))
            )
        )


class EddyPlanner:
    """Plans the micro-batches of one engine.

    Parameters
    ----------
    run_id
        Distinguishes the eddies of this planner from others that a worker may hold.
    streams
        In the order of their numbers.
    crossings
        Plans which columns cross into Python.
    routes
        Native routes that were learnt; another version of them needs another plan.
    policy
        Decides the order of operators in the workers' eddies.
    session
        Settings for the conversion of values.
    seed
        For whatever the policy draws.

    """

    def __init__(
        self,
        run_id: str,
        streams: Sequence[StreamInfo],
        crossings: CrossingPlanner,
        routes: NativeRoutes,
        policy: Policy,
        session: SessionSettings,
        seed: int | None = None,
    ) -> None:
        self._run_id = run_id
        self._streams = list(streams)
        self._crossings = crossings
        self.routes = routes
        self.policy = policy
        self._session = session
        self.seed = seed
        self._version = 0
        self._last: tuple[_PlanInput, BatchPlan] | None = None
        self._histories = [StreamHistory(shared=CompiledQuery.shared) for _ in streams]
        self._learnt: dict[int, dict[str, LearntOperator]] = {}
        self._uses, self._renew_at = 0, 1

    def plan(
        self, queries: Sequence[CompiledQuery], table_versions: Mapping[str, int]
    ) -> BatchPlan:
        """Return what runs the given queries, with the given versions of static tables.

        The last plan is returned again if neither queries, tables nor routes have changed, now and
        then with what workers have learnt since.
        """
        given = _PlanInput(tuple(queries), dict(table_versions), self.routes.version)
        if self._last is not None and self._last[0].is_same(given):
            return self._with_learnt(self._last[1])
        plan = self._make_plan(given)
        self._uses, self._renew_at = 0, 1
        self._last = (given, plan)
        return plan

    def learn(self, eddies: EddyCounts) -> None:
        """Keep what workers have learnt, so that new ones begin with it."""
        for stream, by_name in eddies.operators.items():
            self._learnt[stream] = {name: work.learnt for name, work in by_name.items()}

    def _with_learnt(self, plan: BatchPlan) -> BatchPlan:
        """Return a plan with what was learnt meanwhile, after 1, 2, 4, ... micro-batches."""
        self._uses += 1
        if self._uses < self._renew_at or self._last is None:
            return plan
        self._renew_at *= 2
        streams = tuple(
            replace(stream, learnt=self._learnt.get(number, stream.learnt))
            for number, stream in enumerate(plan.eddies.streams)
        )
        eddies = replace(plan.eddies, streams=streams)
        renewed = replace(plan, matches=make_udf(eddies)(*plan.crossing), eddies=eddies)
        self._last = (self._last[0], renewed)
        return renewed

    def _make_plan(self, given: _PlanInput) -> BatchPlan:
        self._version += 1
        arguments: list[Column] = [F.col(SOURCE)]
        stream_plans: list[StreamPlan] = []
        evaluated: dict[tuple[int, str], Sequence[int]] = {}
        groups: list[NativeGroup] = []
        functions: dict[tuple[int, str], str] = {}
        stored_columns: dict[int, list[str]] = {}
        queries: Numbered[CompiledQuery] = Numbered()
        for stream, history in zip(self._streams, self._histories, strict=True):
            queries = Numbered(
                (own.number, own)
                for compiled in given.queries
                for own in compiled.filters()
                if own.outline.stream == stream.name
            )
            crossing = self._crossings.plan(stream, queries, given.table_versions)
            stream_plans.append(
                StreamPlan(
                    stream.domains(),
                    history.advance(self._version, queries),
                    tuple(crossing.types),
                    crossing.values,
                    crossing.operators,
                    crossing.native,
                    self._learnt.get(stream.number, {}),
                )
            )
            arguments += crossing.columns
            groups += crossing.groups
            functions |= {(stream.number, key): name for key, name in crossing.functions.items()}
            evaluated |= {
                (stream.number, text): list(dict.fromkeys(map(owner, users)))
                for text, users in crossing.evaluated.items()
            }
            wanted = {n for c in queries.values() if c.is_stored for n in c.outline.columns}
            stored_columns[stream.number] = [c.name for c in stream.schema if c.name in wanted]
        eddy_plan = EddyPlan(
            self._run_id,
            self._version,
            tuple(stream_plans),
            self.policy,
            self._session.timezone,
            self._session.binary_as_bytes,
            self.seed,
        )
        is_all = len(queries) == len(given.queries) and all(q.join is None for q in given.queries)
        by_number = queries if is_all else Numbered((own.number, own) for own in given.queries)
        return BatchPlan(
            make_udf(eddy_plan)(*arguments),
            stored_columns,
            evaluated,
            by_number,
            groups,
            functions,
            eddy_plan,
            arguments,
            self._bits(given.queries),
        )

    def _bits(self, queries: Sequence[CompiledQuery]) -> PartBits | None:
        if not can_be_bits(queries):
            return None
        return PartBits(self._streams, [role for query in queries for role in query.filters()])


def make_udf(plan: EddyPlan) -> Callable[..., Column]:
    """Return the iterator Arrow UDF of an engine: columns in, matching queries out."""

    def eddyline_eddy(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return run_task(plan, batches)

    udf = F.arrow_udf(eddyline_eddy, returnType=MATCHES_TYPE)
    # It sends notes: Spark must neither evaluate it twice nor move it.
    made: Callable[..., Column] = udf.asNondeterministic()
    return made


def make_probe(plan: EddyPlan, keys: Collection[tuple[int, str]]) -> Callable[..., Column]:
    """Return a UDF that calls some functions on every row and answers nothing.

    Parameters
    ----------
    plan
        The plan that has the functions.
    keys
        Stream number and operator key of each function to call.

    """

    def eddyline_probe(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return run_probe(plan, keys, batches)

    made: Callable[..., Column] = F.arrow_udf(eddyline_probe, returnType=BooleanType())
    return made
