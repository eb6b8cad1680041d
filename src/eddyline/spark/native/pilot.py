"""Sampled rows of a DataFrame, to learn about native conditions from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.arrays import FloatArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PILOT_ROWS = 2_000
#: The smallest k of many random numbers lie below k / N, and this factor is far above what they
#: vary by: nine standard errors at 2,000 rows.
RANK_MARGIN = 1.25
#: A margin for samples that are so small that the factor is not enough.
RANK_MARGIN_ROWS = 60
_ROW_NUMBER = 2**33 - 1  # the bits of `monotonically_increasing_id` that count within a partition
HELD_OUT_SHARE = 1 / 3
GLIMPSE_ROWS, GLIMPSE_SHARE = 500, 0.1
#: Spark assumes that sources of unknown size are larger than anything, and multiplies at joins.
UNKNOWN_BYTES = 2**40
RANK = "__eddyline_rank"
ARRIVAL = "__eddyline_arrival"
ROW_NUMBER = "__eddyline_row_number"
HELD_OUT = "__eddyline_held_out"


def pilot_sample(
    df: DataFrame,
    rows: int = PILOT_ROWS,
    seed: int = 0,
    for_future_rows: bool = False,
    keep_rank: bool = False,
    is_kept: bool = True,
) -> DataFrame:
    """Return rows of a batch DataFrame, picked at random from all of it; unpersist it after use.

    This reads the DataFrame once. The first rows would cost less, but data that lies in arrival
    order differs between the beginning and the end.

    If what is learnt is meant for other rows, those to come, the sample is in arrival order, so
    that a column that grows with it is recognised and excluded. Within one DataFrame such a column
    may well classify rows. With `keep_rank` the sample has the column `RANK`, for `estimate_rows`.
    Without `is_kept` Spark reads the DataFrame again whenever the sample is used.
    """
    ranked = _with_small_ranks(df, rows, seed)
    if for_future_rows:
        ranked = ranked.withColumn(ARRIVAL, F.monotonically_increasing_id())
    sample = ranked.orderBy(RANK).limit(rows)
    if for_future_rows:
        sample = sample.orderBy(ARRIVAL).drop(ARRIVAL)
    sample = sample if keep_rank else sample.drop(RANK)
    return sample.persist() if is_kept else sample


def _with_small_ranks(df: DataFrame, rows: int, seed: int) -> DataFrame:
    """Return the rows with random ranks, without those whose ranks cannot be among the smallest.

    Of the first i rows of a partition, only those whose rank is about k / i or less can be among
    the k smallest of all. Sorting copies each row that it sees, its texts included; of a million
    rows, it now sees some twenty thousand, and what it returns is the same.
    """
    number = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_NUMBER))
    numbered = df.withColumns({RANK: F.rand(seed), ROW_NUMBER: number})
    bound = max(RANK_MARGIN * rows, rows + RANK_MARGIN_ROWS)
    return numbered.filter(F.col(RANK) * F.col(ROW_NUMBER) < bound).drop(ROW_NUMBER)


def estimate_rows(ranks: FloatArray) -> float:
    """Return about how many rows the DataFrame has that a pilot was taken from.

    The pilot has the rows with the smallest of numbers between 0 and 1, one for each row: of N
    rows, the k-th smallest is k / N on average.

    Examples
    --------
    >>> import numpy as np
    >>> pilot = pilot_sample(spark.range(50_000), rows=2_000, keep_rank=True)
    >>> ranks = np.array([row[0] for row in pilot.select(RANK).collect()])
    >>> 45_000 < estimate_rows(ranks) < 55_000
    True

    """
    return len(ranks) / float(ranks.max()) if len(ranks) else 0.0


def first_rows(df: DataFrame) -> DataFrame:
    """Return the first rows of a batch DataFrame, which are read fast; unpersist it after use."""
    return df.limit(PILOT_ROWS).persist()


def glimpse(df: DataFrame) -> DataFrame:
    """Return some of the first rows of a batch DataFrame, one in ten, which are read fast.

    Rows that lie together may be alike, so more are read than are returned. Partitions are read one
    after the other until there are enough.
    """
    return df.filter(F.rand(2) < GLIMPSE_SHARE).coalesce(1).limit(GLIMPSE_ROWS)


def bytes_of(df: DataFrame) -> int | None:
    """Return about how many bytes a DataFrame reads; None if Spark does not know.

    Examples
    --------
    >>> bytes_of(spark.range(1_000))
    8000

    """
    if not hasattr(df, "_jdf"):
        return None
    size = int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return size if size < UNKNOWN_BYTES else None


def with_held_out(sample: DataFrame) -> DataFrame:
    """Return sampled rows with a flag for those that a mesh is not made from but judged on."""
    return sample.withColumn(HELD_OUT, F.rand(1) < HELD_OUT_SHARE)
