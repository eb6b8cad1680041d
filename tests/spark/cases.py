"""Random data, and predicates each given twice: for el.where and as Spark's own condition."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

import eddyline as el

SCHEMA = "id int, a int, b double, s string, t timestamp, d date, flag boolean, xs array<int>"


def random_rows(seed: int, count: int) -> list[tuple]:
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    start = datetime.datetime(2024, 1, 1)
    return [
        (
            i,
            maybe(rng.randint(-5, 20)),
            maybe(rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), -3.25])),
            maybe(rng.choice(["", "a", "ab", "Ünïcode", "x" * 50])),
            maybe(start + datetime.timedelta(hours=rng.randint(0, 2000), microseconds=1)),
            maybe(datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randint(0, 100))),
            maybe(rng.random() < 0.5),
            maybe([rng.randint(0, 3) for _ in range(rng.randint(0, 3))]),
        )
        for i in range(count)
    ]


# Each entry: a predicate for el.where, and the same as Spark's own condition.


def row(function, *columns):
    return el.udf(function, *columns), F.udf(function, "boolean")(*columns)


def spark_udf(function, *columns):
    return el.udf(function, *columns), function(*columns)


@F.pandas_udf(BooleanType())
def pandas_positive(a: pd.Series) -> pd.Series:
    return a > 0


@F.pandas_udf(BooleanType())
def pandas_early(t: pd.Series, d: pd.Series) -> pd.Series:
    return (t < pd.Timestamp("2024-02-10")) | d.isna()


@F.arrow_udf(BooleanType())
def arrow_short(s: pa.Array) -> pa.Array:
    return pc.less(pc.utf8_length(s), 3)


@F.arrow_udf(BooleanType())
def arrow_not_nan(b: pa.Array) -> pa.Array:
    return pc.invert(pc.is_nan(b))


def candidates(spark) -> list[tuple[Any, Any]]:
    def arrow_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for a in batches:
            yield pc.not_equal(a, 7)

    def pandas_batches(
        batches: Iterator[tuple[pd.Series, pd.Series]],
    ) -> Iterator[pd.Series]:
        for a, flag in batches:
            yield (a.fillna(0) % 2 == 0) | (flag == True)  # noqa: E712

    arrow_iterator = F.arrow_udf(arrow_batches, "boolean")
    pandas_iterator = F.pandas_udf(pandas_batches, "boolean")
    keys = spark.createDataFrame([(1,), (3,), (5,), (None,), (20,)], "a int")
    pairs = spark.createDataFrame(
        [("a", True), ("ab", False), (None, True), ("", None)], "name string, flag boolean"
    )
    nan_keys = spark.createDataFrame([(float("nan"),), (0.0,)], "b double")
    return [
        ("a > 3", F.expr("a > 3")),
        (F.col("s").isNotNull(), F.col("s").isNotNull()),
        row(lambda a: None if a is None else a % 3 != 0, "a"),
        row(lambda s, flag: bool(s) or flag, "s", "flag"),
        row(lambda b: b is not None and not math.isnan(b), "b"),
        row(lambda t: t is None or t.hour < 20, "t"),
        row(lambda d: d is not None and d.day > 5, "d"),
        row(lambda xs: xs is not None and 2 not in xs, "xs"),
        spark_udf(F.udf(lambda a: a, "boolean"), "a"),
        spark_udf(F.udf(lambda a: 1 if a else 0, "boolean", useArrow=False), "a"),
        spark_udf(F.udf(lambda s: s != "a", "boolean", useArrow=False), "s"),
        spark_udf(pandas_positive, "a"),
        spark_udf(pandas_early, "t", "d"),
        spark_udf(arrow_short, "s"),
        spark_udf(arrow_not_nan, "b"),
        spark_udf(arrow_iterator, "a"),
        spark_udf(pandas_iterator, "a", "flag"),
        (el.lookup(keys, on="a"), ("left_semi", keys, ["a"])),
        (el.lookup(keys, on="a", anti=True), ("left_anti", keys, ["a"])),
        (el.lookup(nan_keys, on="b", anti=True), ("left_anti", nan_keys, ["b"])),
        (
            el.lookup(pairs, on={"s": "name", "flag": "flag"}),
            ("left_semi", pairs.withColumnRenamed("name", "s"), ["s", "flag"]),
        ),
    ]


def by_spark(df, conditions: list[Any]):
    for condition in conditions:
        if isinstance(condition, tuple):
            how, table, keys = condition
            df = df.join(table, keys, how)
        else:
            df = df.filter(condition)
    return df


def ids(df) -> list[int]:
    return sorted(r["id"] for r in df.select("id").collect())


def jobs_so_far(spark: Any) -> int:
    """Return the number of jobs that Spark has begun; its status store forgets all but 1,000."""
    return spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
