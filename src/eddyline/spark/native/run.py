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
from eddyline.mesh import Mesh, MeshOptions, TrainingSet
from eddyline.mesh.cost import Overheads
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.ordering.static import ordering_cost
from eddyline.report import NativeOrderLine
from eddyline.spark.common.columns import candidate_attributes, quoted, usable_columns
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.columns import mesh_to_column
from eddyline.spark.native.learning import learn_native
from eddyline.spark.native.pilot import HELD_OUT, HELD_OUT_SHARE, with_held_out
from eddyline.spark.native.timing import Way, time_ways

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
    lesson = learn_native(sample, conditions, attributes, in_jvm, seed, budget, reading_share)
    training, found = lesson.training, lesson.result.mesh
    mesh = None if found is None else found.settled()
    run.rows = training.rows
    if lesson.is_timed:
        run.order = ROUTE_FINDERS[options.routes](training.drops, training.cost_us)
    numbers: dict[str, Any] = {
        "rows": training.rows,
        "cost_us": dict(zip(run.names(), np.round(training.cost_us, 3).tolist(), strict=True)),
        "order": run.names(run.order),
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
    if lesson.is_timed:
        _choose(run, mesh, training, sample, options.gain_min, budget, query_rows)
        _write_choice(run, mesh, write)
    return dict(lesson.rejected)


def _choose(
    run: NativeRun,
    mesh: Mesh | None,
    training: TrainingSet,
    sample: DataFrame,
    gain_min: float,
    budget: PlanningBudget,
    query_rows: Callable[[], float] | None,
) -> None:
    """Decide among the written order, the best one and the mesh; note what they cost."""
    written, order = tuple(range(len(run.predicates))), run.order
    ways: dict[str, Way] = {WRITTEN: lambda df: run.by_order(df, written)}
    run.cost_us = {WRITTEN: ordering_cost(written, training.drops, training.cost_us)}
    if order != written:
        ways[ORDER] = lambda df: run.by_order(df, order)
        run.cost_us[ORDER] = ordering_cost(order, training.drops, training.cost_us)
    if mesh is not None:
        ways[CLASSES] = lambda df: run.by_mesh(df, mesh)
    best = (
        ORDER
        if run.cost_us.get(ORDER, math.inf) < (1 - gain_min) * run.cost_us[WRITTEN]
        else WRITTEN
    )
    if len(ways) > 1:
        held_out = sample.filter(F.col(HELD_OUT))
        rows = max(1, round(run.rows * HELD_OUT_SHARE))
        trial = time_ways(held_out, rows, ways, min(run.cost_us.values()), budget, gain_min)
        if trial.is_enough:
            best = trial.winner(gain_min, None if query_rows is None else query_rows())
            run.is_timed = True
            run.cost_us = {way: trial.us(way) for way in ways}
    if best == CLASSES:
        run.mesh = mesh
    elif best == WRITTEN:
        run.order = written


def _write_choice(run: NativeRun, mesh: Mesh | None, write: Write) -> None:
    if run.mesh is None and run.order != tuple(range(len(run.predicates))):
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
                verdict="interrupted" if not run.is_timed else "kept" if run.mesh else "reverted",
                before=run.names(run.order),
                after=tuple(mesh.words(run.names())),
                rows=run.rows,
                before_us=round(min(others_us), 4),
                after_us=round(run.cost_us.get(CLASSES, 0.0), 4),
            )
        )
