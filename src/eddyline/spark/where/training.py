"""Learning before the first row: every predicate judges sampled rows, on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eddyline.fabric.knowledge import Knowledge
from eddyline.journal import Record
from eddyline.spark.common.progress import search_progress
from eddyline.spark.where.plan import RouterPlan
from eddyline.spark.where.worker import make_router

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE_ROWS_MAX = 20_000
TRAINING_ROWS_MAX = 2_000


def train_router(
    plan: RouterPlan, sample: DataFrame
) -> tuple[tuple[Knowledge, ...], list[Record]] | None:
    """Return what the sampled rows teach the router of a plan, and its decisions.

    Returns None if the sample is empty.
    """
    table = sample.limit(SAMPLE_ROWS_MAX).toArrow().combine_chunks()
    if table.num_rows == 0:
        return None
    rows = np.arange(table.num_rows)
    if len(rows) > TRAINING_ROWS_MAX:
        rng = np.random.default_rng(plan.options.seed)
        rows = np.sort(rng.choice(rows, TRAINING_ROWS_MAX, replace=False))
    router = make_router(plan, process="driver")
    batch = table.take(pa.array(rows)).combine_chunks().to_batches()[0]
    with search_progress("searching for classes of rows") as progress:
        router.train(batch.columns, batch.num_rows, progress)
    router.close()
    return router.snapshot(), list(router.journal)
