"""Matches the rows of a micro-batch with all queries, whatever some of the queries do.

Normally that is one job. If it fails, the queries at fault are found and the others run without
them. A query at fault is judged by Spark's own filter before it counts as failed (`arbiter`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.errors import TimeLimitError
from eddyline.spark.common.side_channel import METRIC, collected, unpack
from eddyline.spark.engine.arbiter import AloneRows, Arbiter
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.causes import is_worker_death
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.event_times import ROWS, EventTimes
from eddyline.spark.engine.fault_search import FaultSearch
from eddyline.spark.engine.join_runner import JoinRunner
from eddyline.spark.engine.native_routes import NativeGroup
from eddyline.spark.engine.planner import BatchPlan, EddyPlanner
from eddyline.spark.engine.queries import EngineQueries
from eddyline.spark.engine.result_store import QUERIES, ResultStore
from eddyline.spark.engine.row_counts import RowCounts
from eddyline.spark.engine.task_note import EddyCounts, TaskNote
from eddyline.spark.engine.wanted_parts import ListedParts, WantedParts
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import owner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Queries that Spark judges in one micro-batch, a job each; more are paused without it.
JUDGED_MAX = 100
_MATCHED = "_matched"


@dataclass(frozen=True)
class MatchOutcome:
    """What matching a micro-batch came to.

    Parameters
    ----------
    queries
        All queries that it was run for, by number.
    groups
        Native conditions that one query alone has, of those that ran together.
    note
        The merged notes of its tasks.
    late
        Rows that came later than the delay of their stream allows.
    files
        The files that matching rows were stored in, with their sizes in bytes.
    failures
        Errors of the queries that failed, by number.
    alone
        Rows of queries that Spark filtered for them alone, by number.
    joins, expired
        What joining streams came to, and names of containers of join state that have expired.
    counted
        Rows of each stream so far, by name, if a query has a window of rows.

    """

    queries: Mapping[int, CompiledQuery] = field(default_factory=dict)
    groups: tuple[NativeGroup, ...] = ()
    note: TaskNote = field(default_factory=TaskNote)
    late: int = 0
    files: dict[str, int] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    alone: dict[int, AloneRows] = field(default_factory=dict)
    joins: JoinNote = field(default_factory=JoinNote)
    expired: tuple[str, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict)

    def counts(self) -> dict[int, int]:
        """Return the number of matching rows of each query that has any and did not fail."""
        counts = {**self.note.counts, **{n: rows.count for n, rows in self.alone.items()}}
        counts |= self.joins.counts
        return {
            n: count for n, count in counts.items() if count and n >= 0 and n not in self.failures
        }


@dataclass(frozen=True)
class _Joining:
    """The queries that join streams, each with how often it was resumed, and the counted rows."""

    queries: Mapping[CompiledQuery, int]
    counted: Mapping[int, CountedRows] = field(default_factory=dict)


class Matcher:
    """Finds the matches of all queries in a micro-batch and stores the rows.

    Parameters
    ----------
    queries
        The queries of the engine.
    planner
        Turns queries into a plan.
    results
        Stores rows.
    event_times
        Follows the event times of the streams.
    row_counts
        Counts their rows.
    faults
        Finds the queries at fault.
    arbiter
        Judges them.
    joins
        Joins the rows of several streams.
    raise_if_stopping
        Called with each error; raises it if the run is being stopped.

    """

    def __init__(
        self,
        queries: EngineQueries,
        planner: EddyPlanner,
        results: ResultStore,
        event_times: EventTimes,
        row_counts: RowCounts,
        faults: FaultSearch,
        arbiter: Arbiter,
        joins: JoinRunner,
        raise_if_stopping: Callable[[BaseException], None],
    ) -> None:
        self._queries = queries
        self._planner = planner
        self._results = results
        self._event_times = event_times
        self._row_counts = row_counts
        self._faults = faults
        self._arbiter = arbiter
        self._joins = joins
        self._raise_if_stopping = raise_if_stopping

    def match(self, df: DataFrame, batch: int, record: BatchRecord) -> MatchOutcome:
        """Match all queries of a version; those that fail do not affect the others."""
        outcome = MatchOutcome()
        is_second_try = has_died = False
        while True:
            plan = self._plan(record, without={*outcome.failures, *outcome.alone})
            earlier = outcome.queries  # in the first round there are none: nothing is copied
            queries = {**plan.queries, **earlier} if earlier else plan.queries
            outcome = replace(outcome, queries=queries)
            if not plan.queries:
                if outcome.queries:
                    outcome = replace(outcome, note=TaskNote(eddy=EddyCounts(df.count())))
                return outcome
            try:
                outcome = self._run(df, batch, record, plan, outcome)
                break
            except Exception as error:
                self._raise_if_stopping(error)
                if is_worker_death(error) and not has_died:
                    has_died = True  # perhaps ended from outside; the search calls every function
                    continue
                faults = self._faults.find(df, plan)
                if not faults and is_second_try:
                    faults = self._faults.suspects(plan, error)
                    if not faults:
                        raise error
                is_second_try = not faults  # whatever it was may have passed
            outcome = self._judge(df, batch, outcome, faults)
        raised = outcome.note.failures.items()
        errors = {number: self._queries.display_text(error) for number, error in raised}
        return self._judge(df, batch, outcome, errors)

    def _plan(self, record: BatchRecord, without: Collection[int]) -> BatchPlan:
        """Return the plan of a version of the catalogue, without some of its queries."""
        running = self._queries.running_at(record.version)
        if without:
            running = [compiled for compiled in running if compiled.number not in without]
        return self._planner.plan(running, record.tables)

    def _run(
        self,
        df: DataFrame,
        batch: int,
        record: BatchRecord,
        plan: BatchPlan,
        outcome: MatchOutcome,
    ) -> MatchOutcome:
        """Run all queries on the rows, counted if one of them has a window of rows."""
        joining = {q: n for q, n in self._resumed(record).items() if q.number in plan.queries}
        if not any(query.join is not None and query.join.counts_rows for query in joining):
            return self._run_pass(df, batch, plan, outcome, _Joining(joining))
        with self._row_counts.counted(df) as (rows, counts):
            outcome = self._run_pass(rows, batch, plan, outcome, _Joining(joining, counts.streams))
        return replace(outcome, counted=counts.totals)

    def _run_pass(
        self,
        df: DataFrame,
        batch: int,
        plan: BatchPlan,
        outcome: MatchOutcome,
        joining: _Joining,
    ) -> MatchOutcome:
        """Find the matches of all queries in one pass; store the rows that some query wants."""
        from pyspark.sql import Observation

        times = Observation()
        metrics = self._event_times.metrics()
        if metrics:
            df = df.observe(times, *metrics)
        if plan.bits is not None:
            outcome = self._join(df, plan.bits, batch, joining, outcome)
            note, late = (
                TaskNote(eddy=EddyCounts(times.get[ROWS])),
                self._event_times.advance(times.get),
            )
            return replace(outcome, note=note, late=late)
        notes = Observation()
        matched = (
            df.withColumn(_MATCHED, plan.matches)
            .filter(f"{_MATCHED} IS NOT NULL")
            .observe(notes, collected(f"{_MATCHED}.note"))
        )
        numbers = f"{_MATCHED}.queries"
        is_stored = any(plan.stored_columns.values())
        if joining.queries and is_stored:
            matched = matched.persist()  # the rows serve two jobs, and are read once
        files: dict[str, int] = {}
        try:
            if is_stored:
                stored = F.col(numbers)
                if joining.queries:
                    stored = F.filter(stored, lambda number: number >= 0)
                matches = matched.withColumn(QUERIES, stored).filter(F.size(QUERIES) > 0)
                files = self._results.write_matches(batch, matches, plan.stored_columns)
            if joining.queries:
                outcome = self._join(matched, ListedParts(numbers), batch, joining, outcome)
            elif not is_stored:
                matched.write.format("noop").mode("overwrite").save()
        finally:
            if joining.queries and is_stored:
                matched.unpersist()
        late = self._event_times.advance(times.get) if metrics else 0
        note = TaskNote.merge(map(TaskNote.from_dict, unpack(notes.get[METRIC])))
        note = replace(note, failures={owner(n): error for n, error in note.failures.items()})
        return replace(outcome, groups=tuple(plan.groups), note=note, late=late, files=files)

    def _join(
        self,
        df: DataFrame,
        wanted: WantedParts,
        batch: int,
        joining: _Joining,
        outcome: MatchOutcome,
    ) -> MatchOutcome:
        newest_us = self._event_times.newest_us
        joined, expired = self._joins.run(
            df, wanted, batch, joining.queries, newest_us, joining.counted
        )
        return replace(outcome, joins=joined, expired=tuple(expired))

    def _resumed(self, record: BatchRecord) -> dict[CompiledQuery, int]:
        """Return the running queries that join streams, with how often each was resumed."""
        running = self._queries.running_at(record.version)
        return {
            compiled: self._queries.resumed_at(compiled, record.version)
            for compiled in running
            if compiled.join is not None
        }

    def _judge(
        self, df: DataFrame, batch: int, outcome: MatchOutcome, faults: Mapping[int, str]
    ) -> MatchOutcome:
        """Let Spark judge queries at fault: each has failed, or has rows of its own."""
        failures, alone = dict(outcome.failures), dict(outcome.alone)
        for number, error in faults.items():
            is_timeout = TimeLimitError.__name__ in error  # Spark has no time limits
            is_join = outcome.queries[number].join is not None  # one row cannot be judged alone
            if is_timeout or is_join or len(failures) + len(alone) >= JUDGED_MAX:
                failures[number] = error
                continue
            try:
                alone[number] = self._arbiter.judge(df, batch, outcome.queries[number])
            except Exception as spark_error:
                self._raise_if_stopping(spark_error)
                failures[number] = error
        return replace(outcome, failures=failures, alone=alone)
