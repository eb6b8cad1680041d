"""Runs a join of streams by an engine, and by Spark, over the same files.

Each micro-batch takes one file of each stream. Both sides store their results.
"""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eddyline.bench.joins_case import DELAY, TIME, JoinCase, Streams
from eddyline.bench.joins_spark import batch_seconds, median_seconds
from eddyline.spark.common.session_settings import session_settings


@dataclass(frozen=True)
class Contest:
    """A query that an engine and Spark both run.

    Parameters
    ----------
    name
        What it is called in metrics.
    streams, files
        The streams that it reads, and where they are.
    sql
        For the engine.
    rival
        Returns the streaming DataFrame that a user of Spark would write; None without a rival.
    tables
        Static tables, by name: a function of the session.
    warm_up_batches
        Micro-batches that are not timed: Spark compiles code, and windows fill.

    """

    name: str
    streams: tuple[str, ...]
    files: Streams
    sql: str
    rival: Callable[[Any], Any] | None
    tables: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    warm_up_batches: int = 2

    @classmethod
    def of(cls, case: JoinCase, files: Streams, has_rival: bool = True) -> Contest:
        """Return the contest between an engine and Spark's chain of joins."""
        rival = (lambda spark: case.chain(spark, files)) if has_rival else None
        return cls(case.name, case.streams, files, case.sql, rival)

    @property
    def rows(self) -> int:
        """Rows of all its streams."""
        return sum(self.files.rows[name] for name in self.streams)


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Parameters
    ----------
    seconds
        Median duration of its micro-batches, those apart in which Spark warms up.
    total_s, batches
        Duration of all its micro-batches that had rows, and their number.
    results, checksum
        Number of results, and the sum of the hashes of their values.
    written_bytes
        State, results, logs and checkpoints that were written.
    state_rows, state_bytes
        State after the last micro-batch with rows.
    candidates, matches
        Stored rows compared with probes, and those that were equal; of an engine only.

    """

    seconds: float
    total_s: float
    batches: int
    results: int
    checksum: int
    written_bytes: int
    state_rows: int = 0
    state_bytes: int = 0
    candidates: int = 0
    matches: int = 0


def run_engine(spark: Any, contest: Contest, seed: int) -> Outcome:
    """Run a query by an engine."""
    from eddyline import Engine

    with tempfile.TemporaryDirectory() as folder, Engine(spark, folder, seed=seed) as engine:
        for name in contest.streams:
            engine.stream(name, contest.files.read(spark, name), time=TIME, delay=DELAY)
        for name, make in contest.tables.items():
            engine.table(name, make(spark))
        engine.query("own", contest.sql)
        run = engine.start(trigger="available now")
        run.process_all_available()
        joins = [batch.joins for batch in run.batches() if batch.joins is not None]
        path = pathlib.Path(folder)
        state_written = sum(each.bytes_written for each in joins)
        count, checksum = checksum_of(run.results("own"))
        return Outcome(
            *_timed(run.streaming_query, contest.warm_up_batches),
            count,
            checksum,
            _bytes_in(path) - _bytes_in(path / "state") + state_written,
            joins[-1].state_rows if joins else 0,
            joins[-1].state_bytes if joins else 0,
            sum(each.candidates for each in joins),
            sum(each.matches for each in joins),
        )


def run_rival(spark: Any, contest: Contest, store: Mapping[str, str]) -> Outcome:
    """Run the same query as Spark's own, with a kind of state store."""
    assert contest.rival is not None
    with tempfile.TemporaryDirectory() as folder, session_settings(spark, store):
        writer = contest.rival(spark).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.option("path", f"{folder}/results").trigger(availableNow=True).start()
        query.awaitTermination()
        last = [each for each in query.recentProgress if each["numInputRows"]][-1]
        operators = last["stateOperators"]
        return Outcome(
            *_timed(query, contest.warm_up_batches),
            *checksum_of(spark.read.parquet(f"{folder}/results")),
            _bytes_in(pathlib.Path(folder)),
            sum(operator["numRowsTotal"] for operator in operators),
            sum(operator["memoryUsedBytes"] for operator in operators),
        )


def _timed(query: Any, warm_up_batches: int) -> tuple[float, float, int]:
    """Return the median duration of micro-batches with rows, that of all, and their number."""
    durations = batch_seconds(query)
    return median_seconds(query, warm_up_batches), sum(durations), len(durations)


def checksum_of(results: Any) -> tuple[int, int]:
    """Return the number of results, and a sum that does not depend on their order."""
    columns = ", ".join(results.columns)
    hashed = f"coalesce(sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))), 0)"
    (row,) = results.selectExpr("count(*)", hashed).collect()
    return int(row[0]), int(row[1])


def _bytes_in(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
