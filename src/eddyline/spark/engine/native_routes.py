"""Native conditions that only one query has, each evaluated on as few rows as possible.

They become one condition: guarded by the comparisons of the query, and evaluated in the best order,
or in the best order for each class of rows where that pays. The order is learnt from the rows of a
finished micro-batch, again from time to time; the next micro-batch is then compiled with it
(`docs/decisions/0013`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.journal import Event
from eddyline.journal.events import ClassSearchFailed
from eddyline.mesh import MeshOptions
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.shared_guards import own_guards
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.native.columns import mesh_to_column, route_to_column
from eddyline.spark.native.conditions import NativeRun
from eddyline.spark.native.pilot import pilot_sample
from eddyline.spark.native.run import learn_run
from eddyline.sql.placeholders import STREAM, display_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEARNING_SHARE = 0.02
FIRST_LEARNING_S = 3.0  # expected duration before the first measurement
ROWS_MIN = 1_000


@dataclass(frozen=True)
class NativeGroup:
    """The native conditions that one query alone has.

    Parameters
    ----------
    query
        Name of the query.
    stream
        Number of its stream.
    guards
        Its comparisons with constants: `conditions` matter only where these hold.
    conditions
        The native conditions; all of them must hold.

    """

    query: str
    stream: int
    guards: tuple[str, ...]
    conditions: tuple[str, ...]


def sole_conditions(
    stream: StreamInfo,
    queries: Mapping[int, CompiledQuery],
    users: Mapping[str, Sequence[int]],
) -> list[NativeGroup]:
    """Return a group for each query that has required native conditions which no other query has.

    Parameters
    ----------
    stream, queries
        The stream, and the queries over it by number.
    users
        For each native condition, the numbers of the queries that have it.

    """
    groups = []
    alone = {numbers[0] for numbers in users.values() if len(numbers) == 1}
    for number, compiled in queries.items() if alone else ():
        if number not in alone:
            continue
        query = compiled.query
        conditions = tuple(key for key in query.required if users.get(key) == [number])
        if conditions:
            guards = tuple(own_guards(query))
            if guards or len(conditions) > 1:
                groups.append(NativeGroup(compiled.name, stream.number, guards, conditions))
    return groups


class NativeRoutes:
    """What was learnt about such groups, and the Columns they are compiled to.

    Parameters
    ----------
    streams
        The streams of the engine.
    note
        Writes a decision into the journal.
    seed
        For everything random.
    learning_share
        Largest share of the duration of micro-batches to spend on learning.

    """

    def __init__(
        self,
        streams: Sequence[StreamInfo],
        note: Callable[[Event], None],
        seed: int | None = None,
        learning_share: float = LEARNING_SHARE,
    ) -> None:
        #: Increases whenever a Column would be compiled differently.
        self.version = 0
        self._streams = {stream.number: stream for stream in streams}
        self._note = note
        self._seed = seed
        self._learning_share = learning_share
        self._runs: dict[tuple[int, tuple[str, ...]], NativeRun] = {}
        self._turns: dict[tuple[int, tuple[str, ...]], int] = {}
        self._batches_s = self._learning_s = 0.0
        self._expected_s = FIRST_LEARNING_S

    def column(self, group: NativeGroup) -> Column:
        """Return the group as one condition, which is never NULL."""
        stream = self._streams[group.stream]
        conditions = [stream.expression(text) for text in group.conditions]
        run = self._runs.get((group.stream, group.conditions))
        if run is None:
            routed = route_to_column(range(len(conditions)), conditions)
        elif run.mesh is None:
            routed = route_to_column(run.order, conditions)
        else:
            attributes = {name: stream.column(name) for name in run.mesh.tree.attributes}
            routed = mesh_to_column(run.mesh, conditions, attributes, run.order)
        if not group.guards:
            return routed
        return guarded(stream, group.guards, routed)

    def learn(
        self, df: DataFrame, rows: int, seconds: float, groups: Sequence[NativeGroup]
    ) -> None:
        """Learn about one group from a finished micro-batch, within the share of time for it."""
        self._batches_s += seconds
        open_to_choice = [group for group in groups if len(group.conditions) > 1]
        is_too_soon = self._learning_s + self._expected_s > self._learning_share * self._batches_s
        if rows < ROWS_MIN or not open_to_choice or is_too_soon:
            return
        group = min(open_to_choice, key=lambda g: self._turns.get((g.stream, g.conditions), 0))
        key = (group.stream, group.conditions)
        self._turns[key] = self._turns.get(key, 0) + 1
        began = time.perf_counter()
        try:
            run = self._learn_from(df, group)
        except Exception as error:  # learning must not stop the queries
            why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self._note(ClassSearchFailed(query=group.query, reason=why))
        else:
            before = self._runs.get(key)
            if before is None or (run.order, run.mesh) != (before.order, before.mesh):
                self._runs[key] = run
                self.version += 1
        self._expected_s = time.perf_counter() - began
        self._learning_s += self._expected_s

    def _learn_from(self, df: DataFrame, group: NativeGroup) -> NativeRun:
        stream = self._streams[group.stream]
        wanted = df.filter(F.col(SOURCE) == stream.number).select(f"{stream.field}.*").alias(STREAM)
        for text in group.guards:
            wanted = wanted.filter(text)
        predicates = [NativePredicate(text, display_text(text)) for text in group.conditions]
        run = NativeRun(predicates, tuple(range(len(predicates))))

        sample = pilot_sample(wanted, for_future_rows=True)
        try:
            budget = PlanningBudget(df.sparkSession, None)  # limited by `learning_share`
            learn_run(
                run,
                sample,
                None,
                MeshOptions(),
                self._seed,
                self._note,
                budget,
                query=group.query,
            )
        finally:
            sample.unpersist()
        return run


def guarded(stream: StreamInfo, guards: Sequence[str], condition: Column) -> Column:
    """Return a condition that is evaluated only where all guards are true, else false."""
    guard = stream.expression(" AND ".join(f"({text})" for text in guards))
    return F.when(guard, condition).otherwise(F.lit(False))
