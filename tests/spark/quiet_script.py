"""Run by test_quiet in a process of its own, whose stderr is the workers' too."""

from __future__ import annotations

from pyspark.sql import SparkSession

import eddyline as el

if __name__ == "__main__":
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    f = el.where(
        el.udf(lambda i: i % 2 == 0, "id", name="even"),
        el.udf(lambda i: i % 3 == 0, "id", name="third"),
    )
    filtered = session.range(0, 200_000, 1, 4).transform(f)
    filtered.show(3)
    filtered.take(2)
    filtered.limit(5).collect()
    filtered.isEmpty()
    session.stop()
