"""Damaged, lost and outdated files of an engine: named, and never fewer rows in silence."""

from __future__ import annotations

import pathlib
import shutil
import stat
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import eddyline as el
from eddyline.journal.events import BatchLost
from tests.spark.test_engine import Feed

SCHEMA = "id int, a int"
SQL = {
    "all": "SELECT id, a FROM events WHERE a >= 0",
    "joined": "SELECT id, name FROM events e, rooms r WHERE e.a = r.a AND name <> 'hall'",
}


class Site:
    """An engine over three files, which can be opened again and again."""

    def __init__(self, spark: Any, folder: pathlib.Path) -> None:
        self.spark, self.path = spark, folder / "engine"
        self.feed = Feed(spark, folder / "source", SCHEMA)
        self.put(3)

    def put(self, files: int) -> None:
        for _ in range(files):
            self.feed.put([(n, n % 3) for n in range(10)])

    def open(self, **options: Any) -> Any:
        engine = el.Engine(self.spark, self.path, **options)
        try:
            engine.stream("events", self.feed.stream())
            rooms = [(1, "attic"), (1, "cellar"), (2, "hall")]
            engine.table("rooms", self.spark.createDataFrame(rooms, "a int, name string"))
            engine.add(SQL)
        except BaseException:
            engine.close()
            raise
        return engine

    def run(self, engine: Any) -> None:
        engine.start("available now").process_all_available()

    def counts(self) -> dict[str, int]:
        """Open, process what is there, and count the results."""
        with self.open() as engine:
            self.run(engine)
            states = {state.name: state.matched for state in engine.queries()}
            counts = {name: engine.results(name).count() for name in SQL}
            assert states == counts
            return counts


@pytest.fixture(scope="module")
def finished(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(spark, tmp_path_factory.mktemp("site"))
    assert site.counts() == {"all": 30, "joined": 18}
    return site


@pytest.fixture
def site(finished: Site) -> Iterator[Site]:
    """The finished engine; whatever a test does to it is undone."""
    folder = finished.path.parent
    for name in ("engine", "source"):
        shutil.copytree(folder / name, folder / f"saved {name}")
    yield finished
    for name in ("engine", "source"):
        shutil.rmtree(folder / name)
        (folder / f"saved {name}").rename(folder / name)


def test_counts_are_of_results_also_where_tables_multiply_or_drop_rows(site: Site) -> None:
    with site.open() as engine:
        assert engine.queries()["joined"].matched == engine.results("joined").count() == 18


def damage(path: pathlib.Path, how: str) -> None:
    content = path.read_bytes()
    if how == "deleted":
        path.unlink()
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(bytes(reversed(content)))


@pytest.mark.parametrize(
    "how",
    [
        "deleted",
        "garbled",
        *[pytest.param(how, marks=pytest.mark.slow) for how in ("emptied", "cut")],
    ],
)
@pytest.mark.parametrize(
    "file",
    [
        "catalogue.jsonl",
        "streams.json",
        "journal.jsonl",
        "engine.lock",
        "batches/0.json",
        "batches/2.json",
        "results/batch=1/**/*.parquet",
        "tables/rooms/1/*.parquet",
        "checkpoint/metadata",
        "checkpoint/offsets/2",
        "checkpoint/commits/2",
        "checkpoint/sources/0/1",
    ],
)
def test_a_damaged_file_is_harmless_or_named(site: Site, file: str, how: str) -> None:
    for path in list(site.path.glob(file)):
        damage(path, how)
    said = ""
    counts = {"all": 0, "joined": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            counts = site.counts()
        except el.EddylineError as error:
            said = str(error)
        except Exception as error:  # Spark names a garbled Parquet file itself
            said = str(error)
            assert ".parquet" in said
    said += " ".join(str(warning.message) for warning in caught)
    is_whole = counts == {"all": 30, "joined": 18}
    name = file.split("/", maxsplit=1)[0].split(".", maxsplit=1)[0]
    assert is_whole or name in said, (counts, said)


def test_a_lost_record_is_refused_and_can_be_given_up(site: Site) -> None:
    (site.path / "batches" / "1.json").unlink()
    with pytest.raises(el.EngineError, match=r"micro-batch 1 are lost: .*1\.json is missing"):
        site.open()
    with site.open(repair=True) as engine:
        assert engine.results("all").count() == 20
        (lost,) = engine.journal().of(BatchLost)
        assert "1.json is missing" in lost.event.reason


def test_a_deleted_checkpoint_is_noticed(site: Site) -> None:
    shutil.rmtree(site.path / "checkpoint")
    with site.open() as engine, pytest.raises(el.EngineError, match="Restore the checkpoint"):
        site.run(engine)


def test_an_older_checkpoint_is_noticed(site: Site) -> None:
    older = site.path.with_name("older")
    before = {path.name for path in (site.path.parent / "source").glob("*.parquet")}
    shutil.copytree(site.path / "checkpoint", older)
    site.put(1)
    with site.open() as engine:
        site.run(engine)
        assert engine.results("all").count() == 40
    shutil.rmtree(site.path / "checkpoint")
    older.rename(site.path / "checkpoint")
    for path in (site.path.parent / "source").glob("*.parquet"):
        if path.name not in before:
            path.unlink()
    site.put(1)  # Spark plans micro-batch 3 with this file, not with the one it had
    with site.open() as engine, pytest.raises(el.EngineError, match="Restore the checkpoint"):
        site.run(engine)


def test_only_the_owner_can_read_what_an_engine_writes(site: Site) -> None:
    assert stat.S_IMODE(site.path.stat().st_mode) == 0o700
    for name in ("catalogue.jsonl", "journal.jsonl", "streams.json", "batches/0.json"):
        assert stat.S_IMODE((site.path / name).stat().st_mode) == 0o600, name


def test_a_journal_that_cannot_be_written_stops_nothing(site: Site) -> None:
    (site.path / "journal.jsonl").unlink(missing_ok=True)
    (site.path / "journal.jsonl").mkdir()
    with site.open() as engine, pytest.warns(UserWarning, match="kept in memory only"):
        site.run(engine)
    assert site.counts() == {"all": 30, "joined": 18}


def test_names_that_differ_only_in_case_are_refused(site: Site) -> None:
    with site.open() as engine:
        for register, name in ((engine.stream, "Events"), (engine.table, "ROOMS")):
            with pytest.raises(el.EngineError, match="are the same name in SQL"):
                register(name, site.feed.stream())
        engine.function("is_one", lambda a: a == 1)
        with pytest.raises(el.EngineError, match="'IS_ONE' and 'is_one' are the same name"):
            engine.function("IS_ONE", lambda a: a == 1)


def test_function_sinks_are_not_called_without_results(site: Site) -> None:
    called: list[int] = []
    with site.open() as engine:
        engine.query(
            "none",
            "SELECT id FROM events e, rooms r WHERE e.a = r.a AND name = 'nowhere'",
            sink=lambda results, batch: called.append(results.count()),
        )
        engine.query(
            "attic",
            "SELECT id FROM events e, rooms r WHERE e.a = r.a AND name = 'attic'",
            sink=lambda results, batch: called.append(results.count()),
        )
        engine.query("counted", SQL["joined"], sink="count")
        site.put(1)
        site.run(engine)
        states = engine.queries()
        assert called == [3]
        assert (states["none"].matched, states["counted"].matched) == (0, 6)
