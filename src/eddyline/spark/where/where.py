"""`el.where`: an adaptive filter for batch and streaming DataFrames."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import threading
import uuid
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eddyline.errors import EddylineError, InvalidPredicateError
from eddyline.fabric import OnError, RouterOptions
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import (
    RoutingPolicy,
    check_policy,
    finds_classes,
    mesh_options,
    policy_name,
)
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import ColumnsLeftOut, PilotSkipped, PlanningStopped, SampleMissing
from eddyline.mesh import MeshOptions
from eddyline.report import Report
from eddyline.report.characters import one_line, shorten
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.common.predicates import (
    LookupPredicate,
    Predicate,
    is_portable,
    to_predicate,
    with_unique_names,
)
from eddyline.spark.common.progress import planning_progress
from eddyline.spark.common.worker_python import check_worker_python
from eddyline.spark.where.collector import NoteCollector
from eddyline.spark.where.memory import Memory
from eddyline.spark.where.report import kind_of, make_report
from eddyline.spark.where.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from eddyline.spark.native.stage import NativeStages
    from eddyline.spark.where.observers import BatchObserver, StreamObserver
    from eddyline.spark.where.planner import RouterPlanner

REPORT_WAIT_S = 2.0
REBUILD_WAIT_S = 0.1


def where(
    *predicates: str | Column | Predicate,
    policy: RoutingPolicy = "auto",
    on_error: OnError = "raise",
    classify_by: Sequence[str] | None = None,
    sample: DataFrame | None = None,
    name: str | None = None,
    seed: int | None = None,
    budget: float | None = 0.01,
    memory: str | os.PathLike[str] | None = None,
) -> Where:
    """Keep the rows that satisfy all predicates, evaluated in an order learnt from the data.

    The result is applied with `DataFrame.transform`. It yields the rows that Spark's own `filter`
    would, but a Python predicate sees only the rows that the predicates before it kept.

    Parameters
    ----------
    predicates
        SQL text, a Column or `el.expr(...)`, evaluated by Spark before Python is reached;
        `el.udf(...)`; `el.lookup(...)`.
    policy
        What decides the route of a row through the predicates. `auto`: one order, kept good while
        the data drifts, and an order for each class of rows where that pays. `mesh`: classes from
        the start, found in a sample; native conditions are routed too, inside the JVM. `content`:
        content-based routing. For one order only: `agreedy`, `sweep`, `independent`,
        `local_swaps`, `lottery`, `tickets`, `as_written`, or a `Policy` object. Options of a
        search for classes (`el.MeshOptions`, `el.ContentOptions`) may be given instead of a name.
        Native conditions are reordered by `mesh`, and by `auto` with a sample; other policies leave
        them as written, and the report says so.
    on_error
        What becomes of a row on which a predicate raised and which no other predicate drops:
        `raise` fails the job and names predicate and row, `drop` and `keep` continue.
    classify_by
        Columns that may classify rows. None: the predicates' arguments, and others where the
        predicates cost enough for that to pay (`auto`) or are not plainly cheap (`mesh`,
        `content`).
    sample
        A batch DataFrame with the same columns, to learn routes from before the first row. Without
        it, `mesh` reads a batch DataFrame once beforehand, for rows picked at random. Everything
        that is learnt beforehand takes at most two seconds (`MeshOptions.planning_s_max`).
    name
        For reports.
    seed
        Makes the choice of profiled rows repeatable.
    budget
        Time for profiling as a share of the time inside predicates. None: unlimited.
    memory
        A file on the driver in which the next program that makes the same filter finds what was
        learnt about its Python predicates and lookups: its first rows start from it. It is written
        when an action has been observed, while a stream runs, and when the program ends. If the
        predicates or the policy have changed, or the file is damaged, it is ignored with a warning.

    Examples
    --------
    >>> import eddyline as el
    >>> docs = spark.createDataFrame(
    ...     [(1, "to be or not to be"), (2, "buy now!!!"), (3, "hi")], "id int, text string")
    >>> f = el.where(
    ...     "length(text) > 5",
    ...     el.udf(lambda text: "!" not in text, "text", name="calm"),
    ...     el.udf(lambda text: "be" in text.split(), "text", name="has_be"))
    >>> docs.transform(f).select("id").show()
    +---+
    | id|
    +---+
    |  1|
    +---+
    <BLANKLINE>
    >>> f.report().rows, f.report().kept
    (2, 1)
    >>> f
    <el.where 'where' (policy auto, on_error raise): length(text) > 5 [spark], calm [row], ...>

    """
    options = RouterOptions(on_error=on_error, budget=budget, seed=seed)
    return Where(predicates, policy, options, classify_by, sample, name, memory)


class Where:
    """An adaptive filter; made by `el.where`, applied with `DataFrame.transform`.

    One `Where` may be applied to several DataFrames and run many times: each plan starts from what
    was learnt before. Its report covers everything seen so far, which is the first action on each
    DataFrame it made (Spark observes no more) and every micro-batch of each stream.

    It can be pickled, with what it has learnt, if it holds nothing of a Spark session: no Column,
    no lookup and no sample.
    """

    def __init__(
        self,
        given: Sequence[object],
        policy: RoutingPolicy = "auto",
        options: RouterOptions | None = None,
        classify_by: Sequence[str] | None = None,
        sample: DataFrame | None = None,
        name: str | None = None,
        memory: str | os.PathLike[str] | None = None,
    ) -> None:
        if not given:
            raise InvalidPredicateError(
                'el.where needs at least one predicate, for example el.where("length(text) > 200")'
            )
        self.predicates = with_unique_names([to_predicate(each) for each in given])
        check_policy(policy)  # an unknown policy is an error now, not in a worker
        if isinstance(classify_by, str):
            raise EddylineError(
                f"classify_by is the text {classify_by!r}; pass a list: [{classify_by!r}]"
            )
        self.name = name or "where"
        self._id = uuid.uuid4().hex
        self._policy = policy
        self._options = options or RouterOptions()
        self._classify_by = classify_by
        self._sample = sample
        self._stages = Stages.of(self.predicates)
        if mesh_options(policy) is not None and len(self._stages.before) > 1:
            # Loading the SQL parser takes a tenth of a second: not of the time for planning.
            importlib.import_module("eddyline.sql.failures")
        self._collector = NoteCollector(len(self._stages.routed))
        self._builds = itertools.count(1)
        self._lock = threading.Lock()
        self._batches: list[BatchObserver] = []
        self._streams: dict[int, StreamObserver] = {}
        self._native: NativeStages | None = None
        self._known_before: tuple[Knowledge, ...] = ()
        #: Columns of which only short texts cross, so that workers see NULL for the long ones.
        self._shortened: frozenset[str] = frozenset()
        #: Columns that do not cross although the policy asks for classes of rows, and why.
        self._left_out: dict[str, str] = {}
        self._columns_left_out: ColumnsLeftOut | None = None
        self._memory = None if memory is None else Memory(memory, self._stages, policy)
        if self._memory is not None:
            self._known_before = self._memory.load()
            self._collector.on_notes = functools.partial(self._memory.save, at_once=False)
            weakref.finalize(self, _save_last, self._batches, self._collector, self._memory)
        self._trained: list[tuple[StructType, tuple[Knowledge, ...]]] = []

    def __call__(self, df: DataFrame) -> DataFrame:
        """Return the rows of the DataFrame that satisfy all predicates, lazily."""
        if not hasattr(df, "sparkSession"):
            raise EddylineError(
                f"el.where is applied to a Spark DataFrame, not to {type(df).__name__}: "
                f"df.transform(el.where(...))"
            )
        if self._stages.routed:
            check_worker_python(df.sparkSession)
        if self._classify_by is not None:
            from eddyline.spark.common.columns import check_columns

            check_columns(df, self._classify_by)
        options = mesh_options(self._policy) or MeshOptions()
        with planning_progress("planning the filter") as progress:
            budget = PlanningBudget(df.sparkSession, options.planning_s_max, progress)
            df = self._filter_native(df, budget)
            if self._stages.routed:
                df = self._route(df, budget)
        for predicate in self._stages.after:
            df = filter_by(df, predicate)
        return df

    def __repr__(self) -> str:
        policy = f"policy {policy_name(self._policy)}, on_error {self._options.on_error}"
        parts = [f"{shorten(one_line(p.name), 60)} [{kind_of(p)}]" for p in self.predicates]
        return f"<el.where {self.name!r} ({policy}): {', '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the filter with what it has learnt; its report and journal start again."""
        for predicate in self.predicates:
            if not is_portable(predicate):
                held = "a table" if isinstance(predicate, LookupPredicate) else "a Column"
                raise EddylineError(
                    f"{self!r} cannot be pickled: {predicate.name!r} holds {held} of this Spark "
                    f"session. Write a Column as SQL text, or make the filter where it is "
                    f"used, by a function that returns el.where(...)"
                )
        if self._sample is not None:
            raise EddylineError(
                f"{self!r} cannot be pickled: its sample is a DataFrame of this Spark session. "
                f"Make the filter where it is used, by a function that returns el.where(...)"
            )
        made_with = (self.predicates, self._policy, self._options, self._classify_by, None)
        path = None if self._memory is None else self._memory.path
        return _unpickle, ((*made_with, self.name, path), self._knowledge())

    def report(self) -> Report:
        """Return what was learnt and saved so far; after an action, or while a stream runs."""
        self._gather(REPORT_WAIT_S)
        return make_report(
            self.name,
            self._policy,
            self._options,
            self._stages,
            self._collector,
            self._native,
            self._shortened,
            self._left_out,
            has_sample=self._sample is not None,
        )

    def journal(self) -> Journal:
        """Return every decision so far, with the numbers before and after."""
        self._gather(REPORT_WAIT_S)
        return self._collector.journal()

    # --- the plan ----------------------------------------------------------------------------

    def _route(self, df: DataFrame, budget: PlanningBudget) -> DataFrame:
        from eddyline.spark.where.planner import make_router_udf
        from eddyline.spark.where.verdict import drop_notes, keep_judged

        if len(self._stages.routed) > 1:  # a single predicate has nothing to start from
            may_have_run = any(batch.age_s > REBUILD_WAIT_S for batch in self._batches)
            self._gather(REBUILD_WAIT_S if may_have_run else 0.0)
        build = next(self._builds)
        knowledge = self._knowledge() or self._learn_beforehand(df, build, budget)
        planner = self._planner(df, knowledge)
        plan = planner.plan(self._id, build, self._policy, self._options, knowledge)
        verdict = f"__eddyline_{self._id[:8]}_{build}"
        routed = df.withColumn(verdict, make_router_udf(plan)(*planner.arguments))
        observed = self._observe(keep_judged(routed, verdict), verdict, build)
        return drop_notes(observed, verdict)

    def _knowledge(self) -> tuple[Knowledge, ...]:
        """Return what is known now, or what was known elsewhere before this filter was made."""
        return self._collector.knowledge() or self._known_before

    def _planner(self, df: DataFrame, knowledge: tuple[Knowledge, ...]) -> RouterPlanner:
        """Return the planner of the router, with the columns that may classify rows."""
        from eddyline.spark.common.columns import candidate_attributes
        from eddyline.spark.where.crossing import choose_columns
        from eddyline.spark.where.planner import RouterPlanner

        planner = RouterPlanner(df, self._stages.routed)
        arguments = planner.argument_names
        if not finds_classes(self._policy) or len(self._stages.routed) < 2:
            return planner
        if self._classify_by is not None:
            planner.add_attributes(candidate_attributes(df, self._classify_by, arguments))
            return planner
        is_training = self._sample is not None and not knowledge
        columns = choose_columns(
            df, arguments, self._stages.routed, self._policy, knowledge, is_training
        )
        self._shortened = columns.shortened
        self._left_out = {}
        if columns.left_out is not None:
            if columns.left_out != self._columns_left_out:
                self._note(columns.left_out)
                self._columns_left_out = columns.left_out
            if self._policy != "auto":
                self._left_out = columns.left_out.reasons()
        planner.add_attributes(columns.attributes)
        return planner

    def _observe(self, df: DataFrame, verdict: str, build: int) -> DataFrame:
        """Collect the notes of a verdict column, under its name."""
        from pyspark.sql import Observation

        from eddyline.spark.common.side_channel import collected
        from eddyline.spark.where.observers import BatchObserver, StreamObserver

        if df.isStreaming:
            with self._lock:
                spark = df.sparkSession
                if id(spark) not in self._streams:
                    self._streams[id(spark)] = StreamObserver(spark, self._collector)
                self._streams[id(spark)].watch(verdict, f"stream {build}")
            return df.observe(verdict, collected(verdict))
        observation = Observation(verdict)
        with self._lock:
            observer = BatchObserver(
                observation, self._collector, f"DataFrame {build}, first action"
            )
            self._batches[:] = [*(batch for batch in self._batches if not batch.done), observer]
        observed = df.observe(observation, collected(verdict))
        if self._memory is not None:
            observer.wait_at_exit()
        return observed

    def _gather(self, timeout_s: float) -> None:
        """Read the notes that have arrived since the last time."""
        for batch in list(self._batches):
            if not batch.poll(timeout_s):
                timeout_s = 0.0  # waited once: all other finished actions can be read at once
        for stream in list(self._streams.values()):
            stream.poll()
        if self._memory is not None:
            self._memory.save(self._collector.knowledge())

    # --- learning beforehand -----------------------------------------------------------------

    def _learn_beforehand(
        self, df: DataFrame, build: int, budget: PlanningBudget
    ) -> tuple[Knowledge, ...]:
        """Learn from the sample; for a mesh without one, from some rows of a batch DataFrame.

        Done once: DataFrames of the same schema start from what was learnt then.
        """
        for schema, knowledge in self._trained:
            if schema == df.schema:
                return knowledge
        knowledge = self._train(df, build, budget)
        self._trained.append((df.schema, knowledge))
        return knowledge

    def _train(self, df: DataFrame, build: int, budget: PlanningBudget) -> tuple[Knowledge, ...]:
        from eddyline.spark.native.pilot import pilot_sample
        from eddyline.spark.where.training import train_router

        sample = self._sample
        if sample is not None and sample.isStreaming:
            raise EddylineError(
                "sample is a streaming DataFrame; pass a batch DataFrame with the same columns"
            )
        if sample is not None:
            for predicate in self._stages.before:
                sample = filter_by(sample, predicate)
        elif self._wants_pilot():
            if df.isStreaming:
                self._note(SampleMissing(instead="classes are learnt from the first rows"))
            else:
                sample = pilot_sample(df)
        if sample is None:
            return ()
        planner = self._planner(sample, ())
        plan = planner.plan(self._id, build, self._policy, self._options, ())
        try:
            trained = train_router(plan, sample.select(*planner.arguments), budget)
        except OutOfTimeError:
            limit_s = (mesh_options(self._policy) or MeshOptions()).planning_s_max
            instead = "Python predicates are learnt about while they run"
            self._note(PlanningStopped(seconds_max=limit_s or 0.0, instead=instead))
            return ()
        finally:
            if self._sample is None:
                sample.unpersist()
        if trained is None:
            self._note(SampleMissing(instead="it is empty, so nothing is known beforehand"))
            return ()
        knowledge, records = trained
        self._collector.write(records)
        return knowledge

    def _wants_pilot(self) -> bool:
        """Whether the policy learns from a sample, and the predicates may cost enough for that."""
        from eddyline.spark.where.cheapness import all_look_cheap

        routed = self._stages.routed
        if mesh_options(self._policy) is None or len(routed) < 2:
            return False
        if self._classify_by is None and all_look_cheap(routed):
            self._note(PilotSkipped())
            return False
        return True

    def _filter_native(self, df: DataFrame, budget: PlanningBudget) -> DataFrame:
        """Filter by native conditions: as written, or through a mesh where one is known."""
        predicates = self._stages.before
        options = mesh_options(self._policy)
        if options is None and self._policy == "auto" and self._sample is not None:
            options = MeshOptions()
        if options is None or len(predicates) < 2:
            for predicate in predicates:
                df = filter_by(df, predicate)
            return df
        from eddyline.spark.native.stage import NativeStages

        if self._native is None:
            self._native = NativeStages(
                predicates,
                self._sample,
                self._classify_by,
                options,
                self._options.seed,
                self._note,
            )
        return self._native.apply(df, budget)

    def _note(self, event: Event) -> None:
        self._collector.write([Record(event, process="driver")])


def _save_last(batches: Sequence[BatchObserver], collector: NoteCollector, memory: Memory) -> None:
    """Keep what was learnt when a filter is deleted or the program ends."""
    for batch in list(batches):
        batch.read_at_once()
    memory.save(collector.knowledge())


def _unpickle(made_with: tuple[Any, ...], knowledge: tuple[Knowledge, ...]) -> Where:
    copied = Where(*made_with)
    copied._known_before = knowledge
    return copied
