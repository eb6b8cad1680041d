"""Forms of SQL that an engine must understand as Spark does, from the query to the result."""

from __future__ import annotations

import contextlib
import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import functions as F

import eddyline as el
from tests.spark.test_engine import Feed, as_counter
from tests.spark.test_engine_random import setting

SCHEMA = (
    "a int, s string, c string COLLATE UTF8_LCASE, ts timestamp, st struct<x:int,y:string>, "
    "`we``ird` int, `a.b` int, `sp ace` int, `it's` string, `d\"q` int, `Ünï` int, `select` int, "
    "`br{a}ce` int, `back\\slash` int"
)
DAY = datetime.datetime(2024, 1, 5)
ROWS = [
    (1, "x", "Ab", DAY, (1, "q"), 1, 1, 1, "o'k", 1, 1, 1, 1, 1),
    (0, None, "c", None, None, None, None, 0, None, 0, None, 0, 0, 0),
    (5, "a", None, DAY, (2, None), 5, 5, 5, "5", 5, 5, 5, 5, 5),
]
QUERIES = [
    "SELECT A, a + 1 AS b, B * 2 AS twice, `SP ACE` FROM events WHERE A + 0 > 0",
    "SELECT st.*, E.St.*, st.X FROM events e WHERE ST.x = 1 OR st IS NULL",
    "SELECT a, NULL AS nothing, TRUE FROM events WHERE (NULL OR a > 0) AND NOT (a = 1 AND FALSE)",
    "SELECT c FROM events WHERE c = 'AB' OR c IN ('C', 'd')",
    "SELECT * FROM events WHERE `we``ird` > 1 OR `we``ird` + `a.b` + `sp ace` = 3",
    "SELECT `it's`, `d\"q` AS `x``y` FROM events AS `al``ias` WHERE upper(`it's`) = 'O''K'",
    "SELECT `Ünï` FROM events WHERE `Ünï` + `select` + `br{a}ce` + `back\\slash` > 3",
    "SELECT a FROM events WHERE half(`br{a}ce`) BETWEEN 0.5 AND 2 AND half(`we``ird`) IN (0.5, 7)",
    "SELECT a FROM events WHERE half(`we``ird`) IS NULL OR half(a) NOT IN (0, 0.5)",
    "SELECT a FROM events WHERE a <> 0 AND (10 / a > 2 OR half(10 / a) = 1 OR half(a) IS NULL)",
    "SELECT a FROM events WHERE (a = 0 OR 10 / a > 5) OR half(a) > 2",
    "SELECT a FROM events WHERE a <> 0 AND (10 / a > 3 OR half(a) > 2) AND "
    "NOT (half(a) > 9 OR 10 / a > 7)",
    "SELECT a FROM events WHERE a + 1 > 0 AND "
    "NOT (FALSE AND (a = 0 OR (10 / a > 2 AND half(a) > 1)))",
]


def half(a: float | None) -> float | None:
    return None if a is None else float(a) / 2


@contextlib.contextmanager
def opened(spark: Any, tmp_path: pathlib.Path) -> Iterator[Any]:
    """An engine over a stream of `ROWS`, under the settings that the session has now."""
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    feed.put(ROWS)
    with el.Engine(spark, tmp_path / "engine", seed=0) as made:
        made.stream("events", feed.stream())
        made.function("half", half, "double")
        yield made


@pytest.fixture
def engine(spark: Any, tmp_path: pathlib.Path) -> Any:
    with opened(spark, tmp_path) as made:
        yield made


def check_answers(spark: Any, engine: Any, texts: list[str]) -> None:
    """Compare names and rows of all results with those of Spark."""
    engine.add({text: text for text in texts})
    run = engine.start("available now")
    run.process_all_available()
    run.stop()
    spark.createDataFrame(ROWS, SCHEMA).createOrReplaceTempView("events")
    spark.udf.register("half", half, "double")
    for text in texts:
        mine, theirs = engine.results(text), spark.sql(text)
        assert mine.columns == theirs.columns, text
        assert as_counter(mine) == as_counter(theirs), text


def test_queries_mean_what_they_mean_to_spark(spark: Any, engine: Any) -> None:
    check_answers(spark, engine, QUERIES)


def test_settings_of_the_session_decide_what_a_query_means(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    """Texts in a list are compared as texts without ANSI."""
    with (
        setting(spark, "spark.sql.ansi.enabled", "false"),
        opened(spark, tmp_path) as engine,
    ):
        texts = ["SELECT a FROM events WHERE ts IN ('2024-01-05')"]
        check_answers(spark, engine, texts)
        assert engine.results(texts[0]).count() == 0


def test_double_quotes_may_enclose_names(spark: Any, tmp_path: pathlib.Path) -> None:
    with (
        setting(spark, "spark.sql.ansi.doubleQuotedIdentifiers", "true"),
        opened(spark, tmp_path) as engine,
    ):
        text = """SELECT "a" FROM events WHERE "s" = 'x' AND "a" + 0 = 1"""
        check_answers(spark, engine, [text])
        assert [row.a for row in engine.results(text).collect()] == [1]


def test_a_collated_column_is_still_collated_when_an_engine_is_opened_again(
    spark: Any, engine: Any
) -> None:
    engine.query("first", "SELECT a FROM events WHERE a > 0")
    engine.query("second", "SELECT a FROM events WHERE c = 'ab'")
    engine.close()
    with el.Engine(spark, engine.path) as again:
        again.stream("events", spark.readStream.schema(SCHEMA).parquet(f"{engine.path}/../source"))
        again.function("half", half, "double")
        again.query("third", "SELECT a FROM events WHERE c = 'AB'")
        run = again.start("available now")
        run.process_all_available()
        assert [run.results(name).count() for name in ("second", "third")] == [1, 1]


def test_what_parquet_cannot_store_cannot_be_selected(spark: Any, tmp_path: pathlib.Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    rows = rows.withColumn("empty", F.array(F.struct())).selectExpr(
        "value", "empty", "make_interval(1) AS span", "map(1, make_interval(2)) AS spans"
    )
    with el.Engine(spark, tmp_path / "engine") as engine:
        engine.stream("events", rows)
        for item, column in [("*", "empty"), ("span", "span"), ("e.SPANS", "spans")]:
            with pytest.raises(el.QueryError, match=f"'{column}' is .*Parquet cannot store"):
                engine.query("new", f"SELECT {item} FROM events e")
        engine.query("others", "SELECT value FROM events WHERE span IS NOT NULL")
        engine.query("counted", "SELECT span FROM events", sink="count")
        run = engine.start("available now")
        run.process_all_available()
        assert run.results("others").count() == 2
        assert {state.name: state.matched for state in engine.queries()}["counted"] == 2
