"""Runs a join of streams by an engine, and by Spark, over the same files.

Each micro-batch takes one file of each stream. Both sides store their results.
"""

from __future__ import annotations

import datetime
import itertools
import json
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

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
    first_result_s
        From the start of the query to the end of the first micro-batch with results.

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
    first_result_s: float = 0.0


def run_engine(spark: Any, contest: Contest, seed: int) -> Outcome:
    """Run a query by an engine."""
    from eddyline import Engine

    with tempfile.TemporaryDirectory() as folder, Engine(spark, folder, seed=seed) as engine:
        for name in contest.streams:
            engine.stream(name, contest.files.read(spark, name), time=TIME, delay=DELAY)
        for name, make in contest.tables.items():
            engine.table(name, make(spark))
        engine.query("own", contest.sql)
        began = datetime.datetime.now(datetime.UTC)
        run = engine.start(trigger="available now")
        run.process_all_available()
        first = next((batch.batch for batch in run.batches() if batch.matches), None)
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
            seconds_until(run.streaming_query.recentProgress, first, began),
        )


def run_rival(spark: Any, contest: Contest, store: Mapping[str, str]) -> Outcome:
    """Run the same query as Spark's own, with a kind of state store."""
    assert contest.rival is not None
    with tempfile.TemporaryDirectory() as folder, session_settings(spark, store):
        writer = contest.rival(spark).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        began = datetime.datetime.now(datetime.UTC)
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
            first_result_s=seconds_until(
                query.recentProgress, _first_batch_with_rows(pathlib.Path(folder)), began
            ),
        )


def _timed(query: Any, warm_up_batches: int) -> tuple[float, float, int]:
    """Return the median duration of micro-batches with rows, that of all, and their number."""
    durations = batch_seconds(query)
    return median_seconds(query, warm_up_batches), sum(durations), len(durations)


def seconds_until(
    progress: Sequence[Mapping[str, Any]], batch: int | None, began: datetime.datetime
) -> float:
    """Return the seconds from a moment to the end of a micro-batch; 0 if there is none.

    Examples
    --------
    >>> began = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    >>> progress = {"batchId": 3, "durationMs": {"triggerExecution": 500}}
    >>> seconds_until([progress | {"timestamp": "2026-01-01T00:00:02.000Z"}], 3, began)
    2.5

    """
    for each in progress:
        if each["batchId"] == batch:
            start = datetime.datetime.fromisoformat(each["timestamp"])
            duration_ms = int(each["durationMs"]["triggerExecution"])
            return (start - began).total_seconds() + duration_ms / 1000
    return 0.0


def _first_batch_with_rows(folder: pathlib.Path) -> int | None:
    """Return the first micro-batch for which Spark's file sink committed rows."""
    log = folder / "results" / "_spark_metadata"
    for batch in itertools.count():
        if not (log / str(batch)).exists():
            return None
        entries = map(json.loads, (log / str(batch)).read_text().splitlines()[1:])
        names = [entry["path"].rpartition("/")[2] for entry in entries]
        if any(pq.read_metadata(folder / "results" / name).num_rows for name in names):
            return batch
    return None


def checksum_of(results: Any) -> tuple[int, int]:
    """Return the number of results, and a sum that does not depend on their order."""
    columns = ", ".join(results.columns)
    hashed = f"coalesce(sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))), 0)"
    (row,) = results.selectExpr("count(*)", hashed).collect()
    return int(row[0]), int(row[1])


def _bytes_in(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
