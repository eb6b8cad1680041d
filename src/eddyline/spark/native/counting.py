"""Deciding by counts: where conditions cost the same, how many of them a row needs is enough.

Nothing is timed, so this takes one job over sampled rows, also in a JVM that has just started.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sqlglot import exp

from eddyline.mesh import Mesh
from eddyline.ordering.static import ordering_cost
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.condition_tree import written_tree
from eddyline.spark.native.conditions import CLASSES, ORDER, WRITTEN, NativeRun
from eddyline.spark.native.learning import NativeLesson
from eddyline.sql.likeness import cost_alike, least_cost_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Share of the evaluations that must be saved. Conditions that are alike may still differ in cost
#: by the third that this leaves.
COUNTED_GAIN = 0.25
#: Time that must be saved at least: about what it takes to generate and compile more code.
NEW_CODE_S = 0.15
#: The JVM never compiles larger methods (`-XX:HugeMethodLimit`).
METHOD_BYTES_MAX = 8_000
_METHOD_BYTES = re.compile(r"maxMethodCodeSize:(\d+)")


def alike_trees(
    df: DataFrame, predicates: Sequence[NativePredicate]
) -> tuple[exp.Expression, ...] | None:
    """Return the trees of conditions that are costly and cost the same; None for others."""
    trees = [written_tree(df, predicate) for predicate in predicates]
    read = tuple(tree for tree in trees if tree is not None)
    is_costly = len(read) == len(trees) and all(least_cost_us(tree, {}) > 0 for tree in read)
    return read if is_costly and cost_alike(read) else None


@dataclass(frozen=True)
class Counts:
    """Decides how a run is evaluated, by the number of evaluations that a row needs.

    Parameters
    ----------
    run
        The conditions; changed to what needs fewer evaluations.
    df
        What is to be filtered: tells how large the generated code is.
    gain_min
        Smallest saving that is worth having another order.
    query_rows
        About how many rows are to be filtered. None: many.
    budget
        Limits the time.

    """

    run: NativeRun
    df: DataFrame
    gain_min: float
    query_rows: float | None
    budget: PlanningBudget
    method: ClassVar[Literal["alternating", "counted"]] = "counted"

    def choose(self, order: tuple[int, ...], mesh: Mesh | None, lesson: NativeLesson) -> bool:
        """Decide among the written order, another one and a mesh; return whether counts suffice.

        They do if much can be saved, or nothing.
        """
        run, training = self.run, lesson.training
        written = tuple(range(len(run.predicates)))
        cost_us = {
            WRITTEN: ordering_cost(written, training.drops, training.cost_us),
            ORDER: ordering_cost(order, training.drops, training.cost_us),
        }
        gain = 1 - cost_us[ORDER] / cost_us[WRITTEN]
        before, run.order = run.order, order  # which rows of unknown classes take
        if mesh is None:
            is_clear = not self.gain_min < gain < COUNTED_GAIN
        else:
            cost_us[CLASSES] = mesh.cost_us
            is_clear = self._pays(mesh, lesson)
        if not is_clear:
            run.order = before
            return False
        run.order = order if mesh is not None or gain >= COUNTED_GAIN else written
        run.mesh = mesh
        run.cost_us = cost_us
        run.is_settled = True
        return True

    def _pays(self, mesh: Mesh, lesson: NativeLesson) -> bool:
        """Whether a mesh saves much more than its code costs."""
        found = lesson.result
        saving_us = found.saving_us - found.noise_us
        if saving_us < COUNTED_GAIN * found.single_us:
            return False
        if self.budget.is_over:  # there is no time to generate code
            return False
        if self.query_rows is not None and saving_us * self.query_rows < NEW_CODE_S * 1e6:
            return False
        return 0 < _method_bytes(self.run.by_mesh(self.df, mesh)) <= METHOD_BYTES_MAX


def _method_bytes(df: DataFrame) -> int:
    """Return the size of the largest method that Spark generates; 0 if it generates none."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.explain(mode="codegen")
    return max(map(int, _METHOD_BYTES.findall(printed.getvalue())), default=0)
