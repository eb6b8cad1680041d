"""Runs a join of streams by an engine and by Spark, checks that both give the same, and compares.

Both sides read the same files, one of each stream in a micro-batch, and store their results.
"""

from __future__ import annotations

import pathlib
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eddyline.bench.harness import Bench, ratio
from eddyline.bench.joins_case import DELAY, TIME, JoinCase, Streams
from eddyline.bench.joins_spark import STORES, session_settings
from eddyline.errors import EddylineError

#: A run takes long, so there are at most so many rounds.
ROUNDS_MAX = 3


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
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    durations = [each["durationMs"]["triggerExecution"] / 1000 for each in progress]
    median_s = statistics.median(durations[warm_up_batches:] or durations[-1:])
    return float(median_s), sum(durations), len(durations)


def checksum_of(results: Any) -> tuple[int, int]:
    """Return the number of results, and a sum that does not depend on their order."""
    columns = ", ".join(results.columns)
    hashed = f"coalesce(sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))), 0)"
    (row,) = results.selectExpr("count(*)", hashed).collect()
    return int(row[0]), int(row[1])


def _bytes_in(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Compared:
    """All runs of a contest.

    Parameters
    ----------
    engines, again
        Runs of the engine, and as a control more of them, one of each in a round.
    rivals
        Runs of Spark, one in each round; none without a rival.
    store
        The state store that Spark was faster with.

    """

    engines: list[Outcome]
    again: list[Outcome]
    rivals: list[Outcome]
    store: str = ""


def run_rounds(bench: Bench, spark: Any, contest: Contest) -> Compared:
    """Run both in turn; raise if their results differ."""
    rounds = min(bench.rounds, ROUNDS_MAX)
    stores = STORES if contest.rival is not None else {}
    engines, again, rivals = [], [], []
    with bench.progress(
        contest.name, max(len(stores) - 1, 0) + (2 + bool(stores)) * rounds
    ) as advance:
        tried: dict[str, Outcome] = {}
        for name, store in stores.items():
            tried[name] = run_rival(spark, contest, store)
            advance()
        best = min(tried, key=lambda name: tried[name].seconds, default="")
        for round_ in range(rounds):
            engines.append(run_engine(spark, contest, bench.seed))
            advance()
            again.append(run_engine(spark, contest, bench.seed))
            advance()
            if best and round_ == 0:
                rivals.append(tried[best])
            elif best:
                rivals.append(run_rival(spark, contest, STORES[best]))
                advance()
    check_same(contest.name, engines + again, [*tried.values(), *rivals])
    return Compared(engines, again, rivals, best)


def check_same(name: str, own: list[Outcome], others: list[Outcome]) -> None:
    """Raise if a run has other results than the first."""
    for outcome in own + others:
        if (outcome.results, outcome.checksum) != (own[0].results, own[0].checksum):
            raise EddylineError(
                f"{name}: {outcome.results:,} results with the checksum {outcome.checksum}, but "
                f"{own[0].results:,} with {own[0].checksum} in the first run of the engine; the "
                f"two queries or their windows are not the same"
            )
    if not own[0].results:
        raise EddylineError(f"{name}: no results; the data does not fit the query")


def contend(bench: Bench, spark: Any, contest: Contest) -> None:
    """Run a contest and add its figures."""
    compared = run_rounds(bench, spark, contest)
    own, seconds = compared.engines[-1], [each.seconds for each in compared.engines]
    batch_s, batch_rows = statistics.median(seconds), contest.rows / own.batches
    control = ratio([each.seconds for each in compared.again], seconds)
    spent = (
        f"{1e6 * batch_s / batch_rows:.2f} us a row, "
        f"{1e6 * batch_s * own.batches / own.results:.2f} us a result; control {control:.2f}"
    )
    name = contest.name
    if compared.rivals:
        rival = compared.rivals[-1]
        rival_seconds = [each.seconds for each in compared.rivals]
        bench.add(
            f"{name}: time, Spark / engine",
            ratio(rival_seconds, seconds),
            "x",
            f"engine {spent}; Spark's {compared.store} store",
        )
    else:
        rival = None
        bench.add(f"{name}: time a row", 1e6 * batch_s / batch_rows, "us", spent)
    if own.matches:
        bench.add(
            f"{name}: candidates a match",
            own.candidates / own.matches,
            "candidates",
            f"{own.results:,} results of {contest.rows:,} rows",
        )
        _add_state(bench, contest, own, rival)
    _add_against(
        bench, f"{name}: bytes written", own.written_bytes, rival.written_bytes if rival else None
    )


def _add_state(bench: Bench, contest: Contest, own: Outcome, rival: Outcome | None) -> None:
    arrived = contest.rows / own.batches
    bench.add(
        f"{contest.name}: state rows, engine / rows of a micro-batch",
        own.state_rows / arrived,
        "x",
        f"{own.state_rows:,} rows" + (f"; Spark {rival.state_rows:,}" if rival else ""),
    )
    _add_against(
        bench, f"{contest.name}: state bytes", own.state_bytes, rival.state_bytes if rival else None
    )


def _add_against(bench: Bench, metric: str, own_bytes: int, rival_bytes: int | None) -> None:
    """Add bytes of the engine as a ratio, or as they are without a rival."""
    if rival_bytes is None:
        bench.add(metric, own_bytes / 1e6, "MB")
    else:
        bench.add(
            f"{metric}, Spark / engine", rival_bytes / own_bytes, "x", f"{own_bytes / 1e6:.2f} MB"
        )
