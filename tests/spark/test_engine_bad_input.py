"""What an engine says to wrong names, wrong SQL, damaged files."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import pytest

import eddyline as el
from eddyline.journal.events import CatalogueRepaired
from eddyline.spark.engine.catalogue import FILE


@pytest.fixture
def engine(spark: Any, tmp_path: pathlib.Path) -> Any:
    with el.Engine(spark, tmp_path / "engine") as made:
        made.stream("events", rate(spark))
        made.table("rooms", spark.createDataFrame([(1, "hall")], "id long, name string"))
        made.function("is_odd", lambda v: v % 2 == 1)
        made.query("known", "SELECT value FROM events")
        yield made


def rate(spark: Any) -> Any:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT valu FROM events", "no column 'valu' .did you mean 'value'"),
        ("SELECT value FROM event", "no stream or table 'event' .did you mean 'events'"),
        ("SELECT value FROM events WHERE (value > ", "line 1, column"),
        ("SELEC value FROM events", "cannot read the SQL at line 1"),
        ("", "empty"),
        ("SELECT 1", "FROM is missing"),
        ("SELECT id FROM rooms", "reads none"),
        ("SELECT e.value FROM events e, events f WHERE e.value = f.value", "has no event time"),
        ("SELECT value FROM events, rooms", "nothing joins rooms"),
        ("SELECT value FROM events LEFT JOIN rooms ON id = value", "LEFT JOIN is not supported"),
        ("SELECT count(*) FROM events", "more than one row"),
        ("SELECT value FROM events GROUP BY value", "GROUP BY is not supported"),
        ("SELECT DISTINCT value FROM events", "DISTINCT is not supported"),
        ("SELECT value FROM events ORDER BY value", "ORDER BY is not supported"),
        ("SELECT value FROM events LIMIT 3", "LIMIT is not supported"),
        ("SELECT value FROM events WHERE value IN (SELECT 1)", "inside a query"),
        ("SELECT value FROM events WHERE rand() < 0.5", "another answer each time"),
        ("SELECT value FROM events WHERE now() > timestamp", "another answer each time"),
        ("SELECT value FROM events WHERE no_such(value)", "no_such"),
        ("SELECT no_such(value) FROM events", "no_such"),
        ("SELECT value FROM events WHERE value + 1", "is not a boolean"),
        ("SELECT value FROM events WHERE value > array(1)", "query 'new'"),
        (
            "SELECT value FROM events WHERE timestamp - INTERVAL 1 DAY 2 HOURS > timestamp",
            "not understood as Spark",
        ),
        (
            "SELECT value FROM events WHERE is_odd(value) + 1 > 2",
            "call a Python function by itself",
        ),
        (
            "SELECT value FROM events WHERE is_odd(value) > 2",
            r"is boolean, which cannot be compared.*\(\"is_odd\", ..., returns=\"double\"\)",
        ),
        ("SELECT value FROM events WHERE is_odd()", "is_odd is called with 0 arguments: missing"),
        ("SELECT value FROM events WHERE is_odd(value, 2)", "called with 2 arguments: too many"),
        ("SELECT value FROM events WHERE is_even(value)", r"registered with engine.function\(name"),
        (None, "the SQL is NoneType, not text"),
        ("DELETE FROM events", "expected one SELECT"),
        ("SELECT value FROM events WINDOW 0 ROWS", "window of 0"),
    ],
)
def test_wrong_sql_says_what_and_leaves_the_engine_as_it_was(
    engine: Any, sql: str, says: str
) -> None:
    version = engine._folder.catalogue.version
    with pytest.raises(el.QueryError, match=says):
        engine.query("new", sql)
    assert engine._folder.catalogue.version == version
    assert [state.name for state in engine.queries()] == ["known"]


def test_what_spark_would_fail_on_is_refused_when_it_is_added(engine: Any) -> None:
    for sql, says in [
        ("SELECT value FROM events WHERE smallint(value) = 'x'", "the rows: .CAST_INVALID_INPUT"),
        ("SELECT value FROM events WHERE 1 / 0 > value", "whatever the rows: .DIVIDE_BY_ZERO"),
        ("SELECT value FROM events WHERE is_odd(1 / 0)", "Division by zero"),
        ("SELECT value FROM events WHERE NULL", "VOID.* is not a boolean"),
        ("SELECT value FROM events WHERE value > 1 OR no_such(value) = NULL", "no_such"),
        ("SELECT is_odd(*) FROM events", r"is_odd\(\*\) is not supported"),
        ("SELECT value.* FROM events", "Can only star expand struct"),
    ]:
        with pytest.raises(el.QueryError, match=f"query 'new': .*{says}"):
            engine.query("new", sql)


def test_a_wrong_query_among_many_adds_none(engine: Any) -> None:
    with pytest.raises(el.QueryError, match="query 'bad'"):
        engine.add({"good": "SELECT value FROM events", "bad": "SELECT x FROM events"})
    assert "good" not in engine.queries()


def test_wrong_names(spark: Any, engine: Any) -> None:
    with pytest.raises(el.EngineError, match="query 'known' exists already"):
        engine.query("known", "SELECT value FROM events")
    with pytest.raises(el.EngineError, match="no query 'unknown'; queries are known"):
        engine.drop("unknown")
    with pytest.raises(el.EngineError, match="no query"):
        engine.results("unknown")
    with pytest.raises(el.EngineError, match="stream 'events' is registered already"):
        engine.stream("events", rate(spark))
    with pytest.raises(el.EngineError, match="is a stream already"):
        engine.table("events", spark.range(1))
    with pytest.raises(el.EngineError, match="function 'is_odd' is registered already"):
        engine.function("is_odd", bool)
    with pytest.raises(el.EngineError, match="built-in function of Spark"):
        engine.function("upper", bool)
    with pytest.raises(el.EngineError, match="'wrong': returns='intt' is no type of Spark SQL"):
        engine.function("wrong", bool, returns="intt")
    lock = threading.Lock()
    with pytest.raises(el.EngineError, match="'locked' cannot be sent to workers"):
        engine.function("locked", lambda a: lock is None)
    with pytest.raises(el.EngineError, match="'' cannot be the name of a query; give a text"):
        engine.query("", "SELECT value FROM events")
    with pytest.raises(el.EngineError, match="trigger='soon' is not an interval; write for"):
        engine.start(trigger="soon")
    with pytest.raises(el.EngineError, match="cannot be the name of a stream"):
        engine.stream("my events", rate(spark))
    with pytest.raises(el.EngineError, match="batch DataFrame"):
        engine.stream("batch", spark.range(1))
    with pytest.raises(el.EngineError, match="no column 'at'"):
        engine.stream("timed", rate(spark), time="at")
    with pytest.raises(el.EngineError, match="cannot read the delay"):
        engine.stream("timed", rate(spark), time="timestamp", delay="soon")
    with pytest.raises(el.EngineError, match="must take"):
        engine.query("sunk", "SELECT value FROM events", sink=lambda rows: None)
    with pytest.raises(el.EngineError, match="must be None"):
        engine.query("sunk", "SELECT value FROM events", sink="nowhere")


def test_an_engine_is_open_only_once(spark: Any, engine: Any) -> None:
    with pytest.raises(el.EngineError, match="is open already"):
        el.Engine(spark, engine.path)
    engine.close()
    el.Engine(spark, engine.path).close()
    with pytest.raises(el.EngineError, match="closed"):
        engine.start()


def test_a_changed_schema_is_named(spark: Any, engine: Any) -> None:
    engine.close()
    with el.Engine(spark, engine.path) as again:
        other = rate(spark).selectExpr("timestamp", "string(value) AS value", "1 AS extra")
        with pytest.raises(el.EngineError, match=r"'known' uses .*'value' .* is string now"):
            again.stream("events", other)
        with pytest.raises(el.EngineError, match="no streams"):
            again.start()
        again.stream("more", rate(spark))
        with pytest.raises(el.EngineError, match="stream 'events' is in the catalogue"):
            again.start()


def test_a_function_must_be_there_again(spark: Any, engine: Any) -> None:
    engine.query("odd", "SELECT value FROM events WHERE is_odd(value)")
    engine.query("sunk", "SELECT value FROM events", sink=lambda df, batch: None)
    engine.close()
    with el.Engine(spark, engine.path) as again:
        again.stream("events", rate(spark))
        with pytest.raises(el.QueryError, match="'is_odd' is not registered"):
            again.start()
        again.function("is_odd", lambda v: v % 2 == 1)
        with pytest.raises(el.EngineError, match="query 'sunk' hands its results to a function"):
            again.start()


def test_a_half_written_catalogue_falls_back_to_the_last_good_state(
    spark: Any, engine: Any
) -> None:
    engine.query("lost", "SELECT value FROM events WHERE value > 1")
    engine.close()
    path = engine.path / FILE
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="is damaged; the state before it is used"):
        again = el.Engine(spark, engine.path)
    assert [state.name for state in again.queries()] == ["known"]
    assert again.journal().of(CatalogueRepaired)
    assert list(engine.path.glob(f"{FILE}.damaged*"))
    again.stream("events", rate(spark))
    again.query("fresh", "SELECT value FROM events")  # and it can be written again
    again.close()
    with el.Engine(spark, engine.path) as third:
        assert [state.name for state in third.queries()] == ["known", "fresh"]


def test_a_path_that_cannot_be_used(spark: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(el.EngineError, match="cannot open an engine"):
        el.Engine(spark, tmp_path / "file" / "engine")
    with pytest.raises(el.EngineError, match="is an address"):
        el.Engine(spark, "hdfs://somewhere/engine")


def test_a_wrong_policy_is_refused_before_anything_is_opened(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    for policy in ("fastest", "mesh", el.MeshOptions()):
        with pytest.raises(el.InvalidPolicyError, match="choose one of auto, as_written"):
            el.Engine(spark, tmp_path / "engine", policy=policy)  # type: ignore[arg-type]
    with pytest.raises(el.InvalidPolicyError, match=r"pass an object: Sweep\(\)"):
        el.Engine(spark, tmp_path / "engine", policy=el.Sweep)  # type: ignore[arg-type]
    assert not (tmp_path / "engine").exists()


def test_a_catalogue_that_cannot_be_written_changes_nothing(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eddyline.spark.engine.change_log.os.fsync", full)
    with pytest.raises(el.EngineError, match="No space left on device; nothing was changed"):
        engine.query("new", "SELECT value FROM events")
    monkeypatch.undo()
    assert "new" not in engine.queries()
    engine.query("new", "SELECT value FROM events")
    assert "new" in engine.queries()
