"""A stage of native conditions: learnt from a sample, compiled into Columns.

Conditions that could fail on some row keep their written place; the others are reordered among
themselves, run by run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from eddyline.fabric.pinned import runs_between_pinned
from eddyline.journal import Event
from eddyline.journal.events import ClassesFound, NoClassesFound, NotReordered, SampleMissing
from eddyline.mesh import Mesh, MeshOptions
from eddyline.mesh.cost import Overheads
from eddyline.mesh.routes import by_dynamic_programming
from eddyline.report import ClassLine
from eddyline.spark.common.class_lines import class_lines
from eddyline.spark.common.columns import candidate_attributes, quoted, usable_columns
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.common.progress import search_progress
from eddyline.spark.native.columns import mesh_to_column, route_to_column
from eddyline.spark.native.failing import may_raise
from eddyline.spark.native.learning import learn_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Write = Callable[[Event], None]

JVM_OVERHEADS = Overheads(test_us=0.005, route_us=0.002)
PILOT_ROWS = 2_000
ARRIVAL = "__eddyline_arrival"


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
        Classes with routes of their own, where they pay.

    """

    predicates: list[NativePredicate]
    order: tuple[int, ...]
    mesh: Mesh | None = None


@dataclass
class CompiledStage:
    """What the native conditions of a `where` were compiled to.

    Parameters
    ----------
    runs
        The conditions, in runs within which the order does not matter.
    rejected
        Columns that cannot classify rows, and why.
    types
        Of the columns that may classify rows.
    is_learnt
        Whether there were rows to learn from.

    """

    runs: list[NativeRun]
    rejected: dict[str, str] = field(default_factory=dict)
    types: dict[str, DataType] = field(default_factory=dict)
    is_learnt: bool = False

    def suits(self, df: DataFrame) -> bool:
        """Whether the DataFrame has the columns that rows are classified by."""
        needed = {name for run in self.runs if run.mesh for name in run.mesh.tree.attributes}
        usable = usable_columns(df)
        return all(usable.get(name) == self.types[name] for name in needed)

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame."""
        from pyspark.sql import functions as F

        for run in self.runs:
            conditions = [predicate.column() for predicate in run.predicates]
            if run.mesh is not None:
                attributes = {name: F.col(quoted(name)) for name in run.mesh.tree.attributes}
                df = df.filter(mesh_to_column(run.mesh, conditions, attributes, run.order))
            elif run.order != tuple(range(len(conditions))):
                df = df.filter(route_to_column(run.order, conditions))
            else:  # plain filters, which Spark may push down to the source
                for predicate in run.predicates:
                    df = filter_by(df, predicate)
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
        self._learnt: list[CompiledStage] = []

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame, along routes learnt from it or from one like it."""
        for predicate in self._predicates:
            filter_by(df, predicate)  # names the condition if Spark refuses it
        stage = next((stage for stage in self._learnt if stage.suits(df)), None)
        if stage is None:
            stage = self._compile(df)
            if stage.is_learnt:
                self._learnt.append(stage)
        return stage.apply(df)

    def class_lines(self) -> list[ClassLine]:
        """Return the classes of rows, for the report."""
        return [
            line
            for stage in self._learnt
            for run in stage.runs
            if run.mesh is not None
            for line in class_lines(run.mesh, [p.name for p in run.predicates], "in Spark")
        ]

    def rejected(self) -> dict[str, str]:
        """Return the columns that cannot classify rows, and why."""
        return {name: why for stage in self._learnt for name, why in stage.rejected.items()}

    def _compile(self, df: DataFrame) -> CompiledStage:
        """Learn routes from the sample, or from some rows of the DataFrame."""
        source = df if self._sample is None else self._sample
        stage = CompiledStage(split_runs(source, self._predicates))
        if self._sample is None and df.isStreaming:
            self._write(SampleMissing(instead="native conditions are evaluated as written"))
            return stage
        if all(len(run.predicates) < 2 for run in stage.runs):
            reason = "a condition that could fail on some rows keeps its place"
            self._write(NotReordered(reason=reason))
            return stage
        rows = pilot = pilot_sample(source, for_future_rows=df.isStreaming)
        stage.is_learnt = True
        for run in stage.runs:
            if len(run.predicates) > 1:
                stage.rejected |= learn_run(
                    run, rows, self._classify_by, self._options, self._seed, self._write
                )
                stage.types |= usable_columns(rows)
            for predicate in run.predicates:  # later runs see only the rows that are left
                rows = filter_by(rows, predicate)
        pilot.unpersist()
        return stage


def split_runs(df: DataFrame, predicates: Sequence[NativePredicate]) -> list[NativeRun]:
    """Return the conditions in runs between those that must keep their place."""
    is_pinned = [not each.deterministic or may_raise(df, each) for each in predicates]
    return [
        NativeRun([predicates[index] for index in run], tuple(range(len(run))))
        for run in runs_between_pinned(is_pinned)
    ]


def pilot_sample(
    df: DataFrame, rows: int = PILOT_ROWS, seed: int = 0, for_future_rows: bool = False
) -> DataFrame:
    """Return rows of a batch DataFrame, picked at random from all of it; unpersist it after use.

    This reads the DataFrame once. The first rows would cost less, but data that lies in arrival
    order differs between the beginning and the end.

    If what is learnt is meant for other rows, those to come, the sample is in arrival order, so
    that a column that grows with it is recognised and excluded. Within one DataFrame such a column
    may well classify rows.
    """
    from pyspark.sql import functions as F

    if not for_future_rows:
        return df.orderBy(F.rand(seed)).limit(rows).persist()
    numbered = df.withColumn(ARRIVAL, F.monotonically_increasing_id())
    return numbered.orderBy(F.rand(seed)).limit(rows).orderBy(ARRIVAL).drop(ARRIVAL).persist()


def learn_run(
    run: NativeRun,
    sample: DataFrame,
    classify_by: Sequence[str] | None,
    options: MeshOptions,
    seed: int | None,
    write: Write,
    query: str = "",
) -> dict[str, str]:
    """Find the best order of a run, or its mesh; return columns that cannot classify rows."""
    conditions = [predicate.column() for predicate in run.predicates]
    # In the JVM a column costs nothing until a test reads it, so all of them are candidates.
    names_by = list(usable_columns(sample)) if classify_by is None else classify_by
    attributes = candidate_attributes(sample, names_by, ())
    in_jvm = dataclasses.replace(options, overheads=JVM_OVERHEADS)
    with search_progress("searching for classes of rows") as progress:
        result, training, rejected = learn_native(
            sample, conditions, attributes, in_jvm, seed, progress
        )
    names = [predicate.name for predicate in run.predicates]
    if training.rows:
        run.order = by_dynamic_programming(training.drops, training.cost_us)
    run.mesh = result.mesh
    numbers: dict[str, Any] = {
        "rows": training.rows,
        "cost_us": dict(zip(names, np.round(training.cost_us, 3).tolist(), strict=True)),
        "order": tuple(names[number] for number in run.order),
        **result.numbers(),
        "rejected": rejected,
        "query": query,
    }
    if result.mesh is None:
        write(NoClassesFound(**numbers))
    else:
        write(ClassesFound(classes=tuple(result.mesh.words(names)), **numbers))
    return rejected
