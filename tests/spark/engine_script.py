"""An engine in a process of its own, to be killed; arguments: source, engine, number of query."""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

import eddyline as el

SCHEMA = "id long, a int"
TEXTS = [f"SELECT id, a FROM events WHERE a % {n + 2} = 0 AND id >= {n}" for n in range(6)]


def open_engine(spark: Any, source: str, path: str) -> el.Engine:
    engine = el.Engine(spark, path)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    engine.stream("events", reader.parquet(source))
    return engine


def main(source: str, path: str, number: int) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    engine = open_engine(spark, source, path)
    engine.query(f"q{number}", TEXTS[number])
    run = engine.start("10 milliseconds")
    print("running", flush=True)
    run.await_termination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
