"""A clique of four streams on Spark, with tuned indexes, a static one, and sorted hashes.

Each pair of streams is joined on a column of its own, so a state is searched by any of its three
columns and by all combinations. Which pair has few partners changes with every other micro-batch,
and so do the columns that rows are searched by. The static index has its bits spread evenly over
the columns of a state: over all micro-batches, each of them is the selective one about as often.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.bench.harness import Bench, local_spark, ratio
from eddyline.index.schedules import Triggered
from eddyline.index.tuning_options import TuningOptions
from eddyline.spark.engine.join_planner import JoinPlanner

STREAMS = 4
PAIRS = tuple(itertools.combinations(range(STREAMS), 2))
BATCHES = 10
#: A row has so many partners by the columns of most pairs when all rows are stored.
PARTNERS = 50
#: One in so many rows has a partner in every stream.
PLANTED = 50
#: Never assesses anything: the change of a rate is at most 1.
_NEVER = TuningOptions(schedule=lambda: Triggered(change_min=2.0))
#: How indexes are chosen; None is the default.
TUNINGS: dict[str, TuningOptions | None] = {
    "tuned": None,
    "tuned again": None,
    "static": TuningOptions(schedule=_NEVER.schedule, only="bit address"),
    "sorted hashes": TuningOptions(schedule=_NEVER.schedule, only="sorted hash"),
}


@dataclass(frozen=True)
class Outcome:
    """What an engine came to: seconds of its workers, those of them tuning, and its counts."""

    busy_s: float
    tuning_s: float
    candidates: int
    results: int
    state_rows: int


def write_streams(folder: str, rows: int, batches: int, seed: int) -> None:
    """Write streams whose selective pair changes with every other micro-batch."""
    rng = np.random.default_rng(seed)
    few = max(rows * batches // PARTNERS, 2)
    for batch in range(batches):
        selective = PAIRS[batch // 2 % len(PAIRS)]
        planted = rng.integers(10**9, 2 * 10**9, (len(PAIRS), rows // PLANTED))
        for stream in range(STREAMS):
            columns: dict[str, Any] = {}
            for number, pair in enumerate(PAIRS):
                if stream in pair:
                    keys = rng.integers(0, 10**9 if pair == selective else few, rows)
                    keys[: rows // PLANTED] = planted[number]
                    columns[f"k{pair[0]}{pair[1]}"] = keys
            columns["v"] = np.arange(batch * rows, (batch + 1) * rows)
            times = np.full(rows, (1000 + batch) * 10**6)
            columns["ts"] = pa.array(times, pa.timestamp("us", "UTC"))
            pq.write_table(pa.table(columns), f"{folder}/s{stream}-{batch:03}.parquet")


def run_clique(spark: Any, folder: str) -> Outcome:
    """Join the streams; all rows stay in the window."""
    from eddyline import Engine

    with tempfile.TemporaryDirectory() as path, Engine(spark, path, seed=0) as engine:
        for stream in range(STREAMS):
            keys = [f"k{a}{b} long" for a, b in PAIRS if stream in (a, b)]
            reader = spark.readStream.schema(", ".join([*keys, "v long", "ts timestamp"]))
            reader = reader.option("maxFilesPerTrigger", 1).option(
                "pathGlobFilter", f"s{stream}-*.parquet"
            )
            engine.stream(f"s{stream}", reader.parquet(folder), time="ts")
        equal = " AND ".join(f"s{a}.k{a}{b} = s{b}.k{a}{b}" for a, b in PAIRS)
        items = ", ".join(f"s{n}.v AS v{n}" for n in range(STREAMS))
        tables = ", ".join(f"s{n}" for n in range(STREAMS))
        engine.query("clique", f"SELECT {items} FROM {tables} WHERE {equal} WINDOW 1 HOUR")
        run = engine.start(trigger="available now")
        run.process_all_available()
        joins = [batch.joins for batch in run.batches() if batch.joins is not None]
        return Outcome(
            sum(own.busy_s for own in joins),
            sum(own.tuning_s for own in joins),
            sum(own.candidates for own in joins),
            sum(own.results for own in joins),
            joins[-1].state_rows,
        )


@contextmanager
def indexes(options: TuningOptions | None) -> Iterator[None]:
    """Let engines tune indexes in some way for a while."""
    JoinPlanner.tuning = options
    try:
        yield
    finally:
        JoinPlanner.tuning = None


def tuning(bench: Bench) -> None:
    """Compare tuned indexes with a static one and with sorted hashes, on a clique that drifts."""
    spark = local_spark()
    rows, batches = (500, 4) if bench.quick else (25_000, BATCHES)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in TUNINGS}
    with tempfile.TemporaryDirectory() as folder:
        write_streams(folder, rows, batches, bench.seed)
        rounds = min(bench.rounds, 3)
        runs = [*TUNINGS, *[name for name in TUNINGS if name != "static"] * (rounds - 1)]
        with bench.progress("clique", 1 + len(runs)) as advance:
            run_clique(spark, folder)  # Spark compiles code, workers import
            advance()
            for name in runs:  # a static index takes minutes: once is enough for its ratio
                with indexes(TUNINGS[name]):
                    outcomes[name].append(run_clique(spark, folder))
                advance()
    tuned = outcomes["tuned"]
    if len({outcome.results for own in outcomes.values() for outcome in own}) != 1:
        raise AssertionError("the indexes give different results")
    busy_s = {name: [outcome.busy_s for outcome in own] for name, own in outcomes.items()}
    control = ratio(busy_s["tuned again"], busy_s["tuned"])
    what = f"clique of {STREAMS} streams that drifts, {tuned[0].state_rows:,} rows of state"
    for name in ("static", "sorted hashes"):
        bench.add(
            f"{what}: {name} / tuned, worker time",
            statistics.median(busy_s[name]) / statistics.median(busy_s["tuned"]),
            "x",
            f"tuned {statistics.median(busy_s['tuned']):.2f} s; control {control:.2f}",
        )
        bench.add(
            f"{what}: {name} / tuned, stored rows compared",
            outcomes[name][0].candidates / max(tuned[0].candidates, 1),
            "x",
            f"tuned {tuned[0].candidates:,}; {tuned[0].results:,} results",
        )
    bench.add(
        f"{what}: share of the worker time that assesses searches and selects configurations",
        sum(outcome.tuning_s for outcome in tuned) / sum(busy_s["tuned"]),
        "share",
    )
