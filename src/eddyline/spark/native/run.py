"""A run of native conditions: they may be reordered among themselves, or routed by a mesh."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from eddyline.journal import Event
from eddyline.journal.events import ClassesFound, NativeReordered, NoClassesFound, TrialEnded
from eddyline.mesh import Mesh, MeshOptions
from eddyline.mesh.cost import Overheads
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.ordering.static import ordering_cost
from eddyline.report import NativeOrderLine
from eddyline.spark.common.columns import candidate_attributes, quoted, usable_columns
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.columns import mesh_to_column
from eddyline.spark.native.learning import NativeLesson, evaluate_sample, learn_native
from eddyline.spark.native.pilot import HELD_OUT, HELD_OUT_SHARE, with_held_out
from eddyline.spark.native.timing import (
    CLEAR_GAIN,
    TimedConditions,
    Way,
    time_conditions,
    time_ways,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[[Event], None]

#: Ways to evaluate a run: in the written order, in the best one, each class in its own.
WRITTEN, ORDER, CLASSES = "written", "order", "classes"
JVM_OVERHEADS = Overheads(test_us=0.005, route_us=0.002)


@dataclass
class NativeRun:
    """Conditions that may be reordered among themselves, and what was learnt about them.

    Parameters
    ----------
    predicates
        As written.
    order
        The best single order.
    mesh
        Classes with routes of their own, where they are faster.
    rows
        Sampled rows that this was learnt from.
    cost_us
        Cost of a row as written (`WRITTEN`), in `order` (`ORDER`) and in a mesh (`CLASSES`).
    is_timed
        Whether these were timed on rows of their own; else they are computed from the cost of each
        condition and what it drops.

    """

    predicates: list[NativePredicate]
    order: tuple[int, ...]
    mesh: Mesh | None = None
    rows: int = 0
    cost_us: dict[str, float] = field(default_factory=dict)
    is_timed: bool = False

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame."""
        return self.by_order(df, self.order) if self.mesh is None else self.by_mesh(df, self.mesh)

    def by_order(self, df: DataFrame, order: Sequence[int]) -> DataFrame:
        """Filter the DataFrame in one order, by plain filters: Spark may push these down."""
        for number in order:
            df = filter_by(df, self.predicates[number])
        return df

    def by_mesh(self, df: DataFrame, mesh: Mesh) -> DataFrame:
        """Filter the DataFrame by one Column, each class of rows along its own route."""
        conditions = [predicate.column() for predicate in self.predicates]
        attributes = {name: F.col(quoted(name)) for name in mesh.tree.attributes}
        return df.filter(mesh_to_column(mesh, conditions, attributes, self.order))

    @property
    def gain(self) -> float:
        """Share of the time that what is used saves against the written order, as timed."""
        if not self.is_timed:
            return 0.0
        used = CLASSES if self.mesh is not None else ORDER
        is_written = self.mesh is None and self.order == tuple(range(len(self.predicates)))
        return 0.0 if is_written else 1 - self.cost_us[used] / self.cost_us[WRITTEN]

    def names(self, order: Sequence[int] | None = None) -> tuple[str, ...]:
        """Return the names of the predicates, as written or in an order."""
        numbers = range(len(self.predicates)) if order is None else order
        return tuple(self.predicates[number].name for number in numbers)

    def lines(self) -> list[NativeOrderLine]:
        """Return what was learnt, for the report; nothing if nothing was."""
        if not self.cost_us:
            return []
        written_us = self.cost_us[WRITTEN]
        return [
            NativeOrderLine(
                self.names(),
                self.names(self.order),
                self.rows,
                written_us,
                self.cost_us.get(ORDER, written_us),
                self.cost_us.get(CLASSES),
                self.mesh is not None,
                self.is_timed,
            )
        ]


def learn_run(
    run: NativeRun,
    sample: DataFrame,
    classify_by: Sequence[str] | None,
    options: MeshOptions,
    seed: int | None,
    write: Write,
    budget: PlanningBudget,
    reading_share: float = 1.0,
    query_rows: Callable[[], float] | None = None,
    query: str = "",
) -> dict[str, str]:
    """Find the best order of a run, or its mesh; return columns that cannot classify rows.

    Another order, and a mesh, are used only if they are faster on rows that they were not made
    from. If there is no time to time them, the order is used that should be the best one.

    Parameters
    ----------
    run
        The conditions; changed to what was learnt.
    sample
        Sampled rows.
    classify_by
        Columns that may classify rows; None: all that can.
    options, seed
        Of the search for a mesh.
    write
        Called with each decision.
    budget, reading_share
        Limits the time, and the share of it for reading the sample. Raises `OutOfTimeError` if the
        sample cannot be read by then.
    query_rows
        Returns about how many rows are to be filtered; called only if there is something to time.
        None: many.
    query
        The engine's query that the conditions belong to.

    """
    columns = usable_columns(sample)
    sample = with_held_out(sample)
    conditions = [predicate.column() for predicate in run.predicates]
    # In the JVM a column costs nothing until a test reads it, so all of them are candidates.
    attributes = candidate_attributes(
        sample, list(columns) if classify_by is None else classify_by, ()
    )
    in_jvm = dataclasses.replace(options, overheads=options.overheads or JVM_OVERHEADS)
    evaluated = evaluate_sample(sample, conditions, attributes, budget.part(reading_share))
    run.rows = evaluated.rows
    trials = _Trials(run, sample, options.gain_min, budget, query_rows)

    def learn(timed: TimedConditions) -> NativeLesson:
        lesson = learn_native(evaluated, timed, in_jvm, seed, budget)
        _learn_from(run, lesson, options, trials, write, query)
        return lesson

    if budget.left_s() is not None:
        # Timing each condition takes longer than trying what is best if all cost the same.
        lesson = learn(TimedConditions((1.0,) * len(conditions), False))
        if run.gain >= CLEAR_GAIN or budget.is_over:
            return dict(lesson.rejected)
    lesson = learn(time_conditions(sample, conditions, evaluated.rows, budget))
    return dict(lesson.rejected)


def _learn_from(
    run: NativeRun,
    lesson: NativeLesson,
    options: MeshOptions,
    trials: _Trials,
    write: Write,
    query: str,
) -> None:
    """Use the order or the mesh of a lesson if it is faster; write what was found."""
    training, found = lesson.training, lesson.result.mesh
    mesh = None if found is None else found.settled()
    order = ROUTE_FINDERS[options.routes](training.drops, training.cost_us)
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
    is_tried = trials.choose(order, mesh, lesson)
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
                method="alternating",
                verdict="interrupted" if not is_tried else "kept" if run.mesh else "reverted",
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
        Returns about how many rows are to be filtered. None: many.

    """

    run: NativeRun
    sample: DataFrame
    gain_min: float
    budget: PlanningBudget
    query_rows: Callable[[], float] | None

    def choose(self, order: tuple[int, ...], mesh: Mesh | None, lesson: NativeLesson) -> bool:
        """Decide among the written order, another one and a mesh; note what they cost.

        Without time for a trial, another order is used only if its conditions were timed.
        Returns whether there was a trial.
        """
        run, training = self.run, lesson.training
        written = tuple(range(len(run.predicates)))
        ways: dict[str, Way] = {WRITTEN: lambda df: run.by_order(df, written)}
        cost_us = {WRITTEN: ordering_cost(written, training.drops, training.cost_us)}
        if order != written:
            ways[ORDER] = lambda df: run.by_order(df, order)
            cost_us[ORDER] = ordering_cost(order, training.drops, training.cost_us)
        if mesh is not None:
            ways[CLASSES] = lambda df: run.by_mesh(df, mesh)
        is_better = cost_us.get(ORDER, math.inf) < (1 - self.gain_min) * cost_us[WRITTEN]
        best = ORDER if is_better and lesson.is_timed else WRITTEN
        is_tried = False
        if len(ways) > 1:
            held_out = self.sample.filter(F.col(HELD_OUT))
            rows = max(1, round(run.rows * HELD_OUT_SHARE))
            expected_us = min(cost_us.values())
            trial = time_ways(held_out, rows, ways, expected_us, self.budget, self.gain_min)
            is_tried = trial.is_enough
            if is_tried:
                query_rows = None if self.query_rows is None else self.query_rows()
                best = trial.winner(self.gain_min, query_rows)
                cost_us = {way: trial.us(way) for way in ways}
        if run.is_timed and not is_tried:
            return False  # what was timed before stays
        run.order = order if best != WRITTEN else written
        run.mesh = mesh if best == CLASSES else None
        run.is_timed = is_tried
        run.cost_us = cost_us if is_tried or lesson.is_timed else {}
        return is_tried
