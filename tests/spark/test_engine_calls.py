"""A Python function in an engine is called on rows that comparisons leave, and on no others.

Every call is counted, in whatever worker process it happens.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import eddyline as el
from tests.spark.test_engine import Feed

SCHEMA = "a int, b int, c int, v int"
ROWS = 4_000
Row = tuple[int | None, int, int, int]

#: Conditions of queries that call the function, and the rows on which it decides.
CALLING: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "and": ("a > 95 AND b > 20 AND is_even(v)", lambda r: (r["a"] > 95) & (r["b"] > 20)),
    "or before": (
        "(a > 97 OR b > 98) AND c > 10 AND is_even(v)",
        lambda r: ((r["a"] > 97) | (r["b"] > 98)) & (r["c"] > 10),
    ),
    "nested": (
        "((a > 90 AND b > 90) OR (b < 5 AND c < 20)) AND is_even(v)",
        lambda r: ((r["a"] > 90) & (r["b"] > 90)) | ((r["b"] < 5) & (r["c"] < 20)),
    ),
    "or itself": (
        "c > 96 AND (a > 10 OR is_even(v))",
        lambda r: (r["c"] > 96) & ~(r["a"] > 10),
    ),
}


def counting(folder: str) -> Callable[[int], bool]:
    """Return a function that writes a byte for each call to a file of its process."""

    def is_even(value: int) -> bool:
        with open(f"{folder}/{os.getpid()}", "ab", buffering=0) as file:
            file.write(b".")
        return value % 2 == 0

    return is_even


class Calls:
    """Counts calls since the last time, and the processes that made them."""

    def __init__(self, folder: pathlib.Path) -> None:
        folder.mkdir()
        self.folder, self._before = folder, 0

    def since(self) -> int:
        now = sum(file.stat().st_size for file in self.folder.iterdir())
        taken, self._before = now - self._before, now
        return taken

    def workers(self) -> int:
        return len(list(self.folder.iterdir()))


@contextlib.contextmanager
def new_worker_for_each_task(spark: Any) -> Iterator[None]:
    """Let no process of a worker be used again; else Spark ends one that is idle for a minute."""
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.python.worker.reuse", "false")
    try:
        yield
    finally:
        conf.set("spark.python.worker.reuse", "true")


def make_rows(rng: np.random.Generator) -> list[Row]:
    columns = rng.integers(0, 100, (3, ROWS))
    is_null = rng.random(ROWS) < 0.05
    return [
        (None if null else int(a), int(b), int(c), int(v))
        for a, b, c, v, null in zip(*columns, rng.integers(0, 10**6, ROWS), is_null, strict=True)
    ]


def decisive(rows: list[Row], names: list[str]) -> int:
    """Return the number of rows on which the function decides for one of the queries."""
    columns = {
        name: np.array([-1 if row[n] is None else row[n] for row in rows])
        for n, name in enumerate("abcv")
    }
    counted = np.zeros(len(rows), dtype=bool)
    for name in names:
        counted |= CALLING[name][1](columns)
    return int(counted.sum())


def open_engine(spark: Any, feed: Feed, calls: Calls, path: pathlib.Path) -> Any:
    engine = el.Engine(spark, path, seed=0)
    engine.stream("events", feed.stream().repartition(4))
    engine.function("is_even", counting(str(calls.folder)))
    return engine


def text(condition: str) -> str:
    return f"SELECT a, v FROM events WHERE {condition}"


def test_a_function_is_called_on_rows_that_comparisons_leave(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    rng = np.random.default_rng(0)
    feed, calls = Feed(spark, tmp_path / "source", SCHEMA), Calls(tmp_path / "calls")
    seen: list[str] = []

    def check(run: Any, what: str) -> None:
        rows = make_rows(rng)
        feed.put(rows)
        run.process_all_available()
        wanted, made = decisive(rows, seen), calls.since()
        assert wanted <= made <= 1.1 * wanted, f"{what}: {made} calls, {wanted} rows qualify"

    with open_engine(spark, feed, calls, tmp_path / "engine") as engine:
        engine.add({f"q{n}": text(f"a > {n} AND b < {90 - n}") for n in range(40)}, sink="count")
        run = engine.start("50 milliseconds")
        check(run, "comparisons only")
        for names in (["and"], [name for name in CALLING if name != "and"]):
            engine.add({name: text(CALLING[name][0]) for name in names})  # live: eddies have learnt
            seen += names
            check(run, f"{names} are new")
        check(run, "as before")
        before = calls.workers()
        assert before > 1
        with new_worker_for_each_task(spark):
            check(run, "new workers")
            check(run, "new workers again")
        assert calls.workers() >= before + 4
        engine.drop("or itself")
        seen.remove("or itself")
        check(run, "one dropped")
    with open_engine(spark, feed, calls, tmp_path / "engine") as engine:
        run = engine.start("50 milliseconds")
        check(run, "opened again")
