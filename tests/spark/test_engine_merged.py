"""Merged results: equal to what Spark answers, also for those who read meanwhile."""

from __future__ import annotations

import pathlib
import random
import shutil
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.spark.engine import housekeeping, result_merger
from tests.spark import random_sql
from tests.spark.test_engine import ROOM_ROWS, Feed, answer, as_counter
from tests.spark.test_engine_damage import Site, damage

EVERY = 3
QUERIES = {
    "all": "SELECT * FROM events",
    "some": "SELECT id, upper(s) AS s FROM events WHERE a > 3",
    "joined": "SELECT e.id, r.name FROM events e, rooms r WHERE e.s = r.room",
}


@pytest.fixture(scope="module", autouse=True)
def often() -> Iterator[None]:
    """Merge after every third micro-batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(housekeeping, "SNAPSHOT_EVERY", EVERY)
        patch.setattr(result_merger, "FAN_IN_NEW", EVERY)
        patch.setattr(result_merger, "FAN_IN", 2)
        yield


@pytest.mark.slow
def test_results_are_equal_to_what_spark_answers(spark: Any, tmp_path: pathlib.Path) -> None:
    rng, path = random.Random(3), tmp_path / "engine"
    feed = Feed(spark, tmp_path / "source")
    seen: list[tuple[Any, ...]] = []
    failures: list[BaseException] = []
    with el.Engine(spark, path) as engine:
        engine.stream("events", feed.stream())
        engine.table("rooms", spark.createDataFrame(ROOM_ROWS, random_sql.ROOMS))
        engine.add(QUERIES)
        run = engine.start("0 seconds")
        held = []
        is_done = threading.Event()

        def read() -> None:
            try:
                while not is_done.is_set():
                    held.append((engine.results("all"), engine.results("some")))
                    held[-1][0].count()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        for batch in range(3 * EVERY + 1):
            rows = random_sql.rows(rng, 6, 100 * batch)
            seen += rows
            feed.put(rows)
            run.process_all_available()
        is_done.set()
        thread.join()
        assert not failures
        assert held[0][1].count() <= held[-1][1].count()  # files of the first one are still there
        for name, text in QUERIES.items():
            assert as_counter(engine.results(name)) == as_counter(answer(spark, text, seen)), name
        assert len(list((path / "results").glob("merged-*"))) >= 2
    with el.Engine(spark, path) as engine:
        engine.stream("events", feed.stream())
        assert len(list((path / "results").glob("*"))) == 3  # two tiers, and one micro-batch
        for name, text in QUERIES.items():
            assert as_counter(engine.results(name)) == as_counter(answer(spark, text, seen)), name


@pytest.mark.slow
def test_joins_of_streams_are_merged_too(spark: Any, tmp_path: pathlib.Path) -> None:
    feeds = {n: Feed(spark, tmp_path / n, "ts timestamp, k int, v decimal(9,2)") for n in "ab"}
    sql = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WINDOW 1 HOUR"
    rows: dict[str, list[Any]] = {"a": [], "b": []}
    rng = random.Random(1)
    with el.Engine(spark, tmp_path / "engine") as engine:
        for name, feed in feeds.items():
            engine.stream(name, feed.stream(), time="ts")
        engine.query("pairs", sql)
        engine.query("single", "SELECT v FROM a WHERE k < 2")
        for _ in range(EVERY + 1):
            for name, feed in feeds.items():
                new = spark.sql(
                    f"SELECT timestamp'2024-01-01 00:00:00' AS ts, k, CAST(k * {rng.random()} AS "
                    f"decimal(9,2)) AS v FROM (SELECT CAST(id AS int) AS k FROM range(4))"
                ).collect()
                rows[name] += new
                feed.put([tuple(row) for row in new])
            engine.start("available now").process_all_available()
        assert list((tmp_path / "engine" / "results").glob("merged-*/rows-*.parquet"))
        for name, own in rows.items():
            spark.createDataFrame(own, feeds[name].schema).createOrReplaceTempView(name)
        expected = spark.sql("SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k")
        assert as_counter(engine.results("pairs")) == as_counter(expected)
        assert engine.queries()["pairs"].matched == expected.count()
        assert as_counter(engine.results("single")) == as_counter(
            spark.sql("SELECT v FROM a WHERE k < 2")
        )


@pytest.fixture(scope="module")
def finished(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(spark, tmp_path_factory.mktemp("merged"))
    site.put(1)
    assert site.counts() == {"all": 40, "joined": 24}
    assert sorted(path.name for path in (site.path / "batches").iterdir()) == [
        "3.json",
        "snapshot.json",
    ]
    return site


SNAPSHOT, MERGED = "batches/snapshot.json", "results/merged-*/*/*.parquet"


@pytest.mark.parametrize(
    ("file", "how"),
    [
        (SNAPSHOT, "deleted"),
        (SNAPSHOT, "cut"),
        (MERGED, "deleted"),
        (MERGED, "one bit"),
        *[
            pytest.param(file, how, marks=pytest.mark.slow)
            for file in (SNAPSHOT, MERGED)
            for how in ("emptied", "garbled")
        ],
    ],
)
def test_a_damaged_file_is_named(finished: Site, tmp_path: Any, file: str, how: str) -> None:
    shutil.copytree(finished.path, tmp_path / "saved")
    (path,) = finished.path.glob(file)
    if how == "one bit":
        content = bytearray(path.read_bytes())
        group = pq.ParquetFile(path).metadata.row_group(0)
        numbers = group.column(group.num_columns - 1)
        assert numbers.path_in_schema.startswith("queries")
        content[numbers.data_page_offset - 2] ^= 1  # at the end of the dictionary before it
        path.write_bytes(content)
    else:
        damage(path, how)
    try:
        with pytest.raises(Exception, match=path.name):
            finished.counts()
        if path.name == "snapshot.json" and how == "cut":
            with finished.open(repair=True) as engine:
                assert engine.results("all").count() == 10
                assert list(finished.path.glob("results/merged-*"))
            with finished.open():  # now nothing lists them
                assert not list(finished.path.glob("results/merged-*"))
    finally:
        shutil.rmtree(finished.path)
        (tmp_path / "saved").rename(finished.path)


def test_a_deleted_checkpoint_is_noticed(finished: Site, tmp_path: Any) -> None:
    shutil.copytree(finished.path, tmp_path / "saved")
    shutil.rmtree(finished.path / "checkpoint")
    try:
        with finished.open() as engine, pytest.raises(el.EngineError, match="Restore the check"):
            finished.run(engine)
    finally:
        shutil.rmtree(finished.path)
        (tmp_path / "saved").rename(finished.path)


def test_old_results_are_removed_if_the_engine_is_told_so(
    finished: Site, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished.path, tmp_path / "saved")
    try:
        with finished.open(keep="1 hour") as engine:
            assert engine.results("all").count() == 40
        later = types.SimpleNamespace(time=lambda: time.time() + 7_200, monotonic=time.monotonic)
        monkeypatch.setattr(housekeeping, "time", later)
        with finished.open() as engine:
            assert engine.results("all").count() == 40
        with finished.open(keep="1 hour") as engine:
            assert engine.results("all").count() == 0
            assert engine.queries()["all"].matched == 40
            assert not list(finished.path.glob("results/*"))
    finally:
        shutil.rmtree(finished.path)
        (tmp_path / "saved").rename(finished.path)


@pytest.mark.slow
def test_the_folder_of_many_tiny_micro_batches_stays_small(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    """Spark's checkpoint included, in which file sources kept all files for 10 minutes."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(60):
        (source / f"{number:03}.json").write_text(f'{{"a": {number}}}')
    rows = spark.readStream.schema("a int").option("maxFilesPerTrigger", 1).json(str(source))
    with el.Engine(spark, tmp_path / "engine") as engine:
        engine.stream("s", rows)
        engine.query("all", "SELECT a FROM s WHERE a >= 0")
        run = engine.start("0 seconds")
        run.process_all_available()
        run.stop()
        assert len(run.batches()) == 60
        noted = list((tmp_path / "engine" / "checkpoint" / "sources").rglob("*"))
        assert len(noted) <= 70
        assert engine.results("all").count() == 60
