"""Random joins of streams, with random cuts, restarts and queries that come while others run."""

from __future__ import annotations

import pathlib
import random

import pytest
from pyspark.sql import SparkSession

from tests.spark.random_joins import STREAMS, random_join
from tests.spark.test_engine_joins import Rows, Source, answers, open_engine, oracle, random_rows


def odd(v: int) -> bool:
    return v % 2 == 1


def check(
    spark: SparkSession, folder: pathlib.Path, seed: int, queries: int, streams_max: int
) -> None:
    """Run random joins and compare each with batch SQL over the rows that it could see."""
    rng = random.Random(seed)
    sources = {name: Source(spark, folder / name) for name in STREAMS}
    spark.udf.register("odd", odd, "boolean")
    joins = {f"q{n}": random_join(rng, streams_max) for n in range(queries)}
    begins = {name: rng.choice([0, 0, 0, 1]) for name in joins}
    dropped = rng.choice([name for name, begin in begins.items() if begin == 0])
    arrived: list[dict[str, Rows]] = []
    engine = None
    for batch in range(3):
        if engine is None:
            engine = open_engine(spark, folder / "engine", sources)
            engine.function("odd", odd)
        engine.add({name: joins[name].text for name, begin in begins.items() if begin == batch})
        if batch == 2:
            engine.drop(dropped)
        arrived.append({name: random_rows(rng, rng.randint(0, 6), 60) for name in sources})
        for name, source in sources.items():
            source.add(arrived[-1][name])
        run = engine.start(trigger="available now")
        run.process_all_available()
        assert not [state.error for state in engine.queries() if state.error]
        if rng.random() < 0.5 and batch < 2:
            engine.close()
            engine = None
    assert engine is not None
    for name in joins.keys() - {dropped}:
        for stream, source in sources.items():
            source.rows = [row for rows in arrived[begins[name] :] for row in rows[stream]]
        expected = oracle(spark, sources, joins[name].sql, joins[name].windows_s)
        assert answers(engine, name) == expected, joins[name].text
    engine.close()


def test_random_joins_equal_batch_sql(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    check(spark, tmp_path, seed=0, queries=4, streams_max=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_many_random_joins(spark: SparkSession, tmp_path: pathlib.Path, seed: int) -> None:
    check(spark, tmp_path, seed, queries=10, streams_max=6)
