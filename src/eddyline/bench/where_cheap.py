"""Predicates of less than a microsecond: nothing to gain, so `el.where` should cost nothing.

The table has columns that no predicate needs. Reading them into Python, in case they tell classes
of rows apart, would cost more than the predicates.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

from eddyline.bench.cpu_time import cpu_seconds
from eddyline.bench.harness import Bench, local_spark, mean_of, ratio, to_noop
from eddyline.spark.common.predicates import udf
from eddyline.spark.where.where import where

POLICIES = (
    "auto",
    "as_written",
    "agreedy",
    "sweep",
    "independent",
    "local_swaps",
    "lottery",
    "content",
    "mesh",
)


def _is_odd(a: int) -> bool:
    return a % 2 == 1


def _is_large(b: int) -> bool:
    return b > 300


def _is_rare(a: int, b: int) -> bool:
    return a * b % 5 != 0


PREDICATES: dict[Callable[..., bool], tuple[str, ...]] = {
    _is_odd: ("a",),
    _is_large: ("b",),
    _is_rare: ("a", "b"),
}


def cheap(bench: Bench, folder: str) -> None:
    """Compare the CPU time of every policy with that of Spark's own filter."""
    from pyspark.sql import functions as F

    spark = local_spark()
    rows = 50_000 if bench.quick else 2_000_000
    path = str(pathlib.Path(folder) / "cheap")
    others = [f"concat('{name}', id % {n}) AS {name}" for n, name in enumerate("cdef", start=10)]
    table = spark.range(rows).selectExpr("id", "id % 997 AS a", "id % 1009 AS b", *others)
    table.write.parquet(path)
    df = spark.read.parquet(path)
    conditions = [F.udf(f, "boolean")(*columns) for f, columns in PREDICATES.items()]
    given = [udf(f, *columns) for f, columns in PREDICATES.items()]

    def plain() -> Any:
        kept = df
        for condition in conditions:
            kept = kept.filter(condition)
        return kept

    def adaptive(policy: str) -> Callable[[], Any]:
        return lambda: df.transform(where(*given, policy=policy, seed=bench.seed))

    expected = plain().count()
    variants = {policy: to_noop(adaptive(policy)) for policy in POLICIES}
    for policy in POLICIES:
        counted = adaptive(policy)().count()
        assert counted == expected, f"{policy}: {counted} rows instead of {expected}"
    has_cpu = cpu_seconds() is not None
    clock = (lambda: cpu_seconds() or 0.0) if has_cpu else time.perf_counter
    runs = {"plain": to_noop(plain), **variants, "again": to_noop(plain)}
    seconds = bench.in_turn("cheap predicates", runs, clock=clock)
    both = mean_of(seconds["plain"], seconds["again"])
    control = ratio(seconds["again"], seconds["plain"])
    about = f"three predicates of less than 1 us, {rows:,} rows: "
    about += "CPU time" if has_cpu else "time"
    for policy in POLICIES:
        bench.add(
            f"{about}, {policy} / Spark's filter",
            ratio(seconds[policy], both),
            "x",
            f"udf() in df.filter; control {control:.2f}; target at most 1.05",
        )
    bench.add(
        f"{about}, auto / agreedy",
        ratio(seconds["auto"], seconds["agreedy"]),
        "x",
        "target at most 1.1",
    )
