"""Windows of rows on Spark: equal to a nested loop over the order in which rows arrived."""

from __future__ import annotations

import itertools
import pathlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pytest
from pyspark.sql import SparkSession

from eddyline import Engine, QueryError
from eddyline.spark.engine.row_counts import RowCounts
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.state.arrived_rows import ARRIVAL
from tests.spark.test_engine_joins import Rows, Source, random_rows

NAMES = ("light", "temp", "noise")


@dataclass(frozen=True)
class Case:
    """A query, and what it means: streams, windows and the condition, by alias."""

    sql: str
    streams: Mapping[str, str]
    rows: Mapping[str, int]
    seconds: Mapping[str, int]
    condition: Callable[..., bool]


def same(*values: object) -> bool:
    """Whether values are equal and none is NULL."""
    return values[0] is not None and all(value == values[0] for value in values)


CASES = {
    "two": Case(
        "SELECT l.v, t.v AS t FROM light l JOIN temp t ON l.k = t.k WINDOW 7 ROWS",
        {"l": "light", "t": "temp"},
        {"l": 7, "t": 7},
        {},
        lambda light, temp: same(light.k, temp.k),
    ),
    "filtered": Case(
        "SELECT l.v, t.v AS t FROM light l [ROWS 9], temp t [ROWS 4] WHERE l.k = t.k AND t.v > 3",
        {"l": "light", "t": "temp"},
        {"l": 9, "t": 4},
        {},
        lambda light, temp: same(light.k, temp.k) and temp.v > 3,
    ),
    "mixed": Case(
        "SELECT l.v, t.v AS t, n.v AS n FROM light l [ROWS 12], temp t [RANGE 40 SECONDS], "
        "noise n [ROWS 5] WHERE l.k = t.k AND t.k = n.k",
        {"l": "light", "t": "temp", "n": "noise"},
        {"l": 12, "n": 5},
        {"t": 40},
        lambda light, temp, noise: same(light.k, temp.k, noise.k),
    ),
    "self": Case(
        "SELECT a.v, b.v AS b FROM light a [ROWS 3], light b [RANGE 30 SECONDS] "
        "WHERE a.k = b.k AND a.v < b.v",
        {"a": "light", "b": "light"},
        {"a": 3},
        {"b": 30},
        lambda a, b: same(a.k, b.k) and a.v < b.v,
    ),
    "chain": Case(
        "SELECT l.v, t.v AS t, n.v AS n FROM light l JOIN temp t ON l.k = t.k "
        "JOIN noise n ON t.room = n.room WINDOW 6 ROWS",
        {"l": "light", "t": "temp", "n": "noise"},
        {"l": 6, "t": 6, "n": 6},
        {},
        lambda light, temp, noise: same(light.k, temp.k) and same(temp.room, noise.room),
    ),
}


class Arrived(NamedTuple):
    """A row with its place among all rows."""

    ts: str
    room: str | None
    k: int | None
    v: int
    place: int

    @property
    def second(self) -> float:
        return datetime.fromisoformat(self.ts).timestamp()


def arrived(batches: Sequence[Mapping[str, Rows]]) -> dict[str, list[Arrived]]:
    """Return the rows of every stream, numbered micro-batch by micro-batch, then by stream."""
    places = itertools.count()
    streams: dict[str, list[Arrived]] = {name: [] for name in NAMES}
    for batch in batches:
        for name in NAMES:
            streams[name] += [Arrived(*row, next(places)) for row in batch[name]]
    return streams


def oracle(case: Case, streams: Mapping[str, Sequence[Arrived]]) -> list[tuple[int, ...]]:
    """Return what a nested loop gives: the rows since are counted, whoever wants them."""
    found = []
    for combination in itertools.product(*[streams[name] for name in case.streams.values()]):
        rows = dict(zip(case.streams, combination, strict=True))
        last = max(row.place for row in combination)
        newest = max(row.second for row in combination)
        if (
            case.condition(*combination)
            and all(newest - rows[alias].second < size for alias, size in case.seconds.items())
            and all(
                sum(rows[a].place < other.place <= last for other in streams[case.streams[a]])
                < size
                for a, size in case.rows.items()
            )
        ):
            found.append(tuple(row.v for row in combination))
    return sorted(found)


def test_results_equal_a_nested_loop(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    rng = random.Random(5)
    sources = {name: Source(spark, tmp_path / name) for name in NAMES}
    batches = [
        {name: random_rows(rng, rng.choice([0, 6, 14]), 60) for name in NAMES} for _ in range(4)
    ]

    def open_engine() -> Engine:
        engine = Engine(spark, tmp_path / "engine", seed=1)
        for name in NAMES:
            engine.stream(name, sources[name].stream(), time="ts", delay="1 hour")
        return engine

    engine = open_engine()
    for name, case in CASES.items():
        engine.query(name, case.sql)
    engine.query("filter", "SELECT v FROM light WHERE v > 5")  # rows also pass through an eddy
    run = engine.start()
    for number, batch in enumerate(batches):
        for name, rows in batch.items():
            if rows:
                sources[name].add(rows)
        if number == 2:
            engine.close()
            engine = open_engine()  # counts go on after a restart
            run = engine.start()
        run.process_all_available()
    run.stop()
    for name, case in CASES.items():
        found = sorted(map(tuple, engine.results(name).collect()))
        assert found, name
        assert found == oracle(case, arrived(batches)), name
    rows = [row for batch in batches for row in batch["light"]]
    assert engine.results("filter").count() == sum(row[3] > 5 for row in rows)


def test_streams_without_a_time_are_joined_by_rows(
    spark: SparkSession, tmp_path: pathlib.Path
) -> None:
    light, temp = (Source(spark, tmp_path / name) for name in ("light", "temp"))
    engine = Engine(spark, tmp_path / "engine")
    engine.stream("light", light.stream())
    engine.stream("temp", temp.stream(), time="ts", delay="1 second")
    with pytest.raises(QueryError, match="nothing says how long rows of 'temp'"):
        engine.query("mixed", "SELECT l.v FROM light l [ROWS 2], temp t WHERE l.k = t.k")
    with pytest.raises(QueryError, match=r"'light' has no event time.*other streams by time"):
        engine.query(
            "mixed", "SELECT l.v FROM light l [ROWS 2], temp t [RANGE 1 DAY] WHERE l.k = t.k"
        )
    engine.query(
        "q", "SELECT l.v AS l, t.v AS t FROM light l, temp t WHERE l.k = t.k WINDOW 2 ROWS"
    )
    run = engine.start()
    nothing: Any = None
    for number in range(7):
        light.add([(nothing, "a", 1, number)])
        temp.add([("2024-01-01T00:00:00Z", "a", 1, number)])
        run.process_all_available()
    run.stop()
    found = sorted(map(tuple, engine.results("q").collect()))
    # Row n of light arrives before row n of temp. When the later one of a pair arrives, the earlier
    # one must be among the last two of its stream.
    expected = [(n, m) for n in range(7) for m in range(7) if 0 <= m - n < 2 or 0 <= n - 1 - m < 2]
    assert found == expected
    assert run.report().batches[-1].joins.state_rows <= 8  # purged by count


def test_rows_are_counted_in_every_partition(spark: SparkSession) -> None:
    streams = [StreamInfo(n, name, spark.range(1).schema, "UTC") for n, name in enumerate("ab")]
    first = spark.range(10).selectExpr("0 AS _source", "id").repartition(3)
    second = spark.range(7).selectExpr("1 AS _source", "id").repartition(2)
    assert SOURCE == "_source"
    counts = RowCounts(streams, {"b": 100})
    with counts.counted(first.union(second)) as (rows, counted):
        ids: dict[int, list[int]] = {0: [], 1: []}
        for row in rows.collect():
            ids[row[SOURCE]].append(row[ARRIVAL])
    numbers = {n: sorted(counted.streams[n].sequence(np.array(own))) for n, own in ids.items()}
    assert numbers == {0: list(range(10)), 1: list(range(100, 107))}
    assert counted.totals == {"a": 10, "b": 107}
    assert counted.streams[1].clock.first == 10
