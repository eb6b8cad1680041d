"""`el.where`: an adaptive filter for batch and streaming DataFrames."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eddyline.errors import EddylineError, InvalidPredicateError
from eddyline.fabric import OnError, RouterOptions
from eddyline.fabric.strategy import RoutingPolicy, check_policy, finds_classes, policy_name
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import SampleMissing
from eddyline.mesh import MeshOptions
from eddyline.report.model import PredicateLine, Report
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.predicates import (
    LookupPredicate,
    NativePredicate,
    Predicate,
    PythonPredicate,
    name_apart,
    to_predicate,
)
from eddyline.spark.where.collector import Learnt

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from eddyline.spark.native.stage import CompiledStage
    from eddyline.spark.where.observers import BatchObserver, StreamObserver
    from eddyline.spark.where.planner import RouterPlanner
    from eddyline.spark.where.worker import RouterPlan

REPORT_WAIT_S = 2.0
REBUILD_WAIT_S = 0.1
SAMPLE_ROWS_MAX = 20_000
TRAINING_ROWS_MAX = 2_000


def where(
    *predicates: str | Column | PythonPredicate | LookupPredicate,
    policy: RoutingPolicy = "auto",
    on_error: OnError = "raise",
    classify_by: Sequence[str] | None = None,
    sample: DataFrame | None = None,
    name: str | None = None,
    seed: int | None = None,
    budget: float | None = 0.01,
) -> Where:
    """Keep the rows that satisfy all predicates, evaluated in an order learnt from the data.

    The result is applied with `DataFrame.transform`. It yields the rows that Spark's own `filter`
    would, but a Python predicate sees only the rows that the predicates before it let through.

    Parameters
    ----------
    predicates
        SQL text or a Column, evaluated by Spark before Python is reached; `el.udf(...)`;
        `el.lookup(...)`.
    policy
        Who decides the way of a row through the predicates. `auto`: one order, kept good while the
        data drifts, and an order for each class of rows where that pays. `mesh`: classes from the
        start, found in a sample; Spark's own predicates are routed too, inside the JVM. `content`:
        content-based routing. For one order only: `agreedy`, `sweep`, `independent`,
        `local_swaps`, `lottery`, `tickets`, `as_written`, or a `Policy` object. Options of a
        search for classes (`el.MeshOptions`, `el.ContentOptions`) may stand in place of a name.
    on_error
        What becomes of a row on which a predicate raised and which no other predicate drops:
        `raise` fails the job and names predicate and row, `drop` and `keep` go on.
    classify_by
        Columns that may tell classes of rows apart. None: the predicates' arguments and others.
    sample
        A batch DataFrame with the same columns, to learn routes from before the first row. Without
        it, `mesh` reads a batch DataFrame once beforehand, for rows picked at random.
    name
        For reports.
    seed
        Makes the choice of profiled rows repeatable.
    budget
        Time for profiling as a share of the time inside predicates. None: unlimited.

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

    """
    return Where(predicates, policy, on_error, classify_by, sample, name, seed, budget)


class Where:
    """An adaptive filter; made by `el.where`, applied with `DataFrame.transform`.

    One `Where` may be applied to several DataFrames and run many times: what was learnt before is
    where the next begins. Its report is of everything seen so far, which is the first action on
    each DataFrame it made (Spark observes no more) and every micro-batch of each stream.
    """

    def __init__(
        self,
        given: Sequence[object],
        policy: RoutingPolicy = "auto",
        on_error: OnError = "raise",
        classify_by: Sequence[str] | None = None,
        sample: DataFrame | None = None,
        name: str | None = None,
        seed: int | None = None,
        budget: float | None = 0.01,
    ) -> None:
        if not given:
            raise InvalidPredicateError(
                'el.where needs at least one predicate, for example el.where("length(text) > 200")'
            )
        self.predicates = name_apart([to_predicate(each) for each in given])
        check_policy(policy)  # an unknown policy is an error now, not in a worker
        if isinstance(classify_by, str):
            raise EddylineError(
                f"classify_by is the text {classify_by!r}; pass a list: [{classify_by!r}]"
            )
        self.name = name or "where"
        self._id = uuid.uuid4().hex
        self._policy = policy
        self._options = RouterOptions(on_error=on_error, budget=budget, seed=seed)
        self._classify_by = classify_by
        self._sample = sample
        self._before, self._routed, self._after = _stages(self.predicates)
        self._learnt = Learnt(len(self._routed))
        self._builds = itertools.count(1)
        self._lock = threading.Lock()
        self._batches: list[BatchObserver] = []
        self._streams: dict[int, StreamObserver] = {}
        self._compiled: list[CompiledStage] = []

    def __call__(self, df: DataFrame) -> DataFrame:
        """Return the rows of the DataFrame that satisfy all predicates, lazily."""
        if not hasattr(df, "sparkSession"):
            raise EddylineError(
                f"el.where is applied to a Spark DataFrame, not to {type(df).__name__}: "
                f"df.transform(el.where(...))"
            )
        df = self._filter_native(df, self._before)
        if self._routed:
            df = self._route(df)
        for predicate in self._after:
            df = filter_by(df, predicate)
        return df

    def report(self) -> Report:
        """Return what was learnt and saved so far; after an action, or while a stream runs."""
        self._gather(REPORT_WAIT_S)
        return self._make_report()

    def journal(self) -> Journal:
        """Return every decision so far, with the numbers before and after."""
        self._gather(REPORT_WAIT_S)
        return self._learnt.snapshot()[1]

    # --- the plan ----------------------------------------------------------------------------

    def _route(self, df: DataFrame) -> DataFrame:
        from eddyline.spark.common import notes
        from eddyline.spark.where.planner import make_router_udf

        if len(self._routed) > 1:  # a single predicate has nothing to begin from
            self._gather(REBUILD_WAIT_S)
        build = next(self._builds)
        knowledge = self._learnt.knowledge() or self._learn_beforehand(df, build)
        planner = self._planner(df, knowledge)
        plan = planner.plan(self._id, build, self._policy, self._options, knowledge)
        verdict = f"__eddyline_{self._id[:8]}_{build}"
        routed = df.withColumn(verdict, make_router_udf(plan)(*planner.arguments))
        observed = self._observe(notes.judged(routed, verdict), verdict)
        return notes.kept(observed, verdict)

    def _planner(self, df: DataFrame, knowledge: list[dict[str, Any]]) -> RouterPlanner:
        """Return the planner of the router, with the columns that may tell classes apart."""
        from eddyline.spark.common.columns import candidate_attributes
        from eddyline.spark.where.planner import RouterPlanner

        planner = RouterPlanner(df, self._routed)
        if finds_classes(self._policy) and len(self._routed) > 1:
            found = candidate_attributes(df, self._classify_by, planner.argument_names)
            in_use = {name for segment in knowledge for name in _attributes_of(segment)}
            if in_use and self._classify_by is None:  # what is of no use need not cross
                found = {
                    name: column
                    for name, column in found.items()
                    if name in in_use or name in planner.argument_names
                }
            planner.add_attributes(found)
        return planner

    def _observe(self, df: DataFrame, verdict: str) -> DataFrame:
        """Collect the notes that stand in the column, under its name."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        from eddyline.spark.where.observers import METRIC, BatchObserver, StreamObserver

        collected = F.expr(f"collect_list({verdict}) AS {METRIC}")
        if df.isStreaming:
            with self._lock:
                spark = df.sparkSession
                if id(spark) not in self._streams:
                    self._streams[id(spark)] = StreamObserver(spark, self._learnt)
                self._streams[id(spark)].watch(verdict)
            return df.observe(verdict, collected)
        observation = Observation(verdict)
        with self._lock:
            self._batches = [batch for batch in self._batches if not batch.done]
            self._batches.append(BatchObserver(observation, self._learnt))
        return df.observe(observation, collected)

    def _learn_beforehand(self, df: DataFrame, build: int) -> list[dict[str, Any]]:
        """Learn from the sample; for a mesh without one, from some rows of a batch DataFrame."""
        from eddyline.spark.native.stage import pilot_sample

        sample = self._sample
        if sample is not None and sample.isStreaming:
            raise EddylineError(
                "sample is a streaming DataFrame; pass a batch DataFrame with the same columns"
            )
        if sample is not None:
            for predicate in self._before:
                sample = filter_by(sample, predicate)
        elif self._wants_mesh and len(self._routed) > 1:
            if df.isStreaming:
                self._note(SampleMissing(instead="classes are learnt from the first rows"))
            else:
                sample = pilot_sample(df)
        if sample is None:
            return []
        planner = self._planner(sample, [])
        plan = planner.plan(self._id, build, self._policy, self._options, [])
        knowledge = self._train(plan, sample.select(*planner.arguments))
        if self._sample is None:
            sample.unpersist()
        return knowledge

    def _train(self, plan: RouterPlan, sample: DataFrame) -> list[dict[str, Any]]:
        """Let every predicate judge the sampled rows, here on the driver; return what it shows."""
        import numpy as np
        import pyarrow as pa

        from eddyline.spark.common.progress import search_progress

        table = sample.limit(SAMPLE_ROWS_MAX).toArrow().combine_chunks()
        if table.num_rows == 0:
            self._note(SampleMissing(instead="the sample is empty; nothing is known beforehand"))
            return []
        rows = np.arange(table.num_rows)
        if len(rows) > TRAINING_ROWS_MAX:
            rng = np.random.default_rng(self._options.seed)
            rows = np.sort(rng.choice(rows, TRAINING_ROWS_MAX, replace=False))
        router = plan.make()
        batch = table.take(pa.array(rows)).combine_chunks().to_batches()[0]
        with search_progress("looking for classes of rows") as progress:
            router.train(batch.columns, batch.num_rows, progress)
        router.close()
        self._learnt.write(router.journal)
        return router.knowledge()

    # --- Spark's own predicates --------------------------------------------------------------

    @property
    def _wants_mesh(self) -> bool:
        return self._policy == "mesh" or isinstance(self._policy, MeshOptions)

    def _filter_native(self, df: DataFrame, predicates: Sequence[NativePredicate]) -> DataFrame:
        """Filter by Spark's own conditions: as written, or through a mesh where one is known."""
        learns = self._wants_mesh or (self._policy == "auto" and self._sample is not None)
        if not learns or len(predicates) < 2:
            for predicate in predicates:
                df = filter_by(df, predicate)
            return df
        from eddyline.spark.native.stage import compile_stage

        for predicate in predicates:
            filter_by(df, predicate)  # names the predicate if Spark refuses it
        known = next((stage for stage in self._compiled if stage.suits(df, predicates)), None)
        if known is None:
            options = self._policy if isinstance(self._policy, MeshOptions) else MeshOptions()
            known = compile_stage(
                df,
                predicates,
                self._sample,
                self._classify_by,
                options,
                self._options.seed,
                self._note,
            )
            if known.is_learnt:
                self._compiled.append(known)
        return known.apply(df)

    def _note(self, event: Event) -> None:
        self._learnt.write([Record(event, process="driver")])

    def _gather(self, timeout_s: float) -> None:
        """Take in the notes that have arrived since the last time."""
        for batch in list(self._batches):
            if not batch.poll(timeout_s):
                timeout_s = 0.0  # waited once: whatever else is over is there already
        for stream in list(self._streams.values()):
            stream.poll()

    def _make_report(self) -> Report:
        totals, journal = self._learnt.snapshot()
        lines = []
        routed = 0
        for predicate in self.predicates:
            if isinstance(predicate, NativePredicate) and predicate not in self._routed:
                lines.append(PredicateLine(predicate.name, "spark"))
                continue
            index, routed = routed, routed + 1
            seen = int(totals.seen[index])
            lines.append(
                PredicateLine(
                    predicate.name,
                    _kind(predicate),
                    seen=seen,
                    passed=int(totals.passed[index]),
                    failed=int(totals.failed[index]),
                    profiled=int(totals.profiled[index]),
                    busy_us=float(totals.busy_us[index]),
                    written_seen=float(totals.written_seen[index]),
                )
            )
        return Report(
            name=self.name,
            policy=policy_name(self._policy),
            lines=lines,
            rows=totals.rows,
            kept=totals.kept,
            orders=self._learnt.orders(self._segment_names()),
            changes=journal.route_changes(),
            classes=[
                *[line for stage in self._compiled for line in stage.class_lines()],
                *self._learnt.classes(self._segment_names()),
            ],
            pairs=self._learnt.pairs(),
            rejected={
                **{name: why for stage in self._compiled for name, why in stage.rejected.items()},
                **self._learnt.rejected(),
            },
            profiling_us=totals.profiling_us,
            deciding_us=totals.deciding_us,
            routing_us=totals.routing_us,
            budget=self._options.budget,
        )

    def _segment_names(self) -> list[list[str]]:
        names: list[list[str]] = []
        pinned_before = True
        for predicate in self._routed:
            if not predicate.deterministic or pinned_before:
                names.append([])
            names[-1].append(predicate.name)
            pinned_before = not predicate.deterministic
        return names


def _stages(
    predicates: Sequence[Predicate],
) -> tuple[list[NativePredicate], list[Predicate], list[NativePredicate]]:
    """Say what runs in Spark before the router, in the router, and in Spark after it.

    Spark's own predicates come first, except that nothing moves across a predicate that is not
    deterministic. A nondeterministic condition of Spark's between Python predicates is evaluated
    by Spark, and applied by the router in its place.
    """
    python = [i for i, p in enumerate(predicates) if not isinstance(p, NativePredicate)]
    barrier = next((i for i, p in enumerate(predicates) if not p.deterministic), len(predicates))
    before: list[NativePredicate] = []
    routed: list[Predicate] = []
    after: list[NativePredicate] = []
    for i, predicate in enumerate(predicates):
        if not isinstance(predicate, NativePredicate):
            routed.append(predicate)
        elif i < barrier or not any(p < i for p in python):
            before.append(predicate)
        elif not any(p > i for p in python):
            after.append(predicate)
        else:
            routed.append(predicate)
    return before, routed, after


def _attributes_of(known: dict[str, Any]) -> list[str]:
    """Return the columns that what was learnt classifies rows by."""
    from eddyline.mesh import Mesh

    if known.get("mesh"):
        return Mesh.from_dict(known["mesh"]).tree.attributes
    return []


def _kind(predicate: Predicate) -> str:
    if isinstance(predicate, PythonPredicate):
        return predicate.kind.replace("_", " ")
    return "lookup" if isinstance(predicate, LookupPredicate) else "spark"
