"""Learning before the first row: every predicate judges sampled rows, on the driver."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy, mesh_options
from eddyline.journal import Record
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.where.plan import RouterPlan
from eddyline.spark.where.worker import make_router

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE_ROWS_MAX = 20_000
TRAINING_ROWS_MAX = 2_000
PROBE_ROWS = 16
ROWS_MIN = 64


def train_router(
    plan: RouterPlan, sample: DataFrame, budget: PlanningBudget
) -> tuple[tuple[Knowledge, ...], list[Record]] | None:
    """Return what the sampled rows teach the router of a plan, and its decisions.

    Returns None if the sample is empty. Raises `OutOfTimeError` if there is no time to read it, or
    to evaluate the predicates on enough rows.
    """
    limited = sample.limit(SAMPLE_ROWS_MAX)
    table = budget.run(limited.toArrow).combine_chunks()
    if table.num_rows == 0:
        return None
    rng = np.random.default_rng(plan.options.seed)
    shuffled = rng.permutation(table.num_rows)[:TRAINING_ROWS_MAX]
    left_s = budget.left_s()
    if left_s is not None:
        shuffled = shuffled[: _rows_in_time(plan, table.take(pa.array(shuffled)), left_s)]
        plan = replace(plan, policy=_limited(plan.policy, budget))
    router = make_router(plan, process="driver")
    batch = table.take(pa.array(np.sort(shuffled))).combine_chunks().to_batches()[0]
    router.train(batch.columns, batch.num_rows, budget.progress)
    router.close()
    return router.snapshot(), list(router.journal)


def _rows_in_time(plan: RouterPlan, table: pa.Table, left_s: float) -> int:
    """Return the number of rows that all predicates can be evaluated on in half of the time."""
    probe = table.slice(0, PROBE_ROWS).combine_chunks().to_batches()[0]
    router = make_router(replace(plan, policy="agreedy"), process="driver")
    began = time.perf_counter()
    router.train(probe.columns, probe.num_rows)
    row_s = (time.perf_counter() - began) / probe.num_rows
    router.close()
    rows = int(left_s / 2 / max(row_s, 1e-9))
    if rows < min(ROWS_MIN, table.num_rows):
        raise OutOfTimeError
    return min(rows, int(table.num_rows))


def _limited(policy: RoutingPolicy, budget: PlanningBudget) -> RoutingPolicy:
    """Return a policy whose search for classes ends in time."""
    options, left_s = mesh_options(policy), budget.left_s(0.5)
    if options is None or left_s is None:
        return policy
    return replace(options, seconds_max=max(min(left_s, options.seconds_max or left_s), 1e-3))
