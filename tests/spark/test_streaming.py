"""Streams: random batch cuts, a restart from a checkpoint, reports while the stream runs."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import OrderChanged
from tests.spark.cases import SCHEMA, by_spark, candidates, ids, random_rows


def write_in_cuts(spark, rows: list[tuple], folder: str, rng: random.Random) -> None:
    """Write rows as files of random sizes, in order."""
    begin = 0
    while begin < len(rows):
        end = begin + rng.randint(1, len(rows) // 3)
        spark.createDataFrame(rows[begin:end], SCHEMA).coalesce(1).write.mode("append").parquet(
            folder
        )
        begin = end


def run_stream(spark, f, folder) -> None:
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    query = (
        source.parquet(str(folder / "in"))
        .transform(f)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.parametrize("seed", [0, *[pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)]])
def test_random_cuts_and_a_restart_give_the_rows_of_batch(spark, tmp_path, seed: int) -> None:
    rng = random.Random(50 + seed)
    rows = random_rows(seed, 900)
    chosen = rng.sample(candidates(spark), 3)
    predicates = [mine for mine, _ in chosen]
    write_in_cuts(spark, rows[:500], str(tmp_path / "in"), rng)
    run_stream(spark, el.where(*predicates, seed=seed), tmp_path)
    # Another process would make its own `where` of the same predicates.
    write_in_cuts(spark, rows[500:], str(tmp_path / "in"), rng)
    run_stream(spark, el.where(*predicates, seed=seed), tmp_path)
    expected = by_spark(spark.createDataFrame(rows, SCHEMA), [theirs for _, theirs in chosen])
    assert ids(spark.read.schema(SCHEMA).parquet(str(tmp_path / "out"))) == ids(expected)


def test_the_report_is_of_all_micro_batches_and_workers_keep_what_they_learnt(
    spark, tmp_path
) -> None:
    spark.range(0, 40_000, 1, 8).write.parquet(str(tmp_path / "in"))
    f = el.where(
        el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
        el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
        seed=0,
    )
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    query = (
        source.parquet(str(tmp_path / "in"))
        .transform(f)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        running = f.report()
        assert running.rows == 40_000
        assert running.kept == 4_000
        assert running.orders[0][0][0] == "drops_most"
    finally:
        query.stop()
    assert f.report().rows == 40_000
    # Eight micro-batches, but each worker had to find the order only once.
    per_worker: dict[str, int] = {}
    for record in f.journal().of(OrderChanged):
        if record.event.before[0] == "passes_most":
            per_worker[record.process] = per_worker.get(record.process, 0) + 1
    assert per_worker
    assert set(per_worker.values()) == {1}


def test_inside_foreach_batch(spark, tmp_path) -> None:
    spark.range(0, 1_000, 1, 4).write.parquet(str(tmp_path / "in"))
    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"), seed=0)
    counts: list[int] = []
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    query = (
        source.parquet(str(tmp_path / "in"))
        .writeStream.foreachBatch(lambda df, _: counts.append(df.transform(f).count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sum(counts) == 500
    assert f.report().rows == 1_000


def test_a_failing_predicate_fails_the_stream_with_its_name(spark, tmp_path) -> None:
    spark.range(0, 10, 1, 1).write.parquet(str(tmp_path / "in"))
    f = el.where(el.udf(lambda i: 1 / (i - 5) > -99, "id", name="inverse"))
    query = (
        spark.readStream.schema("id long")
        .parquet(str(tmp_path / "in"))
        .transform(f)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="predicate 'inverse' raised ZeroDivisionError"):
        query.awaitTermination()


def test_watermarks_and_aggregates_behind_the_filter(spark, tmp_path) -> None:
    spark.range(0, 100, 1, 2).select(
        "id", F.timestamp_seconds(F.col("id")).alias("ts")
    ).write.parquet(str(tmp_path / "in"))
    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"))
    query = (
        spark.readStream.schema("id long, ts timestamp")
        .parquet(str(tmp_path / "in"))
        .transform(f)
        .withWatermark("ts", "10 seconds")
        .groupBy(F.window("ts", "50 seconds"))
        .count()
        .writeStream.format("memory")
        .queryName("windows")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [r["count"] for r in spark.table("windows").collect()] == [25, 25]
