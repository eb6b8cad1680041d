"""Sampled rows of a DataFrame, to learn about native conditions from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PILOT_ROWS = 2_000
HELD_OUT_SHARE = 1 / 3
ARRIVAL = "__eddyline_arrival"
HELD_OUT = "__eddyline_held_out"


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
    if not for_future_rows:
        return df.orderBy(F.rand(seed)).limit(rows).persist()
    numbered = df.withColumn(ARRIVAL, F.monotonically_increasing_id())
    return numbered.orderBy(F.rand(seed)).limit(rows).orderBy(ARRIVAL).drop(ARRIVAL).persist()


def first_rows(df: DataFrame, rows: int = PILOT_ROWS) -> DataFrame:
    """Return the first rows of a batch DataFrame, which are read fast; unpersist it after use."""
    return df.limit(rows).persist()


def with_held_out(sample: DataFrame, seed: int = 1) -> DataFrame:
    """Return sampled rows with a flag for those that a mesh is not made from but judged on."""
    return sample.withColumn(HELD_OUT, F.rand(seed) < HELD_OUT_SHARE)
