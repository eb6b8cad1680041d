"""A run of native conditions: they may be reordered among themselves, or routed by a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.mesh import Mesh
from eddyline.report import NativeOrderLine
from eddyline.spark.common.columns import quoted
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.columns import mesh_to_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Ways to evaluate a run: in the written order, in the best one, each class in its own.
WRITTEN, ORDER, CLASSES = "written", "order", "classes"


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
    is_settled
        Whether what is known from the sampled rows decided, so that no way had to be timed.
    is_partial
        Whether only some of the first rows could be read in time.

    """

    predicates: list[NativePredicate]
    order: tuple[int, ...]
    mesh: Mesh | None = None
    rows: int = 0
    cost_us: dict[str, float] = field(default_factory=dict)
    is_timed: bool = False
    is_settled: bool = False
    is_partial: bool = False
    _compiled: tuple[tuple[SparkSession, Mesh, tuple[int, ...]], Column] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame."""
        return self.by_order(df, self.order) if self.mesh is None else self.by_mesh(df, self.mesh)

    def by_order(self, df: DataFrame, order: Sequence[int]) -> DataFrame:
        """Filter the DataFrame in one order, by plain filters: Spark may push these down."""
        for number in order:
            df = df.filter(self.predicates[number].condition)
        return df

    def by_mesh(self, df: DataFrame, mesh: Mesh) -> DataFrame:
        """Filter the DataFrame by one Column, each class of rows along its own route."""
        made_for = (df.sparkSession, mesh, self.order)
        if self._compiled is None or self._compiled[0] != made_for:
            # Building the Column takes a hundred calls of the JVM, more than Spark's analysis.
            self._compiled = (made_for, self._column(mesh))
        return df.filter(self._compiled[1])

    def _column(self, mesh: Mesh) -> Column:
        conditions = [predicate.column() for predicate in self.predicates]
        attributes = {name: F.col(quoted(name)) for name in mesh.tree.attributes}
        return mesh_to_column(mesh, conditions, attributes, self.order)

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
