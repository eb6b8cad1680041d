"""Learning how a run of native conditions is best evaluated, within a limit of time."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from pyspark.sql import functions as F

from eddyline.journal import Event
from eddyline.journal.events import ClassesFound, NativeReordered, NoClassesFound, TrialEnded
from eddyline.mesh import Mesh, MeshOptions
from eddyline.mesh.cost import Overheads
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.ordering.static import ordering_cost
from eddyline.ordering.uncertain import safe_order
from eddyline.spark.common.columns import candidate_attributes, usable_columns
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.native.conditions import CLASSES, ORDER, WRITTEN, NativeRun
from eddyline.spark.native.counting import Counts, alike_trees
from eddyline.spark.native.knowing import known_ranges, why_no_search
from eddyline.spark.native.learning import (
    EvaluatedSample,
    NativeLesson,
    evaluate_sample,
    learn_native,
)
from eddyline.spark.native.pilot import HELD_OUT, HELD_OUT_SHARE, RANK, with_held_out
from eddyline.spark.native.timing import (
    CLEAR_GAIN,
    TimedConditions,
    Way,
    time_conditions,
    time_ways,
)
from eddyline.sql.likeness import least_cost_us

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Write = Callable[[Event], None]

JVM_OVERHEADS = Overheads(test_us=0.005, route_us=0.002)
#: Share of the time for reading sampled rows, where nothing else takes long.
COUNTING_SHARE = 0.9
#: Share of the cost that another order must save surely, if rows were not picked at random: those
#: that lie together may be alike.
FIRST_ROWS_GAIN = 0.25


class Decider(Protocol):
    """Decides how a run is evaluated, and notes it there."""

    method: ClassVar[Literal["alternating", "counted"]]

    def choose(self, order: tuple[int, ...], mesh: Mesh | None, lesson: NativeLesson) -> bool:
        """Decide among the written order, another one and a mesh; return whether it could."""


@dataclass(frozen=True)
class Reading:
    """How sampled rows are read.

    Parameters
    ----------
    share
        Of the time, at most. Where counts suffice there is nothing else to do, so they get more.
    source
        What is to be filtered. Given where the rows were picked from it at random: then counts
        decide about conditions that cost the same.
    glimpse
        Rows that are read faster, to learn from if the others cannot be read in time.
    reading_s
        Least time that reading the others takes, beyond what any job takes.
    keep
        Called before the rows are read again and again: makes Spark keep them.

    """

    share: float = 1.0
    source: DataFrame | None = None
    glimpse: DataFrame | None = None
    reading_s: float = 0.0
    keep: Callable[[], object] = lambda: None


def learn_run(
    run: NativeRun,
    sample: DataFrame,
    classify_by: Sequence[str] | None,
    options: MeshOptions,
    seed: int | None,
    write: Write,
    budget: PlanningBudget,
    query: str = "",
    reading: Reading | None = None,
) -> dict[str, str]:
    """Find the best order of a run, or its mesh; return columns that cannot classify rows.

    Another order, and a mesh, are used only if they are faster on rows that they were not made
    from, or need far fewer evaluations of conditions that cost the same. If there is no time to
    time them, the order is used that should be the best one.

    Parameters
    ----------
    run
        The conditions; changed to what was learnt.
    sample
        Sampled rows, with their `RANK` if they tell how many there are altogether.
    classify_by
        Columns that may classify rows; None: all that can.
    options, seed
        Of the search for a mesh.
    write
        Called with each decision.
    budget
        Limits the time. Raises `OutOfTimeError` if the sample cannot be read by then.
    query
        The engine's query that the conditions belong to.
    reading
        How the sample is read.

    """
    reading = reading or Reading()
    ranked, sample = sample, sample.drop(RANK)
    columns = usable_columns(sample)
    conditions = [predicate.column() for predicate in run.predicates]
    # In the JVM a column costs nothing until a test reads it, so all of them are candidates.
    attributes = candidate_attributes(
        sample, list(columns) if classify_by is None else classify_by, ()
    )
    in_jvm = dataclasses.replace(options, overheads=options.overheads or JVM_OVERHEADS)
    source = reading.source
    trees = None if source is None else alike_trees(source, run.predicates)
    if trees is None:
        evaluated, run.is_partial = _evaluate(ranked, conditions, attributes, reading, budget)
    else:
        reading_budget = budget.part(COUNTING_SHARE)
        evaluated = evaluate_sample(with_held_out(ranked), conditions, attributes, reading_budget)
    run.rows = evaluated.rows
    held_out = with_held_out(sample)
    trials = _Trials(
        run,
        held_out,
        options.gain_min,
        budget,
        evaluated.query_rows,
        reading.keep,
        has_times=trees is None,
    )

    def learn(
        timed: TimedConditions, *others: Decider, why_no_mesh: str | None = None
    ) -> NativeLesson:
        lesson = learn_native(evaluated, timed, in_jvm, seed, budget, why_no_mesh)
        order = _order_of(lesson, options, is_random=source is not None and not run.is_partial)
        _learn_from(run, lesson, order, (*others, trials), write, query)
        return lesson

    if trees is not None and source is not None:
        least_us = least_cost_us(trees[0], evaluated.text_lengths)
        timed = TimedConditions((least_us,) * len(conditions), True)
        counts = Counts(run, source, options.gain_min, evaluated.query_rows, budget)
        return dict(learn(timed, counts).rejected)
    if evaluated.durations_ns is not None and evaluated.rows > 1:
        ranges = known_ranges(
            evaluated, reading.glimpse if run.is_partial else sample, conditions, options, budget
        )
        timed = TimedConditions(tuple(ranges.middle_us.tolist()), False, ranges)
        why_no_mesh = why_no_search(evaluated, ranges.middle_us, options.gain_min, budget)
        return dict(learn(timed, why_no_mesh=why_no_mesh).rejected)
    if budget.left_s() is not None:
        # Timing each condition takes longer than trying what is best if all cost the same.
        lesson = learn(TimedConditions((1.0,) * len(conditions), False))
        if run.gain >= CLEAR_GAIN or budget.is_over:
            return dict(lesson.rejected)
    lesson = learn(time_conditions(held_out, conditions, evaluated.rows, budget))
    return dict(lesson.rejected)


def _evaluate(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    reading: Reading,
    budget: PlanningBudget,
) -> tuple[EvaluatedSample, bool]:
    """Evaluate the sample, or what is read faster; return whether it was that.

    Within a limit, a clock is read between the conditions: on the rows that are read first.
    """
    within, is_limited = budget.part(reading.share), budget.left_s() is not None
    if not is_limited or reading.glimpse is None:
        reading.keep()
        rows = with_held_out(sample)
        return evaluate_sample(rows, conditions, attributes, within, is_limited), False
    began_s = budget.seconds
    first = evaluate_sample(with_held_out(reading.glimpse), conditions, {}, within, True)
    first_s = budget.seconds - began_s
    within = budget.part(reading.share)
    with contextlib.suppress(OutOfTimeError):
        # A job that would be cancelled costs as much as one that is of use.
        if (within.left_s() or 0.0) > first_s + reading.reading_s:
            reading.keep()
            evaluated = evaluate_sample(with_held_out(sample), conditions, attributes, within)
            return dataclasses.replace(evaluated, durations_ns=first.durations_ns), False
    if first.durations_ns is None:  # without costs, rows that may be alike tell nothing
        raise OutOfTimeError
    return first, True


def _order_of(lesson: NativeLesson, options: MeshOptions, is_random: bool) -> tuple[int, ...]:
    """Return the best order; where only ranges of costs are known, one that is better surely."""
    training = lesson.training
    best = ROUTE_FINDERS[options.routes](training.drops, training.cost_us)
    ranges = lesson.timed.ranges
    if ranges is None:
        return best
    return safe_order(best, training.drops, ranges, 0.0 if is_random else FIRST_ROWS_GAIN)


def _learn_from(
    run: NativeRun,
    lesson: NativeLesson,
    order: tuple[int, ...],
    deciders: Sequence[Decider],
    write: Write,
    query: str,
) -> None:
    """Use the order or the mesh of a lesson if it is better; write what was found.

    The first decider that can, decides.
    """
    training, found = lesson.training, lesson.result.mesh
    mesh = None if found is None else found.settled()
    numbers: dict[str, Any] = {
        "rows": training.rows,
        "cost_us": dict(zip(run.names(), np.round(training.cost_us, 3).tolist(), strict=True)),
        "order": run.names(order),
        **lesson.result.numbers(),
        "rejected": dict(lesson.rejected),
        "query": query,
    }
    if mesh is None or found is None:
        write(NoClassesFound(**numbers))
    else:
        settled = tuple(found.uncertain_words(run.names()))
        classes = tuple(mesh.words(run.names()))
        write(ClassesFound(classes=classes, settled=settled, **numbers))
    before = run.order
    decider = next((each for each in deciders if each.choose(order, mesh, lesson)), None)
    if run.mesh is None and run.order not in (before, tuple(range(len(run.predicates)))):
        write(
            NativeReordered(
                before=run.names(),
                after=run.names(run.order),
                before_us=round(run.cost_us[WRITTEN], 4),
                after_us=round(run.cost_us[ORDER], 4),
                rows=run.rows,
            )
        )
    if mesh is not None:
        others_us = [us for way, us in run.cost_us.items() if way != CLASSES]
        write(
            TrialEnded(
                subject="classes",
                method="alternating" if decider is None else decider.method,
                verdict="interrupted" if decider is None else "kept" if run.mesh else "reverted",
                before=run.names(run.order),
                after=tuple(mesh.words(run.names())),
                rows=run.rows,
                before_us=round(min(others_us, default=0.0), 4),
                after_us=round(run.cost_us.get(CLASSES, 0.0), 4),
            )
        )


@dataclass(frozen=True)
class _Trials:
    """Decides how a run is evaluated, by timing.

    Parameters
    ----------
    run
        The conditions; changed to what is faster.
    sample
        Sampled rows.
    gain_min
        Share of the time by which another way than the written order must be faster.
    budget
        Limits the time.
    query_rows
        About how many rows are to be filtered. None: many.
    keep
        Called before the sampled rows are read again and again.
    has_times
        Whether the costs of a lesson are times, where they can be relied on; else only their
        ratios can.

    """

    run: NativeRun
    sample: DataFrame
    gain_min: float
    budget: PlanningBudget
    query_rows: float | None
    keep: Callable[[], object] = lambda: None
    has_times: bool = True
    method: ClassVar[Literal["alternating", "counted"]] = "alternating"

    def choose(self, order: tuple[int, ...], mesh: Mesh | None, lesson: NativeLesson) -> bool:
        """Decide among the written order, another one and a mesh; note what they cost.

        Without time for a trial, another order is used only if its conditions were timed, or if
        it is safe for the ranges of their costs. An order that is safe is not tried by itself.
        Returns whether there was a trial.
        """
        run, training = self.run, lesson.training
        written = tuple(range(len(run.predicates)))
        is_safe = lesson.timed.ranges is not None
        ways: dict[str, Way] = {}
        if not is_safe or order == written:
            ways[WRITTEN] = lambda df: run.by_order(df, written)
        cost_us = {WRITTEN: ordering_cost(written, training.drops, training.cost_us)}
        if order != written:
            ways[ORDER] = lambda df: run.by_order(df, order)
            cost_us[ORDER] = ordering_cost(order, training.drops, training.cost_us)
        if mesh is not None:
            ways[CLASSES] = lambda df: run.by_mesh(df, mesh)
        is_better = cost_us.get(ORDER, math.inf) < (1 - self.gain_min) * cost_us[WRITTEN]
        is_clear = is_safe or (is_better and lesson.timed.is_complete)
        best = ORDER if order != written and is_clear else WRITTEN
        is_tried = False
        if len(ways) > 1:
            self.keep()
            held_out = self.sample.filter(F.col(HELD_OUT))
            rows = max(1, round(run.rows * HELD_OUT_SHARE))
            is_known = lesson.timed.is_complete and self.has_times
            expected_us = min(cost_us.values()) if is_known else None
            trial = time_ways(held_out, rows, ways, expected_us, self.budget, self.gain_min)
            is_tried = trial.is_enough
            if is_tried:
                trial = trial.with_equal_code((WRITTEN, ORDER))
                best = trial.winner(self.gain_min, self.query_rows)
                ratio = cost_us[WRITTEN] / cost_us.get(ORDER, cost_us[WRITTEN])
                cost_us = {way: trial.us(way) for way in ways}
                cost_us.setdefault(WRITTEN, ratio * cost_us[next(iter(ways))])
        if run.is_timed and not is_tried:
            return False  # what was timed before stays
        run.order = order if best != WRITTEN else written
        run.mesh = mesh if best == CLASSES else None
        run.is_timed = is_tried
        is_open = mesh is not None or run.is_partial or self.budget.is_over
        run.is_settled = is_safe and not is_open
        run.cost_us = cost_us if is_tried or is_safe or lesson.timed.is_complete else {}
        return is_tried
