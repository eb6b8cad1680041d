"""Settings of the session: pinned with an engine, and never a silent change of rows or values."""

from __future__ import annotations

import contextlib
import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

import eddyline as el
from tests.spark.test_engine import Feed

SCHEMA = "id int, ts timestamp, old timestamp, day date, ntz timestamp_ntz"
QUERY = "SELECT id FROM events WHERE ts >= '2024-01-01 00:00:00'"
ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
OLD = datetime.datetime(1500, 1, 1, 12, 30, 15, 123456)
ROW = (1, datetime.datetime(2024, 5, 17, 1, 2, 3, 123457), OLD, OLD.date(), OLD)


@contextlib.contextmanager
def set_to(spark: Any, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.getAll.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


@pytest.fixture
def feed(spark: Any, tmp_path: pathlib.Path) -> Feed:
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    feed.put([ROW])
    return feed


def opened(spark: Any, tmp_path: pathlib.Path, feed: Feed) -> Any:
    engine = el.Engine(spark, tmp_path / "engine")
    engine.stream("events", feed.stream())
    return engine


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (ZONE, "UTC", "Asia/Tokyo"),
        (ANSI, "true", "false"),
        ("spark.sql.parser.escapedStringLiterals", "false", "true"),
        ("spark.sql.legacy.timeParserPolicy", "CORRECTED", "LEGACY"),
        ("spark.sql.legacy.castComplexTypesToString.enabled", "None", "true"),
    ],
)
def test_other_settings_are_refused_with_both_values_and_the_fix(
    spark: Any, tmp_path: pathlib.Path, feed: Feed, name: str, before: str, after: str
) -> None:
    said = f"{name} was '?{before}'? and is now '{after}'.*(set|unset)\\('{name}'"
    with opened(spark, tmp_path, feed) as engine:
        engine.query("q", QUERY)
        with set_to(spark, {name: after}):
            for refused in (
                lambda: engine.query("other", QUERY),
                engine.start,
                lambda: engine.results("q"),
                lambda: engine.table("t", spark.range(3)),
                lambda: engine.stream("more", feed.stream()),
            ):
                with pytest.raises(el.EngineError, match=said):
                    refused()
        assert engine.results("q").count() == 0
    with set_to(spark, {name: after}), pytest.raises(el.EngineError, match=said):
        el.Engine(spark, tmp_path / "engine")
    with opened(spark, tmp_path, feed) as engine:  # the folder was released
        engine.drop("q")
    with set_to(spark, {name: after}), opened(spark, tmp_path, feed) as engine:
        engine.query("q", QUERY)  # no queries: written under the new settings
    with pytest.raises(el.EngineError, match=f"{name} was '{after}'"):
        el.Engine(spark, tmp_path / "engine")


def test_a_micro_batch_under_other_settings_fails_and_is_run_again(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    with opened(spark, tmp_path, feed) as engine:
        engine.query("q", QUERY)
        run = engine.start("0 seconds")
        run.process_all_available()
        with set_to(spark, {ZONE: "Asia/Tokyo"}):
            feed.put([(2, *ROW[1:])])
            with pytest.raises(el.EngineError, match=f"{ZONE} was 'UTC' and is now 'Asia/Tokyo'"):
                run.process_all_available()
        engine.start("available now").process_all_available()
        assert sorted(row.id for row in engine.results("q").collect()) == [1, 2]


def test_the_session_of_a_stream_must_have_the_same_settings(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    other = spark.newSession()
    other.conf.set(ZONE, "Asia/Tokyo")
    with el.Engine(spark, tmp_path / "engine") as engine:
        with pytest.raises(el.EngineError, match="Asia/Tokyo"):
            engine.stream("events", other.readStream.schema(SCHEMA).parquet(feed.folder))
        other.conf.set(ZONE, "UTC")
        engine.stream("events", other.readStream.schema(SCHEMA).parquet(feed.folder))
        engine.query("q", QUERY)
        other.conf.set(ANSI, "false")  # Spark runs micro-batches in a copy of this session
        with pytest.raises(el.EngineError, match=f"{ANSI} was 'true' and is now 'false'"):
            engine.start("available now").process_all_available()


def test_case_sensitive_names_are_refused(spark: Any, tmp_path: pathlib.Path) -> None:
    name = "spark.sql.caseSensitive"
    with set_to(spark, {name: "true"}), pytest.raises(el.EngineError, match=f"set\\('{name}'"):
        el.Engine(spark, tmp_path / "engine")
    el.Engine(spark, tmp_path / "engine").close()


def test_stored_values_do_not_depend_on_how_the_session_writes_parquet(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.mergeSchema": "true",
    }
    text = ", ".join(f"CAST({n} AS STRING) {n}" for n in ("e.ts", "e.old", "e.day", "e.ntz"))
    text = text.replace(") e.", ") ")
    joined = (
        f"SELECT {text}, CAST(t.ts AS STRING) t, t.ntz n FROM events e, times t WHERE e.id = t.id"
    )
    rows = spark.createDataFrame([ROW], SCHEMA)
    expected = rows.selectExpr(
        *[f"CAST({n} AS STRING)" for n in ("ts", "old", "day", "ntz", "ts")], "ntz"
    ).collect()
    with opened(spark, tmp_path, feed) as engine:
        with set_to(spark, settings):
            engine.table("times", rows)
            engine.query("q", joined)
            engine.start("available now").process_all_available()
            assert [tuple(row) for row in engine.results("q").collect()] == [tuple(expected[0])]
        assert [tuple(row) for row in engine.results("q").collect()] == [tuple(expected[0])]


def test_a_damaged_result_is_an_error_whatever_the_session_ignores(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    with opened(spark, tmp_path, feed) as engine:
        engine.query("q", QUERY)
        engine.table("ids", spark.range(3))
        engine.query("j", "SELECT e.id FROM events e, ids i WHERE e.id = i.id")
        engine.start("available now").process_all_available()
        for part in ("results", "tables"):
            for path in (tmp_path / "engine" / part).rglob("*.parquet"):
                kept = path.read_bytes()
                path.write_bytes(b"x" * len(kept))  # as long as before: its size is checked
                ignored = {"spark.sql.files.ignoreCorruptFiles": "true"}
                with set_to(spark, ignored), pytest.raises(Exception, match=r"(?i)parquet|footer"):
                    engine.results("q" if part == "results" else "j").collect()
                path.write_bytes(kept)


def test_copies_of_tables_are_counted_whatever_hadoop_marks(
    spark: Any, tmp_path: pathlib.Path, feed: Feed
) -> None:
    hadoop = spark._jsc.hadoopConfiguration()
    name = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    hadoop.set(name, "false")
    try:
        with opened(spark, tmp_path, feed) as engine:
            engine.table("ids", spark.range(3))
            engine.table("ids", spark.range(4))
            copies = tmp_path / "engine" / "tables" / "ids"
            assert sorted(path.name for path in copies.iterdir()) == ["1", "2"]
    finally:
        hadoop.unset(name)


@pytest.mark.parametrize("zone", ["Etc/UTC", "Asia/Tokyo"])
def test_joins_keep_times_in_any_time_zone(
    spark: Any, tmp_path: pathlib.Path, feed: Feed, zone: str
) -> None:
    with set_to(spark, {ZONE: zone}):
        engine = el.Engine(spark, tmp_path / "engine")
        for name in ("one", "other"):
            engine.stream(name, feed.stream(), time="ts")
        engine.query(
            "pairs",
            "SELECT a.ts, b.old, b.ntz FROM one a JOIN other b ON a.id = b.id WINDOW 30 SECONDS",
        )
        run = engine.start(trigger="available now")
        run.process_all_available()
        found = [tuple(row) for row in run.results("pairs").collect()]
        engine.close()
        rows = spark.read.schema(SCHEMA).parquet(feed.folder)
        assert found == [tuple(row) for row in rows.select("ts", "old", "ntz").collect()]
