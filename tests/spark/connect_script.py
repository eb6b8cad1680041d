"""Run by test_connect in a process of its own: one process has either classic or Connect."""

from __future__ import annotations

import json
import pathlib
import random
import sys
import tempfile
import threading

from pyspark.sql import SparkSession

import eddyline as el


def batch(spark) -> list[str]:
    # PySpark makes a UDF for the kind of session there is: only now.
    from tests.spark.cases import SCHEMA, by_spark, candidates, ids, random_rows

    wrong = []
    for seed in range(4):
        rng = random.Random(1000 + seed)
        df = spark.createDataFrame(random_rows(seed, 600), SCHEMA).repartition(2)
        chosen = rng.sample(candidates(spark), 4)
        f = el.where(*[mine for mine, _ in chosen], seed=seed)
        if ids(df.transform(f)) != ids(by_spark(df, [theirs for _, theirs in chosen])):
            wrong.append(str([mine for mine, _ in chosen]))
    return wrong


def report(spark) -> dict:
    f = el.where(
        el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
        el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
        seed=0,
    )
    spark.range(0, 20_000, 1, 2).transform(f).count()
    return f.report().to_dict()


def stream(spark) -> dict:
    folder = pathlib.Path(tempfile.mkdtemp())
    spark.range(0, 9_000, 1, 3).write.parquet(str(folder / "in"))
    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"), "id < 6000", seed=0)
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
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
    return {
        "kept": spark.read.parquet(str(folder / "out")).count(),
        "seen": f.report().rows,
        "keeps_alive": [t.name for t in threading.enumerate() if _keeps_alive(t)],
    }


def _keeps_alive(thread: threading.Thread) -> bool:
    """Whether a thread that calls listeners keeps the program from ending."""
    return "event_handler" in thread.name and not thread.daemon


def classes(spark) -> dict:
    """Rows of two kinds, each dropped by another condition: in the JVM and in Python."""
    df = spark.range(0, 8_000, 1, 2).selectExpr(
        "id",
        "if(id % 2 = 0, 'even', 'odd') AS kind",
        "concat(id, if(id % 2 = 0 AND id % 20 != 0, ' drop', ' keep')) AS a",
        "concat(id, if(id % 2 = 1 AND id % 21 != 0, ' drop', ' keep')) AS b",
    )
    conditions = [
        f"length(sha2(repeat({n}, 20), 512)) > 0 and right({n}, 4) = 'keep'" for n in "ab"
    ]
    expected = sorted(row.id for row in df.filter(" AND ".join(conditions)).collect())
    patient = el.MeshOptions(planning_s_max=None)
    native = el.where(*conditions, policy=patient, sample=df, seed=0)

    def keep(text):
        return "keep" in max(text for _ in range(100))

    python = el.where(el.udf(keep, "a"), el.udf(keep, "b"), policy="mesh", seed=0)
    found = {}
    for name, f in (("native", native), ("python", python)):
        ids = sorted(row.id for row in df.transform(f).collect())
        found[name] = {"same": ids == expected, "classes": len(f.report().classes)}
    return found


def bad_column(spark) -> str:
    try:
        spark.range(5).transform(el.where(el.udf(lambda x: True, "nope", name="p")))
    except el.InvalidPredicateError as error:
        return str(error)
    return "no error"


def failed_row(spark) -> dict:
    f = el.where(el.udf(lambda i: 1 / (i - 3) < 9, "id", name="inverse"))
    try:
        spark.range(0, 10, 1, 1).transform(f).collect()
    except Exception as exception:
        error = el.error_of(exception)
        if isinstance(error, el.PredicateFailedError):
            return {"predicate": error.predicate, "error": error.error, "row": error.row}
        return {"not read": str(exception)[:2000]}
    return {}


def alias(spark) -> str:
    from pyspark.sql import functions as F

    return repr(el.where((F.col("id") > 2).alias("not small")))


if __name__ == "__main__":
    session = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    answer = {
        "wrong": batch(session),
        "report": report(session),
        "stream": stream(session),
        "classes": classes(session),
        "bad_column": bad_column(session),
        "failed_row": failed_row(session),
        "alias": alias(session),
    }
    pathlib.Path(sys.argv[1]).write_text(json.dumps(answer))
    session.stop()
