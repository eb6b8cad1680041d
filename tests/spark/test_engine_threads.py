"""An engine used by several threads at once."""

from __future__ import annotations

import pathlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import eddyline as el
from eddyline.journal.events import EngineStopped
from tests.spark.test_engine import Feed

SCHEMA = "id int, a int"
SECONDS = 2.5


@pytest.fixture
def feed(spark: Any, tmp_path: pathlib.Path) -> Feed:
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    feed.put([(n, n % 10) for n in range(50)])
    return feed


def run_all(actions: list[Callable[[], None]]) -> list[BaseException]:
    """Run each action in a thread of its own; return what they raised."""
    raised: list[BaseException] = []

    def run(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(action,), daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread waits without end"
    return raised


def test_four_threads_add_drop_and_read_while_micro_batches_run(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    path, end = tmp_path / "engine", time.monotonic() + SECONDS
    with el.Engine(spark, path) as engine:
        engine.stream("events", feed.stream())
        engine.table("names", spark.createDataFrame([(1, "x"), (2, "y")], "a int, name string"))
        engine.query("all", "SELECT id FROM events")
        engine.query("named", "SELECT e.id FROM events e, names n WHERE e.a = n.a")
        run = engine.start("0 seconds")

        def add_and_drop(seed: int) -> None:
            rng, number, mine = random.Random(seed), 0, list[str]()
            while time.monotonic() < end:
                if mine and rng.random() < 0.4:
                    engine.drop(mine.pop(rng.randrange(len(mine))))
                else:
                    number += 1
                    names = [f"q{seed}_{number}_{n}" for n in range(rng.randint(1, 3))]
                    text = f"SELECT id FROM events WHERE a > {number % 9}"
                    engine.add(dict.fromkeys(names, text))
                    mine += names
                if mine:
                    engine.results(rng.choice(mine))
            for name in mine:
                engine.drop(name)

        def read_what_others_drop() -> None:
            while time.monotonic() < end:
                for state in list(engine.queries())[:10]:
                    try:
                        engine.results(state.name).count()
                    except el.EngineError as error:
                        if f"no query {state.name!r}" not in str(error):
                            raise

        def feed_and_replace_table() -> None:
            number = 50
            while time.monotonic() < end:
                feed.put([(number + n, n) for n in range(10)])
                number += 10
                names = [(1, f"x{number}"), (2, "y")]
                engine.table("names", spark.createDataFrame(names, "a int, name string"))

        actions = [lambda: add_and_drop(1), lambda: add_and_drop(2)]
        assert run_all([*actions, read_what_others_drop, feed_and_replace_table]) == []
        run.process_all_available()
        rows = spark.read.schema(SCHEMA).parquet(feed.folder).collect()
        read = sorted(row.id for row in engine.results("all").collect())
        assert read == sorted(row.id for row in rows)
        named = sorted(row.id for row in engine.results("named").collect())
        assert named == sorted(row.id for row in rows if row.a in (1, 2))
        assert engine._queries._compiled.keys() <= {1, 2}  # nothing is kept of dropped queries
    assert [state.name for state in el.Engine(spark, path).queries()] == ["all", "named"]


def test_stops_and_closes_from_several_threads(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    path, said = tmp_path / "engine", list[str]()
    engine = el.Engine(spark, path)
    engine.stream("events", feed.stream())

    def sink(results: Any, batch: int) -> None:
        for call in (run.stop, engine.close):
            with pytest.raises(el.EngineError) as raised:
                call()
            said.append(str(raised.value))
        engine.function(f"f{batch}", len, "int")  # would wait for a close that waits for it

    engine.query("q", "SELECT id FROM events", sink=sink)
    run = engine.start("0 seconds")
    with pytest.raises(el.EngineError, match="is open already"):
        el.Engine(spark, path)
    run.process_all_available()
    assert len(said) == 2
    assert all("another thread" in text for text in said)
    feed.put([(1, 1)])
    assert run_all([run.stop, engine.close, run.stop, engine.close]) == []
    assert len(engine.journal().of(EngineStopped)) == 1
    with pytest.raises(el.EngineError, match="closed"):
        engine.start()
    for call in (lambda: engine.drop("q"), lambda: engine.table("t", spark.range(1))):
        with pytest.raises(el.EngineError, match="closed"):
            call()
    el.Engine(spark, path).close()


def test_one_of_several_starts_wins(spark: Any, tmp_path: pathlib.Path, feed: Feed) -> None:
    with el.Engine(spark, tmp_path / "engine") as engine:
        engine.stream("events", feed.stream())
        engine.query("q", "SELECT id FROM events", sink="count")
        raised = run_all([lambda: engine.start("1 second") and None] * 4)
        assert [str(error) for error in raised] == [
            "the engine runs; stop it before starting it again"
        ] * 3
