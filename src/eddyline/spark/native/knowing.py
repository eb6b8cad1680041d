"""How much must be known about native conditions before their order is chosen.

What the first pass over the sampled rows tells is often enough. More is measured, and classes are
searched for, only if that could save more of the query than it takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eddyline.arrays import FloatArray
from eddyline.mesh import MeshOptions
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.ordering.static import least_cost, ordering_cost
from eddyline.ordering.uncertain import CostRanges, gain_of_measuring, safe_order
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.native import clocked
from eddyline.spark.native.counting import NEW_CODE_S
from eddyline.spark.native.learning import EvaluatedSample

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: About what it takes to measure costs again, and the least time in which a way can be tried.
MEASURING_S, TRYING_S = 0.3, 0.5


def known_ranges(
    evaluated: EvaluatedSample,
    sample: DataFrame,
    conditions: Sequence[Column],
    options: MeshOptions,
    budget: PlanningBudget,
) -> CostRanges:
    """Return what each condition costs; measured again if that could save more than it takes.

    Parameters
    ----------
    evaluated
        The sampled rows, evaluated with a clock.
    sample, conditions
        The same rows, kept by Spark, and the conditions.
    options
        How the best order is found, and which gains are worth having.
    budget
        Limits the time.

    """
    durations_ns = evaluated.durations_ns
    if durations_ns is None:
        raise ValueError("the sample was evaluated without a clock")
    ranges = clocked.first_ranges(durations_ns)
    best = ROUTE_FINDERS[options.routes](evaluated.drops, ranges.middle_us)
    order = safe_order(best, evaluated.drops, ranges)
    gain = gain_of_measuring(order, evaluated.drops, ranges)
    saved_us = gain * ordering_cost(order, evaluated.drops, ranges.middle_us)
    if gain > options.gain_min and _pays(saved_us, evaluated, MEASURING_S):
        with contextlib.suppress(OutOfTimeError):
            pass_s = float(durations_ns[:, :-1].mean(axis=0).sum()) * evaluated.rows / 1e9
            ranges = clocked.clock_again(sample, conditions, pass_s, budget) or ranges
    return ranges


def why_no_search(
    evaluated: EvaluatedSample, cost_us: FloatArray, gain_min: float, budget: PlanningBudget
) -> str | None:
    """Return why a search for classes is pointless; None if it is not.

    Parameters
    ----------
    evaluated, cost_us
        What the conditions drop and cost.
    gain_min
        Share of the cost that classes must save.
    budget
        Limits the time.

    """
    single_us = ordering_cost(
        ROUTE_FINDERS["greedy"](evaluated.drops, cost_us), evaluated.drops, cost_us
    )
    saved_us = single_us - least_cost(evaluated.drops, cost_us)
    if saved_us < gain_min * single_us:
        return "no route could save enough"
    if not _pays(saved_us, evaluated, NEW_CODE_S):
        return "the query is too short"
    left_s = budget.left_s()
    return "time" if left_s is not None and left_s < TRYING_S else None


def _pays(saved_us: float, evaluated: EvaluatedSample, seconds: float) -> bool:
    """Whether what is saved on each row is more than some seconds in all, as far as is known."""
    return evaluated.query_rows is None or saved_us * evaluated.query_rows > seconds * 1e6
