"""Joins of streams on Spark: equal to batch SQL, whatever the cuts between micro-batches."""

from __future__ import annotations

import json
import pathlib
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline import Engine, EngineError, QueryError
from eddyline.journal.events import JoinDealt, StreamIdle

SCHEMA = "ts timestamp, room string, k bigint, v int"
Rows = list[tuple[str, str | None, int | None, int]]


class Source:
    """A stream read from files that a test adds, one micro-batch each."""

    def __init__(self, spark: SparkSession, folder: pathlib.Path) -> None:
        self._spark = spark
        self._folder = folder
        folder.mkdir()
        self.rows: Rows = []
        self._files = 0

    def stream(self) -> DataFrame:
        return self._spark.readStream.schema(SCHEMA).json(str(self._folder))

    def add(self, rows: Rows) -> None:
        self.rows += rows
        names = ("ts", "room", "k", "v")
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        self._files += 1
        (self._folder / f"{self._files}.json").write_text("\n".join(lines))

    def frame(self) -> DataFrame:
        frame = self._spark.createDataFrame(self.rows, "ts string, room string, k bigint, v int")
        return frame.selectExpr("to_timestamp(ts) AS ts", "room", "k", "v")


def second(number: int) -> str:
    return f"2024-01-01T00:{number // 60:02}:{number % 60:02}Z"


def oracle(
    spark: SparkSession, sources: Mapping[str, Source], sql: str, windows_s: Mapping[str, int]
) -> list[Any]:
    """Return what batch SQL gives, with the windows as conditions."""
    for name, source in sources.items():
        source.frame().createOrReplaceTempView(name)
    newest = f"greatest({', '.join(f'{alias}.ts' for alias in windows_s)})"
    within = [
        f"{newest} < {alias}.ts + INTERVAL {window} SECONDS" for alias, window in windows_s.items()
    ]
    joiner = " AND " if " WHERE " in sql else " WHERE "
    return sorted(map(tuple, spark.sql(sql + joiner + " AND ".join(within)).collect()), key=repr)


@pytest.fixture
def sources(spark: SparkSession, tmp_path: pathlib.Path) -> dict[str, Source]:
    return {name: Source(spark, tmp_path / name) for name in ("light", "temp", "noise")}


def open_engine(spark: SparkSession, folder: pathlib.Path, sources: Mapping[str, Source]) -> Engine:
    engine = Engine(spark, folder, seed=1)
    for name, source in sources.items():
        engine.stream(name, source.stream(), time="ts", delay="1 hour")
    return engine


def random_rows(rng: random.Random, count: int, until_s: int) -> Rows:
    return [
        (
            second(rng.randrange(until_s)),
            rng.choice(["hall", "attic", None]),
            rng.choice([1, 2, 3, None]),
            rng.randrange(10),
        )
        for _ in range(count)
    ]


TWO = (
    "SELECT l.room, l.v AS lux, t.v AS celsius FROM light l, temp t "
    "WHERE l.room = t.room AND l.v > 3"
)
THREE = (
    "SELECT l.v AS a, t.v AS b, n.v AS c FROM light l JOIN temp t ON l.k = t.k "
    "JOIN noise n ON n.k = l.k WHERE n.v < 7"
)
CHAIN = (
    "SELECT l.v AS a, t.v AS b, n.v AS c FROM light l, temp t, noise n "
    "WHERE l.k = t.k AND t.v = n.v"
)
SELF = "SELECT a.v AS x, b.v AS y FROM light a, light b WHERE a.k = b.k AND a.v < b.v"


BAND = "SELECT l.v AS a, t.v AS b FROM light l, temp t WHERE abs(l.v - t.v) < 2 AND l.k < t.k"
LATER = (
    "SELECT l.v AS a, t.v AS b FROM light l, temp t WHERE l.k = t.k "
    "AND t.ts BETWEEN l.ts AND l.ts + INTERVAL 10 SECONDS"
)


def test_a_comparison_links_streams_and_other_rows_are_not_stored(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    engine = open_engine(spark, tmp_path / "engine", sources)
    engine.query("band", BAND + " WINDOW 1 HOUR")
    rng = random.Random(7)
    for name in ("light", "temp"):
        sources[name].add(random_rows(rng, 60, 60))
    run = engine.start(trigger="available now")
    run.process_all_available()
    expected = oracle(spark, sources, BAND, {"l": 3600, "t": 3600})
    assert sorted(map(tuple, engine.results("band").collect()), key=repr) == expected
    joins = run.report().batches[-1].joins
    assert joins is not None
    assert joins.results == len(expected)


def test_joins_equal_batch_sql_over_cuts_and_restarts(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    rng = random.Random(4)
    queries: dict[str, tuple[str, Sequence[str], int]] = {
        "two": (TWO, "lt", 20),
        "three": (THREE, "ltn", 15),
        "chain": (CHAIN, "ltn", 10),
        "self": (SELF, "ab", 12),
        "wide": (TWO, "lt", 60),
        "band": (BAND, "lt", 30),
    }
    windows_s = {name: dict.fromkeys(own, window) for name, (_, own, window) in queries.items()}
    windows_s["own"] = {"l": 25, "t": 8}
    texts = {name: f"{sql} WINDOW {window} SECONDS" for name, (sql, _, window) in queries.items()}
    texts["own"] = TWO.replace("light l", "light l [RANGE 25 SECONDS]") + " WINDOW 8 SECONDS"
    windows_s["later"] = {"l": 11, "t": 1}  # follows from the condition
    texts["later"] = LATER
    engine = open_engine(spark, tmp_path / "engine", sources)
    engine.add(texts)
    engine.query("filter", "SELECT v FROM light WHERE v > 5")
    for batch in range(3):
        for source in sources.values():
            source.add(random_rows(rng, rng.randint(4, 9), 60))
        if batch == 1:
            engine.close()
            engine = open_engine(spark, tmp_path / "engine", sources)
        run = engine.start(trigger="available now")
        run.process_all_available()
    for name, windows in windows_s.items():
        sql = queries[name][0] if name in queries else LATER if name == "later" else TWO
        expected = oracle(spark, sources, sql, windows)
        assert expected, name
        assert sorted(map(tuple, engine.results(name).collect()), key=repr) == expected, name
        assert engine.queries()[name].matched == len(expected)
    events = [record.event for record in engine.journal().of(JoinDealt)]
    dealt = {event.query: event.tasks for event in events if isinstance(event, JoinDealt)}
    assert dealt == {"chain": 2, "band": 1}
    passed = [row for row in sources["light"].rows if row[3] > 5]
    assert engine.results("filter").count() == len(passed)
    engine.close()


def answers(engine: Engine, name: str) -> list[Any]:
    return sorted(map(tuple, engine.results(name).collect()), key=repr)


def test_queries_come_and_go_and_see_only_rows_that_arrive_while_they_run(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    rng = random.Random(8)
    del sources["noise"]
    engine = open_engine(spark, tmp_path / "engine", sources)
    rooms = spark.createDataFrame([("hall", 1), ("attic", 2)], "room string, floor int")
    engine.table("rooms", rooms)
    rooms.createOrReplaceTempView("rooms")
    odd, near = (lambda v: v % 2 == 1), (lambda a, b: abs(a - b) < 4)
    for name, function in (("odd", odd), ("near", near)):
        engine.function(name, function)
        spark.udf.register(name, function, "boolean")
    texts = {
        "first": TWO,
        "later": "SELECT room, l.v + t.v AS total FROM light l JOIN temp t USING (room) "
        "WHERE odd(t.v)",
        "table": "SELECT l.v, r.floor FROM light l, temp t, rooms r "
        "WHERE l.k = t.k AND r.room = t.room AND near(l.v, t.v) AND l.v >= t.v - 5",
    }
    begins = {"first": 0, "later": 1, "table": 1}
    arrived: list[dict[str, Rows]] = []
    for batch in range(3):
        for name, begin in begins.items():
            if begin == batch:
                engine.query(name, f"{texts[name]} WINDOW 40 SECONDS")
        arrived.append({name: random_rows(rng, 9, 60) for name in sources})
        for name, source in sources.items():
            source.add(arrived[-1][name])
        run = engine.start(trigger="available now")
        run.process_all_available()
        assert not [state.error for state in engine.queries() if state.error]
    for name, begin in begins.items():
        for stream, source in sources.items():
            source.rows = [row for rows in arrived[begin:] for row in rows[stream]]
        expected = oracle(spark, sources, texts[name], {"l": 40, "t": 40})
        assert expected, name
        assert answers(engine, name) == expected, name
    engine.drop("first")
    engine._folder.catalogue.pause({engine._folder.catalogue.query("later").number: "for a test"})
    before = engine.results("later").count()
    engine.resume("later")
    for source in sources.values():
        source.rows = []
        source.add(random_rows(rng, 9, 60))
    run = engine.start(trigger="available now")
    run.process_all_available()
    fresh = oracle(spark, sources, texts["later"], {"l": 40, "t": 40})
    assert engine.results("later").count() == before + len(fresh)
    engine.close()


REFUSED = [
    ("SELECT v FROM light WINDOW 5 SECONDS", "reads one stream"),
    (TWO, "nothing says how long rows of 'light' are to be kept"),
    (
        "SELECT l.v FROM light l, temp t WHERE l.ts = t.room WINDOW 5 SECONDS",
        "cannot be joined",
    ),
    ("SELECT l.v FROM light l, temp t WINDOW 5 SECONDS", "nothing joins t with the rest"),
    ("SELECT l.v FROM light l LEFT JOIN temp t ON l.k = t.k WINDOW 5 SECONDS", "LEFT JOIN"),
    (f"{TWO.replace('temp', 'timeless')} WINDOW 5 SECONDS", "'timeless' has no event time"),
    ("SELECT l.v FROM light l, temp t WHERE 1 / l.k = t.k WINDOW 5 SECONDS", "could fail"),
]


def test_joins_that_cannot_be_are_refused(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    with open_engine(spark, tmp_path / "engine", sources) as engine:
        engine.stream("timeless", sources["light"].stream())
        for sql, says in REFUSED:
            with pytest.raises(QueryError, match=says):
                engine.query("new", sql)
        assert not engine.queries()


def test_rows_expire_and_damaged_state_is_named(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    del sources["noise"]
    engine = Engine(spark, tmp_path / "engine", seed=1)
    for name, source in sources.items():
        engine.stream(name, source.stream(), time="ts", delay="0 seconds")
    engine.query("two", f"{TWO} WINDOW 10 SECONDS")
    files = tmp_path / "engine" / "state"
    kept: list[int] = []
    for batch in range(3):
        for source in sources.values():
            source.add([(second(20 * batch), "hall", 1, 9)])
        run = engine.start(trigger="available now")
        run.process_all_available()
        kept.append(len(list(files.glob("*.stem"))))
    assert kept[-1] <= 2  # all but the newest have expired
    assert engine.results("two").count() == 3
    late: list[Any] = [(second(5), "hall", 7, 9), (None, "attic", 8, 9), (second(6), "hall", 9, 1)]
    sources["light"].add([*late, (second(40), "attic", 1, 9)])
    run = engine.start(trigger="available now")
    run.process_all_available()
    assert engine.results("two").count() == 3
    rows = run.late("light").collect()
    # The third row is filtered out before it could be late; no join reads k.
    assert {(row.ts and row.ts.second, row.room, row.v, row.k) for row in rows} == {
        (5, "hall", 9, None),
        (None, "attic", 9, None),
    }
    assert run.late("temp").collect() == []
    assert run.batches()[-1].joins.late == {"light": 2}
    assert "2 rows of light were too late" in " ".join(str(run.report()).split())
    with pytest.raises(EngineError, match="no stream 'ligt'; streams are light, temp"):
        run.late("ligt")
    (newest,) = [path for path in files.glob("*.stem") if path.name.startswith("2-")]
    newest.write_bytes(newest.read_bytes()[:-8])
    for source in sources.values():
        source.add([(second(41), "hall", 1, 9)])
    engine.close()
    with Engine(spark, tmp_path / "engine", seed=1) as again:
        for name, source in sources.items():
            again.stream(name, source.stream(), time="ts", delay="0 seconds")
        run = again.start(trigger="available now")
        with pytest.raises(EngineError, match="which micro-batch 2 wrote, is damaged"):
            run.process_all_available()


def test_joins_go_on_without_a_stream_that_stands_still(
    spark: SparkSession, tmp_path: pathlib.Path, sources: dict[str, Source]
) -> None:
    del sources["noise"]
    with Engine(spark, tmp_path / "engine", seed=1) as engine:
        for name, source in sources.items():
            idle = "1 millisecond" if name == "temp" else None
            engine.stream(name, source.stream(), time="ts", idle=idle)
        engine.query("two", f"{TWO} WINDOW 10 SECONDS")
        arrivals = [{"light": 0, "temp": 0}, {"light": 100}, {"light": 200, "temp": 5}]
        for arrived in arrivals:
            for name, number in arrived.items():
                sources[name].add([(second(number), "hall", 1, 9)])
            run = engine.start(trigger="available now")
            run.process_all_available()
            time.sleep(0.01)
        assert engine.results("two").count() == 1
        assert [row.v for row in run.late("temp").collect()] == [9]
        (entry,) = run.journal().of(StreamIdle)
        assert "temp is idle" in entry.event.sentence()
        assert "00:01:40" in entry.event.sentence()
