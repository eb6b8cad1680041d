"""A stage of native conditions: learnt from a sample, compiled into Columns.

Conditions that could fail on some row keep their written place; the others are reordered among
themselves, run by run. Those that let Spark read fewer rows are filters of their own, in front.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eddyline.fabric.pinned import runs_between_pinned
from eddyline.journal.events import NotReordered, PlanningStopped, SampleMissing
from eddyline.mesh import MeshOptions
from eddyline.report import ClassLine, NativeOrderLine
from eddyline.spark.common.class_lines import class_lines
from eddyline.spark.common.columns import usable_columns
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.conditions import NativeRun
from eddyline.spark.native.failing import why_it_may_fail
from eddyline.spark.native.front import Front, find_front
from eddyline.spark.native.pilot import bytes_of, first_rows, glimpse, pilot_sample
from eddyline.spark.native.run import Reading, Write, learn_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

PILOT_SHARE = 0.7
#: The same where some of the first rows are read before, and are enough if there is no more time.
GLIMPSED_SHARE = 0.9
#: Less is read as fast as the first rows of it.
GLIMPSE_BYTES_MIN = 8_000_000
#: No more than that is read on each core.
BYTES_PER_SECOND = 100_000_000
NOT_DETERMINISTIC = "it is not deterministic"


@dataclass(frozen=True)
class NativeLayout:
    """What is known of native conditions before anything is learnt.

    Parameters
    ----------
    front
        The conditions that let Spark read fewer rows.
    routed
        The predicates that `front` does not cover, as written.
    pinned
        Those of them that keep their written place, and why.

    """

    front: Front
    routed: tuple[NativePredicate, ...]
    pinned: dict[str, str]

    @classmethod
    def of(cls, df: DataFrame, predicates: Sequence[NativePredicate]) -> NativeLayout:
        """Return the layout of predicates over a DataFrame."""
        pinned: dict[str, str] = {}
        movable: list[NativePredicate] = []
        is_open = True  # nothing moves across a predicate that is not deterministic
        for predicate in predicates:
            is_open = is_open and predicate.deterministic
            reason = why_it_may_fail(df, predicate) if predicate.deterministic else None
            if not predicate.deterministic:
                pinned[predicate.name] = NOT_DETERMINISTIC
            elif reason is not None:
                pinned[predicate.name] = reason
            elif is_open:
                movable.append(predicate)
        front = find_front(df, movable)
        routed = tuple(each for each in predicates if each.name not in front.names)
        return cls(front, routed, pinned)

    def runs(self) -> list[NativeRun]:
        """Return the routed predicates in runs between those that keep their place."""
        is_pinned = [each.name in self.pinned for each in self.routed]
        return [
            NativeRun([self.routed[index] for index in run], tuple(range(len(run))))
            for run in runs_between_pinned(is_pinned)
        ]


@dataclass
class CompiledStage:
    """What the native conditions of a `where` were compiled to.

    Parameters
    ----------
    routed
        Names of the conditions that are not filters in front.
    runs
        The conditions, in runs within which the order does not matter.
    rejected
        Columns that cannot classify rows, and why.
    types
        Of the columns that may classify rows.
    is_learnt
        Whether there were rows to learn from.

    """

    routed: tuple[str, ...]
    runs: list[NativeRun]
    rejected: dict[str, str] = field(default_factory=dict)
    types: dict[str, DataType] = field(default_factory=dict)
    is_learnt: bool = False

    def suits(self, df: DataFrame, layout: NativeLayout) -> bool:
        """Whether the DataFrame has the columns that rows are classified by."""
        if self.routed != tuple(predicate.name for predicate in layout.routed):
            return False
        needed = {name for run in self.runs if run.mesh for name in run.mesh.tree.attributes}
        usable = usable_columns(df)
        return all(usable.get(name) == self.types[name] for name in needed)

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame."""
        for run in self.runs:
            df = run.apply(df)
        return df


class NativeStages:
    """Compiles the native conditions of a `where`, once for each kind of DataFrame.

    Parameters
    ----------
    predicates
        The conditions, in written order.
    sample
        Rows to learn from; None: some rows of the DataFrame itself.
    classify_by
        Columns that may classify rows; None: all that can.
    options
        Of the search for a mesh.
    seed
        For everything random.
    write
        Called with each decision.

    """

    def __init__(
        self,
        predicates: Sequence[NativePredicate],
        sample: DataFrame | None,
        classify_by: Sequence[str] | None,
        options: MeshOptions,
        seed: int | None,
        write: Write,
    ) -> None:
        self._predicates = list(predicates)
        self._sample = sample
        self._classify_by = classify_by
        self._options = options
        self._seed = seed
        self._write = write
        self._layouts: dict[int, NativeLayout] = {}
        self._learnt: list[CompiledStage] = []
        self._told: dict[str, str] = {}

    def apply(self, df: DataFrame, budget: PlanningBudget) -> DataFrame:
        """Filter the DataFrame, along routes learnt from it or from one like it."""
        layout = self._layout(df)
        filtered = layout.front.apply(df)
        stage = next((stage for stage in self._learnt if stage.suits(df, layout)), None)
        if stage is None:
            stage = self._compile(filtered, layout, budget)
            if stage.is_learnt:
                self._learnt.append(stage)
        return stage.apply(filtered)

    def class_lines(self) -> list[ClassLine]:
        """Return the classes of rows, for the report."""
        return [
            line
            for stage in self._learnt
            for run in stage.runs
            if run.mesh is not None
            for line in class_lines(run.mesh, [p.name for p in run.predicates], "in Spark")
        ]

    def order_lines(self) -> list[NativeOrderLine]:
        """Return what was learnt about the order of conditions, for the report."""
        return [line for stage in self._learnt for run in stage.runs for line in run.lines()]

    def not_reordered(self) -> dict[str, str]:
        """Return the predicates that keep their written place, and why."""
        return dict(self._told)

    def rejected(self) -> dict[str, str]:
        """Return the columns that cannot classify rows, and why."""
        return {name: why for stage in self._learnt for name, why in stage.rejected.items()}

    def _layout(self, df: DataFrame) -> NativeLayout:
        """Return the layout for a DataFrame; found once for DataFrames with the same plan."""
        key = df.semanticHash()
        if key not in self._layouts:
            for predicate in self._predicates:
                filter_by(df, predicate)  # names the condition if Spark refuses it
            self._layouts[key] = NativeLayout.of(df, self._predicates)
        layout = self._layouts[key]
        for name, reason in layout.pinned.items():
            if self._told.get(name) != reason:
                self._told[name] = reason
                self._write(NotReordered(predicate=name, reason=reason))
        return layout

    def _compile(
        self, df: DataFrame, layout: NativeLayout, budget: PlanningBudget
    ) -> CompiledStage:
        """Learn routes from the sample, or from some rows of the DataFrame."""
        stage = CompiledStage(tuple(p.name for p in layout.routed), layout.runs())
        if all(len(run.predicates) < 2 for run in stage.runs):
            return stage
        if self._sample is None and df.isStreaming:
            self._write(SampleMissing(instead="native conditions are evaluated as written"))
            return stage
        stage.is_learnt = True
        source = df if self._sample is None else layout.front.apply(self._sample)
        try:
            self._learn(stage, source, df.isStreaming, budget)
        except OutOfTimeError:
            self._stopped("native conditions are evaluated as written")
        return stage

    def _learn(
        self, stage: CompiledStage, source: DataFrame, for_future_rows: bool, budget: PlanningBudget
    ) -> None:
        pilot = pilot_sample(
            source, for_future_rows=for_future_rows, keep_rank=self._sample is None, is_kept=False
        )

        def keep() -> None:
            if not pilot.is_cached:
                pilot.persist()

        if sum(len(run.predicates) > 1 for run in stage.runs) > 1:
            keep()
        reading = Reading(PILOT_SHARE, source, keep=keep)
        if budget.left_s() is not None:
            reading = _with_glimpse(reading, source)
        try:
            self._learn_from(pilot, stage, self._classify_by, budget, reading)
        except OutOfTimeError:
            if budget.is_over or reading.glimpse is not None:
                raise
            # Rows that lie together may be alike: they tell an order, but no classes.
            first = first_rows(source)
            try:
                self._learn_from(first, stage, (), budget, Reading())
            finally:
                first.unpersist()
        finally:
            pilot.unpersist()
        is_open = any(len(run.predicates) > 1 and not run.is_settled for run in stage.runs)
        if is_open and (budget.is_over or any(run.is_partial for run in stage.runs)):
            self._stopped("what was not found by then is evaluated in one order")

    def _learn_from(
        self,
        rows: DataFrame,
        stage: CompiledStage,
        classify_by: Sequence[str] | None,
        budget: PlanningBudget,
        reading: Reading,
    ) -> None:
        """Learn about each run from sampled rows; raises if they cannot be read in time."""
        last = max(n for n, run in enumerate(stage.runs) if len(run.predicates) > 1)
        for number, run in enumerate(stage.runs[: last + 1]):
            if len(run.predicates) > 1:
                stage.rejected |= learn_run(
                    run,
                    rows,
                    classify_by,
                    self._options,
                    self._seed,
                    self._write,
                    budget,
                    reading=reading,
                )
                stage.types |= usable_columns(rows)
            if number < last:  # later runs see only the rows that are left
                written = range(len(run.predicates))
                rows = run.by_order(rows, written)
                if reading.glimpse is not None:
                    first = run.by_order(reading.glimpse, written)
                    reading = dataclasses.replace(reading, glimpse=first)

    def _stopped(self, instead: str) -> None:
        limit_s = self._options.planning_s_max
        if limit_s is not None:
            self._write(PlanningStopped(seconds_max=limit_s, instead=instead))


def _with_glimpse(reading: Reading, source: DataFrame) -> Reading:
    """Return how to read rows where a pilot might not be read in time."""
    size = bytes_of(source)
    if size is not None and size < GLIMPSE_BYTES_MIN:
        return reading
    reading_s = 0.0
    if size is not None:
        cores = source.sparkSession.sparkContext.defaultParallelism
        reading_s = size / (cores * BYTES_PER_SECOND)
    return dataclasses.replace(
        reading, share=GLIMPSED_SHARE, glimpse=glimpse(source), reading_s=reading_s
    )
