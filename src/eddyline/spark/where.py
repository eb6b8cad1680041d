"""`el.where`: an adaptive filter for batch and streaming DataFrames."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eddyline.errors import EddylineError, InvalidPredicateError
from eddyline.fabric import OnError, RouterOptions
from eddyline.journal import Journal
from eddyline.ordering import Policy, make_policy
from eddyline.report import PredicateLine, Report
from eddyline.spark.learnt import Learnt
from eddyline.spark.predicates import (
    LookupPredicate,
    NativePredicate,
    Predicate,
    PythonPredicate,
    name_apart,
    to_predicate,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from eddyline.spark.observed import BatchObserver, StreamObserver
    from eddyline.spark.worker import RouterPlan

REPORT_WAIT_S = 2.0
REBUILD_WAIT_S = 0.1
SAMPLE_ROWS_MAX = 20_000


def where(
    *predicates: str | Column | PythonPredicate | LookupPredicate,
    policy: str | Policy = "auto",
    on_error: OnError = "raise",
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
        Who decides the order of Python predicates and lookups: `auto`, `as_written`, `agreedy`,
        `sweep`, `independent`, `local_swaps`, `lottery`, or a `Policy` object.
    on_error
        What becomes of a row on which a predicate raised and which no other predicate drops:
        `raise` fails the job and names predicate and row, `drop` and `keep` go on.
    sample
        A batch DataFrame with the same columns, to learn an order from before the first row.
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
    return Where(predicates, policy, on_error, sample, name, seed, budget)


class Where:
    """An adaptive filter; made by `el.where`, applied with `DataFrame.transform`.

    One `Where` may be applied to several DataFrames and run many times: what was learnt before is
    where the next begins. Its report is of everything seen so far, which is the first action on
    each DataFrame it made (Spark observes no more) and every micro-batch of each stream.
    """

    def __init__(
        self,
        given: Sequence[object],
        policy: str | Policy = "auto",
        on_error: OnError = "raise",
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
        make_policy(policy)  # an unknown policy is an error now, not in a worker
        self.name = name or "where"
        self._id = uuid.uuid4().hex
        self._policy = policy
        self._options = RouterOptions(on_error=on_error, budget=budget, seed=seed)
        self._sample = sample
        self._before, self._routed, self._after = _stages(self.predicates)
        self._learnt = Learnt(len(self._routed))
        self._builds = itertools.count(1)
        self._lock = threading.Lock()
        self._batches: list[BatchObserver] = []
        self._streams: dict[int, StreamObserver] = {}

    def __call__(self, df: DataFrame) -> DataFrame:
        """Return the rows of the DataFrame that satisfy all predicates, lazily."""
        if not hasattr(df, "sparkSession"):
            raise EddylineError(
                f"el.where is applied to a Spark DataFrame, not to {type(df).__name__}: "
                f"df.transform(el.where(...))"
            )
        for predicate in self._before:
            df = _filter_native(df, predicate)
        if self._routed:
            df = self._route(df)
        for predicate in self._after:
            df = _filter_native(df, predicate)
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
        from eddyline.spark import notes
        from eddyline.spark.plan import RouterPlanner, make_router_udf

        if len(self._routed) > 1:  # a single predicate has nothing to begin from
            self._gather(REBUILD_WAIT_S)
        build = next(self._builds)
        planner = RouterPlanner(df, self._routed)
        plan = planner.plan(self._id, build, self._policy, self._options, self._learnt.knowledge())
        if self._sample is not None and not plan.knowledge:
            plan.knowledge = self._learn_from_sample(self._sample, plan)
        verdict = f"__eddyline_{self._id[:8]}_{build}"
        routed = df.withColumn(verdict, make_router_udf(plan)(*planner.arguments))
        carrying = routed.filter(notes.carries_or_keeps(verdict))
        observed = self._observe(carrying, notes.only_notes(verdict), verdict)
        return observed.filter(notes.keeps(verdict)).drop(verdict)

    def _observe(self, df: DataFrame, notes: str, name: str) -> DataFrame:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        from eddyline.spark.observed import METRIC, BatchObserver, StreamObserver

        collected = F.expr(f"collect_list({notes}) AS {METRIC}")
        if df.isStreaming:
            with self._lock:
                spark = df.sparkSession
                if id(spark) not in self._streams:
                    self._streams[id(spark)] = StreamObserver(spark, self._learnt)
                self._streams[id(spark)].watch(name)
            return df.observe(name, collected)
        observation = Observation(name)
        with self._lock:
            self._batches = [batch for batch in self._batches if not batch.done]
            self._batches.append(BatchObserver(observation, self._learnt))
        return df.observe(observation, collected)

    def _learn_from_sample(self, sample: DataFrame, plan: RouterPlan) -> list[dict[str, Any]]:
        from eddyline.spark.plan import RouterPlanner

        if sample.isStreaming:
            raise EddylineError(
                "sample is a streaming DataFrame; pass a batch DataFrame with the same columns"
            )
        for predicate in self._before:
            sample = _filter_native(sample, predicate)
        arguments = RouterPlanner(sample, self._routed).arguments
        table = sample.select(*arguments).limit(SAMPLE_ROWS_MAX).toArrow()
        router = plan.make()
        for batch in table.to_batches(max_chunksize=1_024):
            router.route(batch.columns, batch.num_rows)
        router.close()
        return router.knowledge() if table.num_rows else []

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
            policy=self._policy if isinstance(self._policy, str) else self._policy.name,
            lines=lines,
            rows=totals.rows,
            kept=totals.kept,
            orders=self._learnt.orders(self._segment_names()),
            changes=journal.of_kind("reorder", "reverted", "drift"),
            profiling_us=totals.profiling_us,
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


def _filter_native(df: DataFrame, predicate: NativePredicate) -> DataFrame:
    """Filter by one of Spark's own conditions, and say which one if Spark refuses it."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        filtered = df.filter(predicate.column())
        filtered.schema  # noqa: B018  Connect analyses a plan only when asked for its schema
    except (AnalysisException, ParseException) as error:
        raise InvalidPredicateError(
            f"predicate {predicate.name!r} cannot be evaluated by Spark: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return filtered


def _kind(predicate: Predicate) -> str:
    if isinstance(predicate, PythonPredicate):
        return predicate.kind.replace("_", " ")
    return "lookup" if isinstance(predicate, LookupPredicate) else "spark"
