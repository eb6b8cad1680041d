"""An engine that joins streams in a process of its own, to be killed or to run on a cluster.

Arguments: the master, folder of the streams, folder of the engine, and, for a driver that kills
itself, at which file operation: how many of which kind come before it.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eddyline as el
from eddyline.spark.engine import housekeeping, result_merger
from eddyline.spark.state import compaction
from tests.unit.spark.killed import FileOperations

STREAMS = ("light", "temp", "noise")
SCHEMA = "ts timestamp, k bigint, v int"
WINDOWS_S = {"two": {"l": 20, "t": 20}, "three": {"l": 15, "t": 15, "n": 15}}
SQL = {
    "two": "SELECT l.v AS a, t.v AS b FROM light l, temp t WHERE l.k = t.k AND l.v > 1",
    "three": "SELECT l.v AS a, t.v AS b, n.v AS c FROM light l JOIN temp t ON l.k = t.k "
    "JOIN noise n ON n.k = l.k",
}
DELAY_S = 10


def write_sources(folder: pathlib.Path, files: int, rows: int, seed: int = 5) -> None:
    """Write files of the streams, one a micro-batch; rows of a file are 4 s after the one before.

    None is late, and those of the first files expire.
    """
    rng = random.Random(seed)
    for name in STREAMS:
        (folder / name).mkdir(parents=True)
        for number in range(files):
            lines = []
            for _ in range(rows):
                second = number * 4 + rng.randrange(8)
                time = f"2024-01-01T00:{second // 60:02}:{second % 60:02}Z"
                row = {"ts": time, "k": rng.choice([1, 2, 3, None]), "v": rng.randrange(1_000)}
                lines.append(json.dumps(row))
            path = folder / name / f"{number:03}.json"
            path.write_text("\n".join(lines))
            os.utime(path, (number + 1, number + 1))


def answer(spark: Any, folder: pathlib.Path, query: str) -> list[tuple[Any, ...]]:
    """Return what batch SQL gives, with the windows as conditions."""
    for name in STREAMS:
        spark.read.schema(SCHEMA).json(str(folder / name)).createOrReplaceTempView(name)
    newest = f"greatest({', '.join(f'{alias}.ts' for alias in WINDOWS_S[query])})"
    within = [
        f"{newest} < {alias}.ts + INTERVAL {window} SECONDS"
        for alias, window in WINDOWS_S[query].items()
    ]
    joiner = " AND " if " WHERE " in SQL[query] else " WHERE "
    rows = spark.sql(SQL[query] + joiner + " AND ".join(within)).collect()
    return sorted(map(tuple, rows))


def tidy_often(patch: pytest.MonkeyPatch) -> None:
    """Compact, merge and write snapshots often."""
    patch.setattr(compaction, "FAN_IN", 2)
    patch.setattr(housekeeping, "SNAPSHOT_EVERY", 3)
    patch.setattr(result_merger, "FAN_IN_NEW", 3)


def open_engine(spark: Any, source: pathlib.Path, path: pathlib.Path) -> el.Engine:
    """Open the engine, with everything that it needs to go on."""
    engine = el.Engine(spark, path, seed=1)
    for name in STREAMS:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        stream = reader.json(str(source / name))
        engine.stream(name, stream, time="ts", delay=f"{DELAY_S} seconds")
    for name, sql in SQL.items():
        engine.query(name, f"{sql} WINDOW {max(WINDOWS_S[name].values())} SECONDS")
    return engine


def kill_at(number: int, kind: str) -> None:
    """End this process at one of its file operations."""
    operations = FileOperations(pytest.MonkeyPatch())

    def kill() -> BaseException:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    operations.fail(number, error=kill, kind=kind)


def main(master: str, source: pathlib.Path, path: pathlib.Path, moment: list[str]) -> None:
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    if not master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.executor.memory", "512m")
        # Begin when both workers are there.
        builder = builder.config("spark.cores.max", "2")
        builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    tidy_often(pytest.MonkeyPatch())
    if moment:
        kill_at(int(moment[0]), moment[1])
    engine = open_engine(spark, source, path)
    run = engine.start("available now")
    seen = 0
    while run.is_active:
        run.await_termination(0.1)
        while seen < len(run.batches()):
            print("finished", run.batches()[seen].batch, flush=True)
            seen += 1
    run.process_all_available()
    answers = {name: sorted(map(tuple, engine.results(name).collect())) for name in SQL}
    print("answers", json.dumps(answers), flush=True)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
