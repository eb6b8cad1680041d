"""Joins of streams on Spark: an engine against the chain of joins that a user would write.

Every key has two rows in each micro-batch of each stream, and the window covers one and a half
micro-batches. Both sides store their results, and windows hold between all pairs of streams.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eddyline.bench.harness import Bench, local_spark, mean_of, ratio
from eddyline.spark.common.session_settings import session_settings

ROWS_PER_BATCH = 20_000
BATCHES = 8
WARM_UP_BATCHES = 4
#: So many times the rows are in the larger micro-batches.
LARGER = 5
WINDOW = "1500 MILLISECONDS"
#: Numbers of queries over the same streams.
MANY = (4, 16, 64)
_STATE = "spark.sql.streaming.stateStore"
_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: Kinds of Spark's state store.
STORES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "RocksDB": {
        f"{_STATE}.providerClass": _PROVIDER,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "4",
    },
}


def write_batches(spark: Any, folder: str, streams: int, batches: int, rows: int) -> None:
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


@dataclass
class Measured:
    """What a streaming query came to.

    Parameters
    ----------
    seconds
        Median duration of its micro-batches, those apart in which Spark warms up.
    state_rows, state_bytes
        State after its last micro-batch with rows.
    results
        Rows that it stored.

    """

    seconds: float
    state_rows: int
    state_bytes: int
    results: int


def batch_seconds(query: Any) -> list[float]:
    """Return the durations of the micro-batches of a streaming query that had rows."""
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    return [each["durationMs"]["triggerExecution"] / 1000 for each in progress]


def median_seconds(query: Any, warm_up_batches: int = WARM_UP_BATCHES) -> float:
    """Return the median duration of the micro-batches after those in which Spark warms up."""
    durations = batch_seconds(query)
    return float(statistics.median(durations[warm_up_batches:] or durations[-1:]))


def run_engine(spark: Any, folder: str, streams: int, filters: Sequence[str]) -> Measured:
    """Run queries that join all streams, one for each filter."""
    from eddyline import Engine

    aliases = [f"s{n}" for n in range(streams)]
    equal = " AND ".join(f"{alias}.k = s0.k" for alias in aliases[1:])
    items = ", ".join(f"{alias}.v AS v{n}" for n, alias in enumerate(aliases))
    sql = f"SELECT {items} FROM {', '.join(aliases)} WHERE {equal}"
    with tempfile.TemporaryDirectory() as path, Engine(spark, path, seed=0) as engine:
        for n, alias in enumerate(aliases):
            engine.stream(alias, _source(spark, folder, n), time="ts", delay="1 second")
        queries = {f"q{n}": f"{sql}{text} WINDOW {WINDOW}" for n, text in enumerate(filters)}
        engine.add(queries)
        run = engine.start(trigger="available now")
        run.process_all_available()
        joins = run.batches()[-1].joins
        assert joins is not None, "no micro-batch joined anything"
        seconds = median_seconds(run.streaming_query)
        results = sum(state.matched for state in engine.queries())
        return Measured(seconds, joins.state_rows, joins.state_bytes, results)


def run_chain(spark: Any, folder: str, streams: int, store: Mapping[str, str]) -> Measured:
    """Run the same join as a chain of Spark's own, with a kind of state store."""
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
    with tempfile.TemporaryDirectory() as path, session_settings(spark, store):
        writer = chain.select(*[f"v{n}" for n in range(streams)]).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{path}/checkpoint")
        query = writer.option("path", f"{path}/results").trigger(availableNow=True).start()
        query.awaitTermination()
        last = [each for each in query.recentProgress if each["numInputRows"]][-1]
        operators = last["stateOperators"]
        return Measured(
            median_seconds(query),
            sum(operator["numRowsTotal"] for operator in operators),
            sum(operator["memoryUsedBytes"] for operator in operators),
            spark.read.parquet(f"{path}/results").count(),
        )


def against_spark(bench: Bench) -> None:
    """Compare an engine with a chain of Spark's own joins, for 2 and 4 streams.

    Two streams also have larger micro-batches, to tell the cost of rows from the fixed cost of a
    micro-batch. Spark's chain has the state store that is faster in a first run, which is its
    first round.
    """
    spark = local_spark()
    small = 4_000 if bench.quick else ROWS_PER_BATCH
    for streams, rows in ((2, small), (2, LARGER * small), (4, small)):
        with tempfile.TemporaryDirectory() as folder:
            write_batches(spark, folder, streams, BATCHES, rows)
            engines: list[Measured] = []
            chains: list[Measured] = []
            total = len(STORES) - 1 + 3 * bench.rounds
            with bench.progress(f"{streams} streams, {rows:,} rows", total) as advance:
                tried: dict[str, Measured] = {}
                for name, store in STORES.items():
                    tried[name] = run_chain(spark, folder, streams, store)
                    advance()
                best = min(tried, key=lambda name: tried[name].seconds)
                chains.append(tried[best])
                for number in range(bench.rounds):
                    if number:
                        chains.append(run_chain(spark, folder, streams, STORES[best]))
                        advance()
                    for _ in range(2):
                        engines.append(run_engine(spark, folder, streams, [""]))
                        advance()
        seconds = [own.seconds for own in engines]
        by_round = mean_of(seconds[::2], seconds[1::2])
        bench.add(
            f"{streams} streams on one key, {rows:,} rows each: Spark's chain / engine, time",
            ratio([own.seconds for own in chains], by_round),
            "x",
            f"{statistics.median(seconds):.2f} s a micro-batch; control "
            f"{ratio(seconds[::2], seconds[1::2]):.2f}; Spark's {best} store",
        )
        kept = engines[-1].state_rows
        bench.add(
            f"{streams} streams, {rows:,} rows each: state rows, engine / rows of its three newest "
            "micro-batches",
            kept / (3 * streams * rows),
            "x",
            f"Spark {chains[-1].state_rows / kept:.1f} times as many",
        )
        bench.add(
            f"{streams} streams, {rows:,} rows each: state bytes, Spark's chain / engine",
            chains[-1].state_bytes / engines[-1].state_bytes,
            "x",
            f"{engines[-1].state_bytes / 1e6:.1f} MB",
        )


def many_queries(bench: Bench) -> None:
    """Compare several queries, whose results together are those of one, with that one."""
    spark = local_spark()
    rows = 4_000 if bench.quick else ROWS_PER_BATCH
    filters = {0: [""], 1: [""]} | {count: _parts(rows // 2, count) for count in MANY}
    seconds: dict[int, list[float]] = {count: [] for count in filters}
    with tempfile.TemporaryDirectory() as folder:
        write_batches(spark, folder, 2, BATCHES, rows)
        with bench.progress("many queries", len(filters) * bench.rounds) as advance:
            for _ in range(bench.rounds):
                for count, own in filters.items():
                    seconds[count].append(run_engine(spark, folder, 2, own).seconds)
                    advance()
    for count in MANY:
        bench.add(
            f"{count} queries with different filters over one join / 1 query with all their "
            "results, time",
            ratio(seconds[count], seconds[1]),
            "x",
            f"{statistics.median(seconds[1]):.2f} s a micro-batch; control "
            f"{ratio(seconds[0], seconds[1]):.2f}",
        )


def _parts(keys: int, count: int) -> list[str]:
    """Return filters that each choose an equal part of the keys."""
    bounds = [keys * n // count for n in range(count + 1)]
    return [f" AND s0.k >= {a} AND s0.k < {b}" for a, b in itertools.pairwise(bounds)]
