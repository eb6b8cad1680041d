"""A stage of Spark's own predicates: learnt from a sample, compiled into Columns, never reordered
where one could fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from eddyline.journal import Event
from eddyline.journal.events import ClassesFound, NoClassesFound, NotReordered, SampleMissing
from eddyline.mesh import Mesh, MeshOptions
from eddyline.mesh.cost import Overheads
from eddyline.mesh.routes import by_dynamic_programming
from eddyline.report.model import ClassLine
from eddyline.spark.common.class_lines import class_lines
from eddyline.spark.common.columns import candidate_attributes, quoted, usable_columns
from eddyline.spark.common.filters import filter_by
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.common.progress import search_progress
from eddyline.spark.native.columns import learn_native, may_raise, mesh_to_column, route_to_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Note = Callable[[Event], None]

JVM_OVERHEADS = Overheads(test_us=0.005, route_us=0.002)
PILOT_ROWS = 2_000
PLACE = "__eddyline_place"


@dataclass
class NativeRun:
    """Predicates that stand together and may be reordered, and what was learnt about them."""

    predicates: list[NativePredicate]
    order: tuple[int, ...]
    mesh: Mesh | None = None


@dataclass
class CompiledStage:
    """What a stage of Spark's own predicates was compiled to.

    Parameters
    ----------
    predicates
        As written.
    runs
        The same, in runs within which the order does not matter.
    rejected
        Columns that tell nothing about the rows, and why.
    types
        Of the columns that may classify rows.
    is_learnt
        Whether there were rows to learn from.
    """

    predicates: list[NativePredicate]
    runs: list[NativeRun]
    rejected: dict[str, str] = field(default_factory=dict)
    types: dict[str, DataType] = field(default_factory=dict)
    is_learnt: bool = False

    def suits(self, df: DataFrame, predicates: Sequence[NativePredicate]) -> bool:
        """Say whether this is the stage of these predicates, and the DataFrame has its columns."""
        needed = {a for run in self.runs if run.mesh for a in run.mesh.tree.attributes}
        usable = usable_columns(df)
        return list(predicates) == self.predicates and all(
            usable.get(name) == self.types[name] for name in needed
        )

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

    def class_lines(self) -> list[ClassLine]:
        """Return the classes, for the report."""
        lines = []
        for run in self.runs:
            if run.mesh is not None:
                names = [predicate.name for predicate in run.predicates]
                lines += class_lines(run.mesh, names, "in Spark")
        return lines


def pilot_sample(
    df: DataFrame, rows: int = PILOT_ROWS, seed: int = 0, for_rows_to_come: bool = False
) -> DataFrame:
    """Return rows of a batch DataFrame, picked at random from all of it; unpersist it after use.

    This reads the DataFrame once. The first rows would cost less, but data that lies in the order
    in which it came is not alike at the beginning and at the end.

    If what is learnt is meant for other rows, those to come, the rows stand in the order in which
    they came: a column that only tells when that was is then known by it. Within one DataFrame
    such a column may well tell classes apart.
    """
    from pyspark.sql import functions as F

    if not for_rows_to_come:
        return df.orderBy(F.rand(seed)).limit(rows).persist()
    placed = df.withColumn(PLACE, F.monotonically_increasing_id())
    return placed.orderBy(F.rand(seed)).limit(rows).orderBy(PLACE).drop(PLACE).persist()


def compile_stage(
    df: DataFrame,
    predicates: Sequence[NativePredicate],
    sample: DataFrame | None,
    classify_by: Sequence[str] | None,
    options: MeshOptions,
    seed: int | None,
    note: Note,
) -> CompiledStage:
    """Learn routes for Spark's own predicates from a sample, or from some rows of the DataFrame."""
    known = df if sample is None else sample
    runs = [NativeRun(part, tuple(range(len(part)))) for part in _runs(known, predicates)]
    stage = CompiledStage(list(predicates), runs)
    if sample is None and df.isStreaming:
        note(SampleMissing(instead="native conditions are evaluated as written"))
        return stage
    if all(len(run.predicates) < 2 for run in runs):
        note(NotReordered(reason="a condition that could fail on some rows keeps its place"))
        return stage
    rows = pilot = pilot_sample(known, for_rows_to_come=df.isStreaming)
    stage.is_learnt = True
    for run in runs:
        if len(run.predicates) > 1:
            stage.rejected |= learn_run(run, rows, classify_by, options, seed, note)
            stage.types |= usable_columns(rows)
        for predicate in run.predicates:  # what comes after sees only what is left
            rows = filter_by(rows, predicate)
    pilot.unpersist()
    return stage


def learn_run(
    run: NativeRun,
    sample: DataFrame,
    classify_by: Sequence[str] | None,
    options: MeshOptions,
    seed: int | None,
    note: Note,
    query: str = "",
) -> dict[str, str]:
    """Find the best order of a run, or its mesh; return columns that tell nothing, and why."""
    conditions = [predicate.column() for predicate in run.predicates]
    # In the JVM a column costs nothing until a test reads it, so all of them may be looked at.
    by = list(usable_columns(sample)) if classify_by is None else classify_by
    attributes = candidate_attributes(sample, by, ())
    in_jvm = dataclasses.replace(options, overheads=JVM_OVERHEADS)
    with search_progress("looking for classes of rows") as progress:
        found, training, rejected = learn_native(
            sample, conditions, attributes, in_jvm, seed, progress
        )
    names = [predicate.name for predicate in run.predicates]
    if training.rows:
        run.order = by_dynamic_programming(training.drops, training.cost_us)
    run.mesh = found.mesh
    numbers: dict[str, Any] = {
        "rows": training.rows,
        "cost_us": dict(zip(names, np.round(training.cost_us, 3).tolist(), strict=True)),
        "order": tuple(names[n] for n in run.order),
        **found.numbers(),
        "rejected": rejected,
        "query": query,
    }
    if found.mesh is None:
        note(NoClassesFound(**numbers))
    else:
        note(ClassesFound(classes=tuple(found.mesh.words(names)), **numbers))
    return rejected


def _runs(df: DataFrame, predicates: Sequence[NativePredicate]) -> list[list[NativePredicate]]:
    """Cut the predicates at those that must keep their place."""
    runs: list[list[NativePredicate]] = []
    fixed_before = True
    for predicate in predicates:
        fixed = not predicate.deterministic or may_raise(df, predicate)
        if fixed or fixed_before:
            runs.append([])
        runs[-1].append(predicate)
        fixed_before = fixed
    return runs
