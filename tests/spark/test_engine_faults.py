"""Bad rows, functions and sinks in an engine: they pause their queries and change no other answer.

Which queries are at fault, and what the others answer, is compared with Spark.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eddyline as el
from tests.spark import fallible_sql
from tests.spark.test_engine import Feed, as_counter


@contextlib.contextmanager
def stream_of(spark: Any, folder: pathlib.Path, schema: str, rows: list[Any]) -> Iterator[Any]:
    """An engine over a stream `s` of one micro-batch, and the same rows as a view of Spark."""
    feed = Feed(spark, folder / "source", schema)
    feed.put(rows)
    spark.read.schema(schema).parquet(feed.folder).createOrReplaceTempView("s")
    with el.Engine(spark, folder / "engine", seed=0) as engine:
        engine.stream("s", feed.stream())
        engine.feed = feed
        yield engine


def answer_of(spark: Any, sql: str) -> Counter[str] | None:
    """What Spark answers; None if it raises."""
    try:
        return as_counter(spark.sql(sql))
    except Exception:
        return None


# --- errors count only if Spark raises them ------------------------------------------------------

PROTECTED = {
    "cast": "SELECT id FROM s WHERE k = 'num' AND CAST(v AS INT) > 5",
    "index": "SELECT id FROM s WHERE i < size(arr) AND i >= 0 AND arr[i] > 5",
    "argument": "SELECT id FROM s WHERE k = 'num' AND id > 0 AND odd(CAST(v AS INT))",
    # Spark's optimizer takes the common part out of the OR, and a filter evaluates it first.
    "common": "SELECT id FROM s WHERE (CAST(v AS INT) > 5 AND k = 'num') OR (k = 'num' AND a = 9)",
    "late": "SELECT id FROM s WHERE CAST(v AS INT) > 5 AND k = 'num'",
    # A filter of Spark begins with v IS NOT NULL, which the last comparison implies.
    "inferred": "SELECT id FROM s WHERE id IN (102, 103, 105) AND "
    "coalesce(try_cast(v AS INT), 10 / a) > 3 AND v > 5",
    # Spark casts only where the function answers false.
    "alternative": "SELECT id FROM s WHERE id IN (101, 102, 103) AND "
    "(odd(id) OR CAST(v AS INT) > 5)",
}
ROWS = [
    (101, None, "abc", 5, 1, [1], {"x": 5}, "2024-01-31"),
    (102, "num", "7", 0, 1, [9], {"x": 5}, "2024-01-31"),
    (103, "num", "3", None, 1, [9], {"x": 5}, "2024-01-31"),
    (104, "x", "zz", 1, 1, [1], {"x": 5}, "2024-01-31"),
    (105, "x", None, 1, 0, [1], {"x": 5}, "2024-01-31"),
]


def compare_with_spark(
    spark: Any, folder: pathlib.Path, texts: dict[str, str], rows: list[Any]
) -> dict[str, str]:
    """Run queries that can fail; return what each did.

    A query may not fail where Spark answers. Where Spark raises, its error may be held back.
    """
    did: dict[str, str] = {}
    spark.udf.register("odd", fallible_sql.odd, "boolean")
    with stream_of(spark, folder, fallible_sql.SCHEMA, rows) as engine:
        engine.function("odd", fallible_sql.odd)
        for name, text in texts.items():
            with contextlib.suppress(el.QueryError):
                engine.query(name, text)
        engine.start("available now").process_all_available()
        alone = engine._folder.log.record(0).alone
        for number, state in enumerate(engine.queries(), start=1):
            expected = answer_of(spark, texts[state.name])
            if expected is None:
                did[state.name] = "both fail" if state.error else "held back"
            else:
                assert not state.error, f"Spark answers {texts[state.name]}: {state.error}"
                assert as_counter(engine.results(state.name)) == expected, texts[state.name]
                did[state.name] = "answered alone" if number in alone else "answered"
    return did


def random_texts(rng: random.Random, count: int) -> dict[str, str]:
    return {f"q{n}": f"SELECT id FROM s WHERE {fallible_sql.condition(rng)}" for n in range(count)}


def test_conditions_fail_only_where_spark_does(spark: Any, tmp_path: pathlib.Path) -> None:
    rng = random.Random(0)
    rows = [(id_, None, *values) for id_, _, *values in fallible_sql.rows(rng, 10)]
    did = compare_with_spark(spark, tmp_path, PROTECTED, ROWS + rows)
    protected = {name: did[name] for name in PROTECTED}
    assert protected == dict.fromkeys(PROTECTED, "answered") | {
        "alternative": "answered alone",
        "common": "answered alone",
        "inferred": "answered alone",
        "late": "both fail",
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_random_conditions_that_can_fail(
    spark: Any, tmp_path: pathlib.Path, seed: int
) -> None:
    rng = random.Random(seed)
    texts = random_texts(rng, 60)
    did = Counter(compare_with_spark(spark, tmp_path, texts, fallible_sql.rows(rng, 30)).values())
    assert did["held back"] <= did.total() // 10


# --- functions, results and sinks ----------------------------------------------------------------


class Unshowable(BaseException):
    def __str__(self) -> str:
        raise SystemExit


def fails_at(number: int, fail: Callable[[], object]) -> Callable[[int], bool]:
    """Return a function that is even(), except for one number."""

    def function(a: int) -> bool:
        if a == number:
            fail()
        return a % 2 == 0

    return function


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


#: What a function may do, and what the error of its query then says.
FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "quits": (lambda: os._exit(3), "the function 'quits' ended its Python worker"),
    "segfaults": (lambda: ctypes.string_at(0), "the function 'segfaults' ended its Python worker"),
    "sleeps": (
        lambda: time.sleep(100),
        "the function 'sleeps' took longer than its limit of 2 s",
    ),
    "raises": (raising(ValueError("seven")), "ValueError: seven"),
    "exits": (raising(SystemExit(1)), "SystemExit"),
    "interrupts": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
}


def add_functions(engine: Any, number: int, names: list[str]) -> None:
    for name in names:
        engine.function(name, fails_at(number, FAULTS[name][0]), timeout_s=2)
    engine.function("even", lambda a: a % 2 == 0)


def test_faults_of_all_kinds_leave_the_others_alone_and_are_not_met_again(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    handed: list[Any] = []
    queries = {
        "quits": ("SELECT a FROM s WHERE quits(a)", None),
        "guarded": ("SELECT a FROM s WHERE a <> 7 AND quits(a)", None),
        "sleeps": ("SELECT a FROM s WHERE sleeps(a)", None),
        "division": ("SELECT id, 10 / (a - 7) AS x FROM s", el.callback(handed.extend)),
        "exit": ("SELECT a FROM s", raising(SystemExit(3))),
        "interrupt": ("SELECT a FROM s", raising(KeyboardInterrupt())),
        "unshowable": ("SELECT a FROM s", raising(Unshowable())),
        "even": ("SELECT id FROM s WHERE even(a)", None),
        "double": ("SELECT id, a * 2 AS b FROM s WHERE a > 3", None),
    }
    says = {
        "quits": "the function 'quits' ended its Python worker",
        "sleeps": "the function 'sleeps' took longer than its limit of 2 s",
        "division": "DIVIDE_BY_ZERO",
        "exit": "its sink failed: SystemExit: 3",
        "interrupt": "its sink failed: KeyboardInterrupt",
        "unshowable": "its sink failed: Unshowable: (its message cannot be shown)",
    }
    with stream_of(spark, tmp_path, "id int, a int", [(n, n) for n in range(10)]) as engine:
        add_functions(engine, 7, ["quits", "sleeps"])
        for name, (sql, sink) in queries.items():
            engine.query(name, sql, sink)
        engine.start("available now").process_all_available()
        check_first_run(spark, engine, says)
        assert sorted(row.id for row in handed) == [*range(7), 8, 9]
        feed = engine.feed
    with el.Engine(spark, engine.path, seed=0) as again:
        again.stream("s", feed.stream())
        add_functions(again, 7, ["quits", "sleeps"])
        feed.put([(10, 8)])
        again.start("available now").process_all_available()
        assert {state.name for state in again.queries() if state.error} == set(says)
        assert again.queries()["even"].matched == 6
        assert again.results("division").count() == 9


def check_first_run(spark: Any, engine: Any, says: dict[str, str]) -> None:
    states = engine.queries()
    assert {state.name: True for state in states if state.error} == dict.fromkeys(says, True)
    for name, text in says.items():
        assert text in states[name].error, states[name].error
    assert "on the row id=7, a=7" in states["division"].error
    assert states["division"].matched == 9
    assert sorted(row.id for row in engine.results("division").collect()) == [*range(7), 8, 9]
    assert sorted(row.a for row in engine.results("guarded").collect()) == [0, 2, 4, 6, 8]
    for name in ("even", "double"):
        sql = states[name].sql.replace("even(a)", "a % 2 = 0")
        assert as_counter(engine.results(name)) == as_counter(spark.sql(sql))
    results = engine.path / "results"
    for path in [results, *results.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


# --- everything at once --------------------------------------------------------------------------

SELECTS = {
    "id": "true",
    "id, 100 / (a - 7) AS x": "a <> 7",
    "id, CAST(v AS INT) AS x": "v RLIKE '^[0-9]+$'",
    "a + 1 AS x": "true",
    "upper(v) AS x": "true",
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_random_mix_of_faults(spark: Any, tmp_path: pathlib.Path, seed: int) -> None:
    """Spark gets functions that raise in place of those that end their worker or take too long."""
    rng = random.Random(seed)
    rows = [(n, rng.randint(0, 12), rng.choice(["1", "22"])) for n in range(38)]
    rows += [(38, 3, "x"), (39, 8, "x")]  # few enough to be found one by one
    bad = rng.randint(0, 12)
    for name in FAULTS:
        spark.udf.register(name, fails_at(bad, raising(ValueError("bad"))), "boolean")
    expected: dict[str, tuple[str, str, bool]] = {}
    with stream_of(spark, tmp_path, "id int, a int, v string", rows) as engine:
        add_functions(engine, bad, list(FAULTS))
        for number in range(24):
            select, good = rng.choice(list(SELECTS.items()))
            parts = [rng.choice(["a > 2", "a <> 7", f"a <> {bad}", "length(v) = 1", "id < 30"])]
            function = rng.choice(list(FAULTS)) if rng.random() < 0.5 else ""
            where = " AND ".join([*parts, f"{function}(a)"] if function else parts)
            sink = raising(Unshowable()) if rng.random() < 0.1 else None
            engine.query(f"q{number}", f"SELECT {select} FROM s WHERE {where}", sink)
            expected[f"q{number}"] = (
                f"SELECT {select} FROM s WHERE {where}",
                f"SELECT {select} FROM s WHERE {where} AND {good}",
                sink is not None,
            )
        engine.start("available now").process_all_available()
        for state in engine.queries():
            whole, readable, has_bad_sink = expected[state.name]
            answer = answer_of(spark, readable)
            is_at_fault = answer_of(spark, whole) is None or (has_bad_sink and bool(answer))
            if "sleeps" in whole and "took longer than its limit" in (state.error or ""):
                continue  # one batch of calls serves all queries of a function, as does its limit
            assert bool(state.error) == is_at_fault, (state.error, whole)
            assert as_counter(engine.results(state.name)) == (answer or Counter()), whole
