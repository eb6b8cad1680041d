"""An engine that is opened again: its queries are checked as when they were added."""

from __future__ import annotations

import json
import pathlib
import time
import zlib
from typing import Any

import pytest

import eddyline as el
from eddyline.spark.engine.catalogue import FILE
from tests.spark.test_engine import Feed

SCHEMA = "a int, b string"


@pytest.fixture
def feed(spark: Any, tmp_path: pathlib.Path) -> Feed:
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    feed.put([(n, "xyz"[n % 3]) for n in range(100)])
    return feed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM s WHERE reflect('java.lang.System', 'exit', 1) = 'x'", "reflect"),
        ("SELECT * FROM s WHERE a > 3 AND b = '__eddyline_stream'", "reserved"),
    ],
)
def test_a_query_that_someone_wrote_into_the_catalogue_is_refused(
    spark: Any, tmp_path: pathlib.Path, feed: Feed, text: str, said: str
) -> None:
    path = tmp_path / "engine"
    with el.Engine(spark, path) as engine:
        engine.stream("s", feed.stream())
        engine.add({f"q{n}": f"SELECT * FROM s WHERE a > {n} AND b = 'x'" for n in range(5)})
        version = engine._folder.catalogue.version
    queries = [[6, "hostile", text, "count"]]
    change = json.dumps({"version": version + 1, "kind": "queries", "queries": queries})
    with (path / FILE).open("a") as file:
        file.write(f"{zlib.crc32(change.encode()):08x} {change}\n")
    with el.Engine(spark, path) as engine:
        engine.stream("s", feed.stream())
        with pytest.raises(el.QueryError, match=f"query 'hostile': .*{said}"):
            engine.start()


@pytest.mark.slow
def test_twenty_thousand_comparisons_are_added_and_reopened_in_seconds(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    path = tmp_path / "engine"
    texts = {f"q{n}": f"SELECT * FROM s WHERE a > {n % 97} AND b = 'x{n}'" for n in range(20_000)}

    def run(engine: Any) -> None:
        engine.start("1 second").process_all_available()

    with el.Engine(spark, path) as engine:
        engine.stream("s", feed.stream())
        began = time.perf_counter()
        engine.add(texts, sink="count")
        assert time.perf_counter() - began < 5
        run(engine)  # what Spark does only once is not measured
    feed.put([(1, "x")])
    began = time.perf_counter()
    with el.Engine(spark, path) as engine:
        engine.stream("s", feed.stream())
        run(engine)
        assert time.perf_counter() - began < 6
