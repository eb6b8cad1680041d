"""What the folder of an engine holds however long it ran: files, reading results, the catalogue.

Micro-batches of few rows, one after another without a pause, for an engine with filters and for one
that joins two streams. Queries are dropped and others added on the way.
"""

from __future__ import annotations

import collections
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eddyline.bench.harness import Bench, local_spark

ROWS_PER_BATCH = 20
QUERIES = 20
COUNTS = (200, 400, 800, 1_600)
FILES_MAX = 200
KINDS = ("filters", "a join")
#: Queries that are replaced by others between two measurements.
REPLACED = 5
READS = 3
POLL_S = 0.05


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiment by name."""
    return {"folder": lambda: _folder(bench)}


def _folder(bench: Bench) -> None:
    counts = (20, 40, 80) if bench.quick else COUNTS
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as path:
            grow(bench, pathlib.Path(path) / "engine", kind, counts)


def query_texts(kind: str, seed: int, first: int, count: int) -> dict[str, str]:
    """Return random queries, by name; their numbers begin with `first`."""
    texts = {}
    for number in range(first, first + count):
        low = int(np.random.default_rng([seed, number]).integers(0, 800))
        between = f"v >= {low} AND v < {low + 200}"
        texts[f"q{number}"] = f"SELECT id, v FROM s WHERE {between}"
        if kind == "a join":
            texts[f"q{number}"] = (
                f"SELECT a.id, b.v AS w FROM s a, t b WHERE a.id = b.id AND a.{between} "
                f"WINDOW 30 SECONDS"
            ).replace(" AND v", " AND a.v")
    return texts


def open_engine(spark: Any, path: pathlib.Path, kind: str, seed: int) -> Any:
    """Open the engine in a folder, over streams with so many rows a micro-batch."""
    from eddyline import Engine

    engine = Engine(spark, str(path), seed=seed)
    streams = ("s", "t") if kind == "a join" else ("s",)
    for name in streams:
        rows = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", ROWS_PER_BATCH // len(streams))
            .option("advanceMillisPerBatch", 1_000)
            .load()
        )
        hashed = "pmod(hash(value, 7), 1000) AS v"
        engine.stream(name, rows.selectExpr("value AS id", hashed, "timestamp AS ts"), time="ts")
    return engine


def grow(bench: Bench, path: pathlib.Path, kind: str, counts: Sequence[int]) -> None:
    """Run micro-batches until there were so many; measure the folder at each number.

    Goes on where an earlier call with the same folder has ended.
    """
    spark = local_spark()
    with open_engine(spark, path, kind, bench.seed) as engine:
        for count in counts:
            names = _names(engine)
            for name in names[:REPLACED]:
                engine.drop(name)
            first = int(names[-1][1:]) + 1 if names else 0
            engine.add(query_texts(kind, bench.seed, first, REPLACED if names else QUERIES))
            most, seconds = _run_until(bench, engine, path, kind, count)
            _measure(bench, engine, path, f"{kind}, {count:,} micro-batches", most)
            if seconds:
                bench.add(f"{kind}, {count:,} micro-batches: time of one", seconds, "s")


def _names(engine: Any) -> list[str]:
    """Return the names of the queries, oldest first."""
    return sorted((state.name for state in engine.queries()), key=lambda name: int(name[1:]))


def _run_until(
    bench: Bench, engine: Any, path: pathlib.Path, kind: str, count: int
) -> tuple[int, float]:
    """Return the most files seen while it ran, and the median duration of a micro-batch."""
    most = 0
    run = engine.start(trigger="0 seconds")
    with bench.progress(f"{kind}: micro-batches", count) as advance:
        finished = 0
        while finished < count:
            time.sleep(POLL_S)
            progress = run.streaming_query.lastProgress
            if not run.is_active:
                run.process_all_available()  # raises what has stopped it
            now = progress["batchId"] + 1 if progress else 0
            if now > finished:
                most = max(most, sum(count_files(path).values()))
            for _ in range(min(now, count) - finished):
                advance()
            finished = max(finished, now)
    run.stop()
    batches = [batch.seconds for batch in run.batches()]
    return most, statistics.median(batches) if batches else 0.0


def count_files(path: pathlib.Path) -> dict[str, int]:
    """Return the number of files in each folder of an engine, and beside them."""
    counts: collections.Counter[str] = collections.Counter()
    for file in path.rglob("*"):
        try:
            if file.is_file():
                counts[file.relative_to(path).parts[0]] += 1
        except OSError:
            continue  # it has just been deleted
    return dict(counts)


def _measure(bench: Bench, engine: Any, path: pathlib.Path, what: str, most: int) -> None:
    counts = count_files(path)
    by_folder = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
    bench.add(f"{what}: files", sum(counts.values()), "files", by_folder)
    bench.add(f"{what}: most files while it ran", most, "files", f"at most {FILES_MAX}")
    name = _names(engine)[0]
    seconds, rows = [], 0
    for _ in range(READS):
        began = time.perf_counter()
        rows = engine.results(name).count()
        seconds.append(time.perf_counter() - began)
    bench.add(
        f"{what}: reading the results of a query",
        statistics.median(seconds),
        "s",
        f"at most 1; {rows:,} rows of the oldest query; the first read {seconds[0]:.2f} s",
    )
