"""Streams, tables and functions that are removed: the others lose and repeat no row."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import eddyline as el
from tests.spark.test_engine import Feed

SCHEMA = "id int, a int"


@pytest.fixture
def feeds(spark: Any, tmp_path: pathlib.Path) -> dict[str, Feed]:
    feeds = {}
    for at, name in enumerate(("one", "two", "three")):
        feeds[name] = Feed(spark, tmp_path / name, SCHEMA)
        feeds[name].put([(100 * at + n, n) for n in range(5)])
    return feeds


def run_and_read(engine: Any, name: str) -> list[int]:
    engine.start("available now").process_all_available()
    return sorted(row.id for row in engine.results(name).collect())


def test_a_stream_that_no_micro_batch_read_is_removed(
    spark: Any, tmp_path: pathlib.Path, feeds: dict[str, Feed]
) -> None:
    path = tmp_path / "engine"
    with el.Engine(spark, path) as engine:
        for name in ("one", "two"):
            engine.stream(name, feeds[name].stream())
        engine.query("a", "SELECT id FROM one WHERE a > 1")
        engine.query("b", "SELECT id FROM two WHERE a > 2")
        with pytest.raises(el.EngineError, match="stream 'one' is used by the queries a; drop"):
            engine.remove_stream("one")
        with pytest.raises(el.EngineError, match="no stream 'ten'; there are one, two"):
            engine.remove_stream("ten")
        engine.drop("a")
        # As if a start had ended before the first micro-batch: sources noted their files.
        log = path / "checkpoint" / "sources" / "0"
        log.mkdir(parents=True)
        (log / "0").write_text("v1\n")
        (path / "streams.json").write_text('["one","two"]')
        engine.remove_stream("one")
        assert run_and_read(engine, "b") == [103, 104]
    with el.Engine(spark, path) as engine:  # number 0 is now `two`, in the folder as well
        engine.stream("two", feeds["two"].stream())
        feeds["two"].put([(200, 9)])
        assert run_and_read(engine, "b") == [103, 104, 200]
        engine.drop("b")
        with pytest.raises(el.EngineError, match=r"'two' took part.*another folder"):
            engine.remove_stream("two")
        # A stream that was registered later has no offsets: it can go, and the others go on.
        engine.stream("three", feeds["three"].stream())
        with pytest.raises(el.EngineError, match=r"engine.remove_stream\('three'\)"):
            engine.start("available now")
        engine.remove_stream("three")
        engine.query("c", "SELECT id FROM two")
        feeds["two"].put([(201, 0)])
        run = engine.start("1 second")
        with pytest.raises(el.EngineError, match="stop it before removing the stream 'two'"):
            engine.remove_stream("two")
        run.process_all_available()
        assert [row.id for row in engine.results("c").collect()] == [201]


def test_tables_and_functions_are_removed_unless_a_query_uses_them(
    spark: Any, tmp_path: pathlib.Path, feeds: dict[str, Feed]
) -> None:
    path = tmp_path / "engine"
    joined = "SELECT s.id FROM one s, odd WHERE s.a = odd.a AND is_big(s.id)"

    def register(engine: Any, answer: bool) -> None:
        engine.stream("one", feeds["one"].stream())
        engine.function("is_big", lambda id: answer)
        odd = spark.createDataFrame([(1,), (3,)] if answer else [(2,)], "a int")
        engine.table("odd", odd)

    with el.Engine(spark, path) as engine:
        register(engine, True)
        engine.query("q", joined)
    with el.Engine(spark, path) as engine:
        # The function is not registered, so the query cannot be compiled: it still counts.
        with pytest.raises(el.EngineError, match="table 'odd' is used by the queries q; drop"):
            engine.remove_table("odd")
        with pytest.raises(el.EngineError, match="function 'is_big' is used by the queries q"):
            engine.remove_function("is_big")
        engine.drop("q")
        engine.remove_table("odd")
        engine.remove_function("is_big")
        with pytest.raises(el.EngineError, match="no table 'odd'"):
            engine.remove_table("odd")
    with el.Engine(spark, path) as engine:
        engine.stream("one", feeds["one"].stream())
        with pytest.raises(el.QueryError, match="no stream or table 'odd'"):
            engine.query("q", joined)
        engine.function("is_big", lambda id: True, "boolean")
        engine.table("odd", spark.createDataFrame([("x", 2)], "name string, a int"))
        engine.query("q", joined)
        assert run_and_read(engine, "q") == [2]
