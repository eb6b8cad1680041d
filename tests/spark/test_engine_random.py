"""Many random conditions at once: an engine keeps the rows that Spark's own filter keeps."""

from __future__ import annotations

import contextlib
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import functions as F

import eddyline as el
from tests.spark import random_sql
from tests.spark.test_engine import Feed, add_functions


@contextlib.contextmanager
def setting(spark: Any, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


def wrong_answers(
    spark: Any, folder: pathlib.Path, seed: int, count: int, ansi: bool
) -> tuple[list[str], list[str]]:
    """Return the conditions that were answered otherwise than by Spark, and those refused."""
    rng = random.Random(seed)
    feed = Feed(spark, folder / "source")
    rows = random_sql.rows(rng, 80, 0)
    feed.put(rows)
    conditions: dict[str, str] = {}
    refused = []
    with el.Engine(spark, folder / "engine", seed=0) as engine:
        engine.stream("events", feed.stream())
        add_functions(engine)
        for n in range(count):
            condition = random_sql.condition(rng, ansi=ansi)
            try:
                engine.query(f"q{n}", f"SELECT id FROM events e WHERE {condition}")
                conditions[f"q{n}"] = condition
            except el.QueryError as error:
                refused.append(f"{condition}: {error}")
        run = engine.start("available now")
        run.process_all_available()
        numbers = {entry.name: entry.number for entry in engine._folder.catalogue.named()}
        errors = {state.name: state.error for state in engine.queries() if state.error}
        stored = spark.read.parquet(*map(str, (folder / "engine" / "results").glob("batch=*")))
        kept = stored.select("s0.id", "queries").collect()
        alone = {  # Spark was asked whether they fail
            name: [row.id for row in engine.results(name).collect()]
            for name, number in numbers.items()
            if (folder / "engine" / "results" / "alone" / "batch=0" / f"query={number}").exists()
        }
        run.stop()
    for name, (function, returns) in random_sql.FUNCTIONS.items():
        spark.udf.register(name, function, returns)
    frame = spark.createDataFrame(rows, random_sql.SCHEMA).alias("e")
    # Spark would compute what occurs twice before what protects it from failing.
    with setting(spark, "spark.sql.subexpressionElimination.enabled", "false"):
        answers = frame.select("id", *[F.expr(text) for text in conditions.values()]).collect()
    wrong = []
    for position, (name, condition) in enumerate(conditions.items(), start=1):
        mine = sorted(row.id for row in kept if numbers[name] in row.queries)
        mine = sorted(alone.get(name, mine))
        theirs = sorted(row.id for row in answers if row[position])
        if mine != theirs:
            wrong.append(f"{condition}: {mine} != {theirs} {errors.get(name, '')}")
    return wrong, refused


def test_random_conditions_without_ansi(spark: Any, tmp_path: pathlib.Path) -> None:
    """With ANSI, `test_engine.py` compares random queries one by one."""
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        wrong, refused = wrong_answers(spark, tmp_path, 0, 12, ansi=False)
    assert not wrong
    assert not refused


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_random_conditions(spark: Any, tmp_path: pathlib.Path, seed: int) -> None:
    ansi = seed % 2 == 0
    with setting(spark, "spark.sql.ansi.enabled", str(ansi).lower()):
        wrong, refused = wrong_answers(spark, tmp_path, seed, 250, ansi)
    assert not wrong
    assert not refused
