"""Joins of streams on Spark: an engine against the chain of joins that a user would write.

Every key has two rows in each micro-batch of each stream, and the window covers one and a half
micro-batches. Both sides store their results, and windows hold between all pairs of streams.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Sequence
from typing import Any

from eddyline.bench.harness import Bench, local_spark, ratio

ROWS_PER_BATCH = 20_000
WINDOW = "1500 MILLISECONDS"


def _write_batches(spark: Any, folder: str, streams: int, batches: int, rows: int) -> None:
    """Write files of streams in which every key has two rows in each micro-batch."""
    from pyspark.sql import functions as F

    for stream, batch in itertools.product(range(streams), range(batches)):
        frame = spark.range(rows).select(
            (F.col("id") % (rows // 2)).alias("k"),
            (F.col("id") + batch * rows).alias("v"),
            F.timestamp_seconds(F.lit(1000 + batch)).alias("ts"),
        )
        frame.coalesce(1).write.parquet(f"{folder}/{stream}", mode="append")


def _source(spark: Any, folder: str, stream: int) -> Any:
    reader = spark.readStream.schema("k long, v long, ts timestamp")
    return reader.option("maxFilesPerTrigger", 1).parquet(f"{folder}/{stream}")


def _seconds_per_batch(query: Any) -> float:
    """Return the median duration of the micro-batches of a streaming query, the first two apart."""
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    durations = [each["durationMs"]["triggerExecution"] / 1000 for each in progress]
    return float(statistics.median(durations[2:]))


def _run_engine(spark: Any, folder: str, streams: int, filters: Sequence[str]) -> tuple[float, Any]:
    """Run queries that join all streams; return seconds a micro-batch, and the engine's report."""
    from eddyline import Engine

    aliases = [f"s{n}" for n in range(streams)]
    equal = " AND ".join(f"{alias}.k = s0.k" for alias in aliases[1:])
    items = ", ".join(f"{alias}.v AS v{n}" for n, alias in enumerate(aliases))
    sql = f"SELECT {items} FROM {', '.join(aliases)} WHERE {equal}"
    with Engine(spark, tempfile.mkdtemp(), seed=0) as engine:
        for n, alias in enumerate(aliases):
            engine.stream(alias, _source(spark, folder, n), time="ts", delay="1 second")
        for n, text in enumerate(filters):
            engine.query(f"q{n}", f"{sql}{text} WINDOW {WINDOW}")
        started = engine.start(trigger="available now")
        started.process_all_available()
        return _seconds_per_batch(started.streaming_query), engine.queries()


def _run_chain(spark: Any, folder: str, streams: int) -> float:
    """Run the same join as a chain of Spark's own; return seconds a micro-batch."""
    from pyspark.sql import functions as F

    chain = None
    for n in range(streams):
        own = _source(spark, folder, n).withWatermark("ts", "1 second")
        own = own.select(
            F.col("k").alias(f"k{n}"),
            F.col("v").alias(f"v{n}"),
            F.col("ts").alias(f"ts{n}"),
            F.unix_micros("ts").alias(f"t{n}"),
        )
        if chain is None:
            chain = own
            continue
        within = [f"abs(t{n} - t{other}) < 1500000" for other in range(n)]
        bounds = (
            f"ts{n} BETWEEN ts0 - INTERVAL 1500 MILLISECONDS AND ts0 + INTERVAL 1500 MILLISECONDS"
        )
        condition = " AND ".join([f"k{n} = k0", bounds, *within])
        chain = chain.join(own, F.expr(condition)).drop(f"ts{n}")
    assert chain is not None
    writer = chain.select(*[f"v{n}" for n in range(streams)]).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    query = writer.option("path", tempfile.mkdtemp()).trigger(availableNow=True).start()
    query.awaitTermination()
    return _seconds_per_batch(query)


def against_spark(bench: Bench) -> None:
    """Compare an engine with a chain of Spark's own joins, for 2 and 4 streams."""
    spark = local_spark()
    rows = 4_000 if bench.quick else ROWS_PER_BATCH
    for streams in (2, 4):
        with tempfile.TemporaryDirectory() as folder:
            _write_batches(spark, folder, streams, 6, rows)
            seconds: dict[str, list[float]] = {"engine": [], "chain": []}
            with bench.progress(f"{streams} streams", 2 * bench.rounds) as advance:
                for _ in range(bench.rounds):
                    seconds["engine"].append(_run_engine(spark, folder, streams, [""])[0])
                    advance()
                    seconds["chain"].append(_run_chain(spark, folder, streams))
                    advance()
        bench.add(
            f"{streams} streams on one key, {rows:,} rows each: Spark's chain / engine, time",
            ratio(seconds["chain"], seconds["engine"]),
            "x",
            f"{statistics.median(seconds['engine']):.2f} s a micro-batch",
        )


def many_queries(bench: Bench) -> None:
    """Compare 16 queries, whose results together are those of one, with that one."""
    spark = local_spark()
    rows = 4_000 if bench.quick else ROWS_PER_BATCH
    many = [f" AND s0.v % 16 = {n}" for n in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        _write_batches(spark, folder, 2, 6, rows)
        seconds: dict[str, list[float]] = {"one": [], "many": []}
        with bench.progress("16 queries", 2 * bench.rounds) as advance:
            for _ in range(bench.rounds):
                for name, filters in {"one": [""], "many": many}.items():
                    seconds[name].append(_run_engine(spark, folder, 2, filters)[0])
                    advance()
    bench.add(
        "16 queries with different filters over one join / 1 query with all their results, time",
        ratio(seconds["many"], seconds["one"]),
        "x",
        f"{statistics.median(seconds['one']):.2f} s a micro-batch",
    )
