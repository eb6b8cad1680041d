"""What a micro-batch costs beyond its results: with nothing to output, and with much state."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

from eddyline.bench.cpu_time import cpu_seconds
from eddyline.bench.harness import Bench, local_spark, ratio
from eddyline.bench.joins_spark import median_seconds

ROWS_PER_BATCH = 20_000
BATCHES = 12
STATE_ROWS = (10_000, 1_000_000)
NEW_ROWS = 1_000
_SCHEMA = "k long, v long, ts timestamp"


def _write(spark: Any, folder: str, stream: int, keys: str, rows: int, second: int) -> None:
    """Write one file of a stream."""
    from pyspark.sql import functions as F

    frame = spark.range(rows).select(
        F.expr(keys).alias("k"),
        F.col("id").alias("v"),
        F.timestamp_seconds(F.lit(1000 + second)).alias("ts"),
    )
    frame.coalesce(1).write.parquet(f"{folder}/{stream}", mode="append")


def _sources(spark: Any, folder: str) -> list[Any]:
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
    return [reader.parquet(f"{folder}/{stream}") for stream in range(2)]


def _run_engine(spark: Any, folder: str, window: str) -> float:
    """Join two streams; return the median duration of a micro-batch."""
    from eddyline import Engine

    with tempfile.TemporaryDirectory() as path, Engine(spark, path, seed=0) as engine:
        for number, source in enumerate(_sources(spark, folder)):
            engine.stream(f"s{number}", source, time="ts", delay="1 second")
        engine.query("q", f"SELECT s0.v, s1.v AS w FROM s0, s1 WHERE s0.k = s1.k WINDOW {window}")
        run = engine.start(trigger="available now")
        run.process_all_available()
        return median_seconds(run.streaming_query)


def _run_empty(spark: Any, folder: str, handle: Callable[[Any], None]) -> None:
    """Read two streams with a `foreachBatch` that joins nothing."""
    first, second = _sources(spark, folder)
    with tempfile.TemporaryDirectory() as path:
        query = (
            first.unionAll(second)
            .writeStream.foreachBatch(lambda df, _: handle(df))
            .option("checkpointLocation", path)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def nothing_to_output(bench: Bench) -> None:
    """Compare the CPU time of a join without results with that of a `foreachBatch` that is empty.

    CPU time of this process, the JVM and all Python workers, over all micro-batches.
    """
    if cpu_seconds() is None:
        bench.console.print("CPU time of other processes is read from /proc, which is not here")
        return
    spark = local_spark()
    rows = ROWS_PER_BATCH // 2
    runs: dict[str, Callable[[str], object]] = {
        "engine": lambda folder: _run_engine(spark, folder, "2 SECONDS"),
        "empty": lambda folder: _run_empty(spark, folder, lambda df: None),
        "read": lambda folder: _run_empty(
            spark, folder, lambda df: df.write.format("noop").mode("overwrite").save()
        ),
    }
    spent: dict[str, list[float]] = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as folder:
        for stream, batch in itertools.product(range(2), range(BATCHES)):
            _write(spark, folder, stream, f"id * 2 + {stream}", rows, batch)
        with bench.progress("nothing to output", (1 + bench.rounds) * len(runs)) as advance:
            for turn in range(1 + bench.rounds):
                for name, run in runs.items():
                    before = cpu_seconds()
                    run(folder)
                    after = cpu_seconds()
                    assert before is not None
                    assert after is not None
                    if turn:  # the first one warms up
                        spent[name].append(after - before)
                    advance()
    for name, words in (("empty", "an empty foreachBatch"), ("read", "one that reads the rows")):
        bench.add(
            f"{ROWS_PER_BATCH:,} rows a micro-batch, nothing to output: engine / {words}, CPU",
            ratio(spent["engine"], spent[name]),
            "x",
            f"{statistics.median(spent[name]) / BATCHES:.2f} s a micro-batch; control "
            f"{max(spent['engine']) / min(spent['engine']):.2f}",
        )


def much_state(bench: Bench) -> None:
    """Compare micro-batches of few rows against much state and against little, equal matches."""
    spark = local_spark()
    seconds: dict[int, list[float]] = {rows: [] for rows in STATE_ROWS}
    sizes = [rows // 10 for rows in STATE_ROWS] if bench.quick else STATE_ROWS
    with tempfile.TemporaryDirectory() as folder:
        for rows, size in zip(STATE_ROWS, sizes, strict=True):
            own = f"{folder}/{rows}"
            _write(spark, own, 0, "id", size, 0)
            _write(spark, own, 1, "-1 - id", NEW_ROWS, 0)
            for batch in range(1, BATCHES):
                _write(spark, own, 0, f"-{NEW_ROWS} * {batch} - 1 - id", NEW_ROWS, batch)
                _write(spark, own, 1, "id", NEW_ROWS, batch)
        with bench.progress("much state", 2 * bench.rounds * len(STATE_ROWS)) as advance:
            for _ in range(2 * bench.rounds):
                for rows in STATE_ROWS:
                    seconds[rows].append(_run_engine(spark, f"{folder}/{rows}", "1 HOUR"))
                    advance()
    little, much = (seconds[rows] for rows in STATE_ROWS)
    bench.add(
        f"{NEW_ROWS:,} rows against {sizes[1]:,} rows of state / {sizes[0]:,}: micro-batch, time",
        ratio(much, little),
        "x",
        f"{statistics.median(little):.2f} s a micro-batch; control "
        f"{ratio(little[::2], little[1::2]):.2f}",
    )
