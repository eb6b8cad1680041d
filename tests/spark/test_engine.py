"""An engine against Spark SQL: query by query, with queries coming and going."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
from collections import Counter
from typing import Any

import pytest

import eddyline as el
from eddyline.journal.events import EngineStarted, QueryPaused
from tests.spark import random_sql
from tests.spark.random_sql import FUNCTIONS, ROOMS, SCHEMA

ROOM_ROWS = [("a", 1, "attic"), ("ab", 2, "hall"), ("ab", 3, "cellar"), (None, 4, "nowhere")]


class Feed:
    """A folder that a stream reads, a file a micro-batch."""

    def __init__(self, spark: Any, folder: pathlib.Path, schema: str = SCHEMA) -> None:
        self.spark, self.folder, self.schema = spark, str(folder), schema
        folder.mkdir()

    def put(self, rows: list[tuple[Any, ...]]) -> None:
        frame = self.spark.createDataFrame(rows, self.schema).coalesce(1)
        frame.write.mode("append").parquet(self.folder)

    def stream(self) -> Any:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(self.folder)


def as_counter(df: Any) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in df.collect())


def answer(spark: Any, sql: str, rows: list[tuple[Any, ...]], schema: str = SCHEMA) -> Any:
    """What Spark itself answers over the rows."""
    spark.createDataFrame(rows, schema).createOrReplaceTempView("events")
    spark.createDataFrame(ROOM_ROWS, ROOMS).createOrReplaceTempView("rooms")
    for name, (function, returns) in FUNCTIONS.items():
        spark.udf.register(name, function, returns)
    return spark.sql(sql)


@pytest.fixture
def feed(spark: Any, tmp_path: pathlib.Path) -> Feed:
    return Feed(spark, tmp_path / "source")


@pytest.fixture
def engine(spark: Any, feed: Feed, tmp_path: pathlib.Path) -> Any:
    with el.Engine(spark, tmp_path / "engine", seed=0) as made:
        made.stream("events", feed.stream())
        yield made


def add_functions(engine: Any) -> None:
    for name, (function, returns) in FUNCTIONS.items():
        engine.function(name, function, returns)


def add_some(engine: Any, rng: random.Random, name: str) -> str:
    """Add a random query that the engine does not refuse."""
    while True:
        text = random_sql.query(rng)
        with contextlib.suppress(el.QueryError):
            engine.query(name, text)
            return text


def test_no_random_query_is_refused(spark: Any, engine: Any) -> None:
    rng = random.Random(9)
    engine.table("rooms", spark.createDataFrame(ROOM_ROWS, ROOMS))
    add_functions(engine)
    said = []
    for n in range(8):
        try:
            engine.query(f"q{n}", random_sql.query(rng))
        except el.QueryError as error:
            said.append(str(error))
    assert not said


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_query_answers_as_spark_does(spark: Any, engine: Any, feed: Feed, seed: int) -> None:
    rng = random.Random(seed)
    engine.table("rooms", spark.createDataFrame(ROOM_ROWS, ROOMS))
    add_functions(engine)
    run = engine.start("50 milliseconds")
    seen: dict[str, list[tuple[Any, ...]]] = {}
    texts: dict[str, str] = {}
    for step in range(3):
        for n in range(6):
            name = f"q{step}_{n}"
            texts[name] = add_some(engine, rng, name)
            seen[name] = []
        for name in rng.sample(list(seen), 2):
            engine.drop(name)
            del seen[name], texts[name]
        rows = random_sql.rows(rng, 60, 100 * step)
        feed.put(rows)
        run.process_all_available()
        for own in seen.values():
            own.extend(rows)
    run.stop()
    assert not [state for state in engine.queries() if state.error]
    for name, own in seen.items():
        expected = as_counter(answer(spark, texts[name], own))
        assert as_counter(engine.results(name)) == expected, texts[name]


def test_two_streams_are_read_as_one(spark: Any, engine: Any, feed: Feed, tmp_path: Any) -> None:
    other = Feed(spark, tmp_path / "other", "k string, v double")
    engine.stream("readings", other.stream())
    engine.query("small", "SELECT id FROM events WHERE a < 5")
    engine.query("large", "SELECT k, v FROM readings WHERE v > 1 OR k = 'x'")
    engine.query("long", "SELECT k FROM readings WHERE length(k) > 1")
    rows = random_sql.rows(random.Random(1), 50, 0)
    feed.put(rows)
    other.put([("x", 0.5), ("yy", 2.0), ("z", None)])
    run = engine.start("50 milliseconds")
    run.process_all_available()
    assert as_counter(run.results("small")) == as_counter(
        answer(spark, "SELECT id FROM events WHERE a < 5", rows)
    )
    assert sorted(tuple(r) for r in run.results("large").collect()) == [("x", 0.5), ("yy", 2.0)]
    assert [r.k for r in run.results("long").collect()] == ["yy"]


def test_an_engine_goes_on_where_it_was(spark: Any, feed: Feed, tmp_path: Any) -> None:
    path = tmp_path / "engine"
    text = "SELECT id FROM events WHERE id >= 0"
    for first in (0, 100):
        with el.Engine(spark, path) as engine:
            engine.stream("events", feed.stream())
            engine.query("all", text)
            feed.put(random_sql.rows(random.Random(first), 10, first))
            engine.start("available now").process_all_available()
            assert engine.queries()["all"].matched == 10 if first == 0 else 20
    with el.Engine(spark, path) as engine:  # nothing registered: results can be read all the same
        assert engine.results("all").count() == 20


def test_results_go_where_they_are_sent(engine: Any, feed: Feed, tmp_path: Any) -> None:
    alerts: list[Any] = []
    written = str(tmp_path / "written")
    engine.query("rows", "SELECT id FROM events WHERE id < 3", sink=el.callback(alerts.extend))
    engine.query(
        "frames",
        "SELECT id, a + 1 AS next FROM events WHERE id < 2",
        sink=lambda df, batch: df.write.mode("append").parquet(written),
    )
    engine.query("counted", "SELECT * FROM events WHERE id < 9", sink="count")
    engine.query("none", "SELECT * FROM events WHERE id < 0", sink=lambda df, batch: 1 / 0)
    feed.put(random_sql.rows(random.Random(0), 20, 0))
    engine.start("available now").process_all_available()
    assert sorted(row.id for row in alerts) == [0, 1, 2]
    assert sorted(row.id for row in engine.spark.read.parquet(written).collect()) == [0, 1]
    states = engine.queries()
    assert states["counted"].matched == 9
    assert states["none"].state == "active"  # never called: there were no results
    with pytest.raises(el.EngineError, match="only counted"):
        engine.results("counted")


def test_one_failing_query_leaves_the_others_alone(spark: Any, engine: Any, feed: Feed) -> None:
    def brittle(id: int) -> bool:
        if id == 7:
            raise ValueError("seven")
        return True

    def broken(df: Any, batch: int) -> None:
        raise OSError(28, "No space left on device")

    engine.function("brittle", brittle)
    engine.query("python", "SELECT id FROM events WHERE brittle(id)")
    engine.query("guarded", "SELECT id FROM events WHERE id <> 7 AND brittle(id)")
    engine.query("sink", "SELECT id FROM events", sink=broken)
    engine.query("division", "SELECT id FROM events WHERE 1 / (id - 5) > 0")
    engine.query("fine", "SELECT id FROM events WHERE id < 4")
    feed.put(random_sql.rows(random.Random(0), 10, 0))
    run = engine.start("50 milliseconds")
    run.process_all_available()
    states = engine.queries()
    assert {s.name for s in states if s.state == "paused"} == {"python", "sink", "division"}
    assert "seven" in states["python"].error
    assert "No space left" in states["sink"].error
    assert "DIVIDE_BY_ZERO" in states["division"].error
    assert run.results("guarded").count() == 9
    assert run.results("fine").count() == 4
    assert {r.numbers["query"] for r in run.journal().of(QueryPaused)} == {
        "python",
        "sink",
        "division",
    }
    engine.resume("python")
    feed.put(random_sql.rows(random.Random(0), 5, 100))
    run.process_all_available()
    assert sorted(r.id for r in run.results("python").collect()) == [100, 101, 102, 103, 104]


def test_a_query_sees_only_what_comes_after_it(engine: Any, feed: Feed) -> None:
    run = engine.start("50 milliseconds")
    feed.put(random_sql.rows(random.Random(0), 5, 0))
    run.process_all_available()
    engine.query("all", "SELECT id FROM events")
    assert run.results("all").count() == 0
    feed.put(random_sql.rows(random.Random(0), 5, 100))
    run.process_all_available()
    assert sorted(r.id for r in run.results("all").collect()) == [100, 101, 102, 103, 104]
    engine.drop("all")
    engine.query("all", "SELECT id FROM events WHERE id > 1000")  # another query, the same slot
    feed.put(random_sql.rows(random.Random(0), 5, 1_000))
    run.process_all_available()
    assert sorted(r.id for r in run.results("all").collect()) == [1001, 1002, 1003, 1004]


def test_a_replaced_table_holds_from_the_next_micro_batch(
    spark: Any, engine: Any, feed: Feed
) -> None:
    engine.table("rooms", spark.createDataFrame([("a", 1, "old")], ROOMS))
    engine.query("named", "SELECT id, name FROM events, rooms WHERE s = room")
    run = engine.start("50 milliseconds")
    row = (None,) * 8
    feed.put([(1, 1, 0.0, "a", *row), (2, 1, 0.0, "b", *row)])
    run.process_all_available()
    engine.table("rooms", spark.createDataFrame([("b", 1, "new")], ROOMS))
    feed.put([(3, 1, 0.0, "a", *row), (4, 1, 0.0, "b", *row)])
    run.process_all_available()
    found = sorted(tuple(row) for row in run.results("named").collect())
    assert found == [(1, "old"), (4, "new")]


def test_late_rows_count_and_are_told(spark: Any, tmp_path: Any) -> None:
    import datetime

    feed = Feed(spark, tmp_path / "source", "id long, at timestamp")
    noon = datetime.datetime(2024, 1, 1, 12)
    minute = datetime.timedelta(minutes=1)
    with el.Engine(spark, tmp_path / "engine") as engine:
        engine.stream("events", feed.stream(), time="at", delay="90 seconds")
        engine.query("all", "SELECT id FROM events")
        run = engine.start("50 milliseconds")
        feed.put([(1, noon)])
        run.process_all_available()
        feed.put([(2, noon - minute), (3, noon - 2 * minute), (4, None)])
        run.process_all_available()
        assert run.results("all").count() == 4
        assert [batch.late for batch in run.report().batches] == [0, 1]
        assert "1 row came later than the delay" in repr(run.report())


def test_report_and_journal_tell_what_happened(engine: Any, feed: Feed) -> None:
    engine.query("small", "SELECT id FROM events WHERE id < 3 AND a > -100")
    feed.put(random_sql.rows(random.Random(0), 20, 0))
    run = engine.start("available now")
    run.process_all_available()
    report = run.report().to_dict()
    assert report["rows"] == 20
    assert report["batches"][0]["matches"] == report["queries"][0]["matched"]
    assert set(report["batches"][0]["operators"]["events"]) == {"id", "a"}
    assert report["queries"][0]["cost_s"] > 0
    assert "small" in run.report()._repr_html_()
    assert isinstance(next(iter(run.journal())).event, EngineStarted)


def test_what_workers_learn_is_in_the_plan_of_later_micro_batches(engine: Any, feed: Feed) -> None:
    engine.query("small", "SELECT id FROM events WHERE id < 3 AND a > -100")
    for first in (0, 20, 40):
        feed.put(random_sql.rows(random.Random(0), 20, first))
    engine.start("available now").process_all_available()
    (stream,) = engine._planner._last[1].eddies.streams
    assert set(stream.learnt) == {"id", "a"}
    assert stream.learnt["id"].cost_us > 0


def test_python_functions_are_called_on_rows_that_comparisons_leave(
    engine: Any, feed: Feed, tmp_path: pathlib.Path
) -> None:
    """In the first micro-batch too, in which no worker has learnt anything."""
    calls = str(tmp_path / "calls")

    def counted(id: int) -> bool:
        with open(calls, "ab") as file:
            file.write(b".")
        return id % 2 == 0

    engine.function("counted", counted)
    for n in range(10):
        engine.query(f"q{n}", f"SELECT id FROM events WHERE counted(id) AND id < {20 + n}")
    engine.query("all", "SELECT id FROM events WHERE id >= 0")
    for first in (0, 1_000):  # 29 rows of the first thousand qualify
        feed.put(random_sql.rows(random.Random(0), 1_000, first))
        engine.start("available now").process_all_available()
    assert engine.queries()["q9"].matched == 15
    assert 29 <= os.path.getsize(calls) <= 1.1 * 29


class Raising(el.Policy):
    """A policy of a user's own, whose use in a worker shows as an error."""

    name = "raising"

    def learn(self, evidence: Any) -> None:
        raise LookupError(f"asked to learn from {evidence.rows} rows")


@pytest.mark.parametrize("policy", ["tickets", "agreedy", el.Sweep()])
def test_every_policy_gives_the_same_matches(
    spark: Any, feed: Feed, tmp_path: pathlib.Path, policy: Any
) -> None:
    text = "SELECT id FROM events WHERE id < 15 AND a > -100"
    rows = random_sql.rows(random.Random(0), 20, 0)
    feed.put(rows)
    with el.Engine(spark, tmp_path / "engine", policy=policy) as engine:
        engine.stream("events", feed.stream())
        engine.query("small", text)
        run = engine.start("available now")
        run.process_all_available()
        assert as_counter(run.results("small")) == as_counter(answer(spark, text, rows))
        (batch,) = run.report().batches
        work = batch.operators["events"]
        assert set(work) == {"id", "a"}
        assert all((own.tickets is not None) == (policy == "tickets") for own in work.values())


def test_workers_use_the_policy_that_the_engine_was_given(
    spark: Any, feed: Feed, tmp_path: pathlib.Path
) -> None:
    feed.put(random_sql.rows(random.Random(0), 20, 0))
    with el.Engine(spark, tmp_path / "engine", policy=Raising()) as engine:
        engine.stream("events", feed.stream())
        engine.query("small", "SELECT id FROM events WHERE id < 3")
        with pytest.raises(el.EngineError, match="asked to learn from 20 rows"):
            engine.start("available now").process_all_available()


@pytest.mark.parametrize(
    "condition",
    [
        "s = 'a''b' OR s = 'a'",
        "log10(a) >= 1",
        "ts >= CAST('2024-01-10 12:00:00' AS DATE)",
        "regexp_like(s, 'b') = false",
        "a <> 0 AND half(10 / a) > 1",
        "half(a) > 2 OR s IS NULL",
        "NOT (half(a) <= 2)",
        "2 < half(a) AND whole(a) = 4",
    ],
)
def test_what_spark_means_is_what_is_done(
    spark: Any, engine: Any, feed: Feed, condition: str
) -> None:
    def half(a: float | None) -> float | None:
        return None if a is None else float(a) / 2

    engine.function("half", half, "double")
    engine.function("whole", lambda a: a and a // 1, "double")  # an int: Spark casts it
    rows = random_sql.rows(random.Random(5), 80, 0)
    feed.put(rows)
    engine.query("q", f"SELECT id FROM events WHERE {condition}")
    engine.start("available now").process_all_available()
    spark.udf.register("half", half, "double")
    spark.udf.register("whole", lambda a: a and a // 1, "double")
    expected = answer(spark, f"SELECT id FROM events WHERE {condition}", rows)
    assert not engine.queries()["q"].error
    assert as_counter(engine.results("q")) == as_counter(expected)


def test_an_argument_that_fails_pauses_its_query_alone(engine: Any, feed: Feed) -> None:
    engine.function("truth", lambda a: True)
    engine.query("division", "SELECT id FROM events WHERE truth(10 / a)")
    engine.query("fine", "SELECT id FROM events WHERE truth(a)")
    row = (0.0, "a", *(None,) * 8)
    feed.put([(1, 0, *row), (2, 2, *row)])
    engine.start("available now").process_all_available()
    assert "DIVIDE_BY_ZERO" in engine.queries()["division"].error
    assert engine.results("fine").count() == 2


def test_a_stop_blames_no_query(engine: Any, feed: Feed) -> None:
    import time

    def slow(df: Any, batch: int) -> None:
        df.collect()
        time.sleep(2)
        df.collect()

    engine.query("slow", "SELECT id FROM events", sink=slow)
    feed.put(random_sql.rows(random.Random(0), 5, 0))
    run = engine.start("50 milliseconds")
    time.sleep(2.5)
    run.stop()
    assert engine.queries()["slow"].error is None
