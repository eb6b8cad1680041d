"""Event times that Spark observes while it reads a micro-batch."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eddyline.spark.engine.event_times import EventTimes
from eddyline.spark.engine.stream_info import StreamInfo

SCHEMA = StructType().add("ts", "timestamp")


def observe(spark: Any, newest_us: int) -> tuple[dict[str, Any], int]:
    """Return what is observed of ten rows, and how often Spark compiled code for that."""
    stream = StreamInfo(0, "s", SCHEMA, "UTC", "ts", delay_us=1_000_000)
    observed = Observation()
    seconds = F.timestamp_seconds(F.col("id") + 100).alias("ts")
    rows = spark.range(0, 10, 1, 1).select(F.struct(seconds).alias("s0"))
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    before = compiled.getCount()
    metrics = EventTimes([stream], {"s": newest_us}).metrics()
    rows.observe(observed, *metrics).filter(F.col("s0").isNotNull()).write.format("noop").mode(
        "overwrite"
    ).save()
    return observed.get, compiled.getCount() - before


def test_late_rows_are_counted_without_compiling_for_each_micro_batch(spark: Any) -> None:
    first, _ = observe(spark, 104_000_000)
    assert first == {"newest_0": 109_000_000, "late_0": 3, "rows": 10}
    second, compiled = observe(spark, 107_000_000)
    assert second == {"newest_0": 109_000_000, "late_0": 6, "rows": 10}
    assert compiled == 0
