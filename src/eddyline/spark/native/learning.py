"""Learning about native conditions: what they drop, what they cost, and the best mesh."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.mesh import MeshOptions, Progress, SearchResult, TrainingSet, find_mesh

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIMING_ROWS_FIRST = 30_000
TIMING_ROWS_MAX = 1_000_000
TIMING_SECONDS = 0.04
TIMING_ROUNDS = 2


def learn_native(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    options: MeshOptions,
    seed: int | None,
    progress: Progress | None = None,
) -> tuple[SearchResult, TrainingSet, dict[str, str]]:
    """Evaluate all conditions on the sample, time each of them, and search for a mesh.

    Returns
    -------
    result
        Of the search.
    training
        The sample, with drops and costs.
    rejected
        Columns that cannot classify rows, and why.

    """
    answers = [
        F.coalesce(condition, F.lit(False)).alias(f"_{n}") for n, condition in enumerate(conditions)
    ]
    named = [column.alias(f"a{n}") for n, column in enumerate(attributes.values())]
    table = sample.select(*named, *answers).toArrow().combine_chunks()
    columns: dict[str, pa.Array] = {}
    rejected: dict[str, str] = {}
    for number, name in enumerate(attributes):
        values = _plain(table.column(number))
        why = screen_attribute(values)
        if why is None:
            columns[name] = values
        else:
            rejected[name] = why
    passed = np.stack(
        [
            _plain(table.column(len(named) + n)).to_numpy(zero_copy_only=False)
            for n in range(len(conditions))
        ],
        axis=1,
    ).astype(bool)
    cost_us = (
        time_conditions(sample, conditions, table.num_rows)
        if table.num_rows
        else [1.0] * len(conditions)
    )
    training = TrainingSet(columns, ~passed, cost_us)
    result = find_mesh(training, options, seed, progress)
    used = result.mesh.tree.attributes if result.mesh else []
    rejected |= {name: NOT_WORTH_ITS_COST for name in columns if name not in used}
    return result, training, rejected


def time_conditions(sample: DataFrame, conditions: Sequence[Column], rows: int) -> list[float]:
    """Return the cost of each condition, in microseconds a row, from runs over the sample.

    A run is repeated over more and more copies of the sample, until it takes long enough to stand
    out from the fixed time of a job.
    """
    spark = sample.sparkSession
    kept = F.broadcast(sample)

    def seconds(column: Column, copies: int) -> float:
        many = spark.range(copies).withColumnRenamed("id", "_copy").crossJoin(kept)
        best = float("inf")
        for _ in range(TIMING_ROUNDS):
            began = time.perf_counter()
            many.agg(F.sum(F.when(column, F.col("_copy")))).collect()
            best = min(best, time.perf_counter() - began)
        return best

    nothing: dict[int, float] = {}

    def cost_us(condition: Column) -> float:
        copies = max(1, TIMING_ROWS_FIRST // rows)
        while True:
            if copies not in nothing:
                nothing[copies] = seconds(F.col("_copy") >= 0, copies)
            spent = seconds(condition, copies) - nothing[copies]
            if spent > TIMING_SECONDS or copies * rows >= TIMING_ROWS_MAX:
                # Even the cheapest condition costs something.
                return max(1e-3, spent * 1e6 / (copies * rows))
            copies *= 4

    for condition in conditions:  # the JVM compiles code that has run several times
        seconds(condition, max(1, TIMING_ROWS_FIRST // rows))
    return [cost_us(condition) for condition in conditions]


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
