"""A stream that is registered again with other columns."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import eddyline as el
from tests.spark.test_engine import Feed

OLD = [(1, "x"), (2, "y")]
QUERIES = {
    "all": "SELECT * FROM events WHERE a > 0",
    "some": "SELECT a FROM events WHERE b LIKE 'x%'",
}


@pytest.fixture
def feed(spark: Any, tmp_path: pathlib.Path) -> Feed:
    feed = Feed(spark, tmp_path / "source", "a int, b string")
    feed.put(OLD)
    return feed


def process(engine: el.Engine) -> None:
    engine.start(trigger="available now").process_all_available()


def results(engine: el.Engine, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in engine.results(name).collect())


def test_a_new_column_is_null_in_what_was_stored_before(spark, feed, tmp_path):
    path = tmp_path / "engine"
    with el.Engine(spark, path) as engine:
        engine.stream("events", feed.stream())
        engine.add(QUERIES)
        process(engine)
    feed.schema = "a int, c double, b string"
    feed.put([(3, 0.5, "x"), (4, None, "y")])
    with el.Engine(spark, path) as engine:
        assert results(engine, "all") == OLD
        engine.stream("events", feed.stream())
        engine.query("new", "SELECT a FROM events WHERE c < 1 AND length(b) = 1")
        process(engine)
        assert results(engine, "all") == [
            (1, None, "x"),
            (2, None, "y"),
            (3, 0.5, "x"),
            (4, None, "y"),
        ]
        assert results(engine, "some") == [(1,), (3,)]
        assert results(engine, "new") == [(3,)]
    with el.Engine(spark, path) as engine:  # the catalogue has the new column
        engine.stream("events", feed.stream())
        assert results(engine, "all")[0] == (1, None, "x")


@pytest.mark.parametrize(
    ("schema", "dropped", "said"),
    [
        ("a int", ["all"], "query 'some' uses the column 'b' of stream 'events', which is gone"),
        ("b string", ["some"], "query 'all' uses the column 'a'"),
        ("a int, b date", ["all"], "query 'some' uses the column 'b' .* was string and is date"),
        ("a int, b date", ["all", "some"], "stored results have the column 'b' .* as string"),
        ("a int", ["all", "some"], None),
    ],
)
def test_what_something_needs_cannot_be_lost(spark, feed, tmp_path, schema, dropped, said):
    path = tmp_path / "engine"
    with el.Engine(spark, path) as engine:
        engine.stream("events", feed.stream())
        engine.add(QUERIES)
        engine.query("other", "SELECT a FROM events WHERE a > 1", "count")
        process(engine)
        engine.drop("other")
    feed.schema = schema
    with el.Engine(spark, path) as engine:
        for name in dropped:
            engine.drop(name)
        if said is None:
            engine.stream("events", feed.stream())
        else:
            with pytest.raises(el.EngineError, match=said):
                engine.stream("events", feed.stream())


def test_a_join_keeps_its_state_when_a_stream_gains_a_column(spark, tmp_path):
    path = tmp_path / "engine"
    left = Feed(spark, tmp_path / "left", "k int, t timestamp")
    right = Feed(spark, tmp_path / "right", "k int, t timestamp")
    at = "2024-01-01 00:00:0"

    def put(feed: Feed, *rows: str) -> None:
        frame = spark.sql(" UNION ALL ".join(f"SELECT {row}" for row in rows))
        frame.coalesce(1).write.mode("append").parquet(feed.folder)

    put(left, f"1 AS k, TIMESTAMP'{at}1' AS t")
    put(right, f"9 AS k, TIMESTAMP'{at}1' AS t")
    text = "SELECT l.*, r.k AS rk FROM left l, right r WHERE l.k = r.k WINDOW 1 MINUTE"
    text = text.replace("left l", "lefts l").replace("right r", "rights r")
    with el.Engine(spark, path) as engine:
        engine.stream("lefts", left.stream(), time="t")
        engine.stream("rights", right.stream(), time="t")
        engine.query("pairs", text)
        process(engine)
    left.schema = "k int, t timestamp, v int"
    put(left, f"2 AS k, TIMESTAMP'{at}2' AS t, 7 AS v")
    put(right, f"1 AS k, TIMESTAMP'{at}3' AS t", f"2 AS k, TIMESTAMP'{at}3' AS t")
    with el.Engine(spark, path) as engine:
        engine.stream("lefts", left.stream(), time="t")
        engine.stream("rights", right.stream(), time="t")
        process(engine)
        found = sorted((row.k, row.v, row.rk) for row in engine.results("pairs").collect())
        assert found == [(1, None, 1), (2, 7, 2)]
