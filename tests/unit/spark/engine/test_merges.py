"""Merged results: the same rows in fewer files."""

from __future__ import annotations

import copy
import os
import pathlib
import shutil
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from eddyline.journal.events import TidyingFailed
from eddyline.spark.engine import catalogue, housekeeping, result_merger
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.result_merger import ResultMerger
from tests.unit.spark.engine.merge_site import Site

#: Small numbers, so that tests are quick.
EVERY, FAN = 4, 3


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(housekeeping, "SNAPSHOT_EVERY", EVERY)
    monkeypatch.setattr(result_merger, "FAN_IN_NEW", EVERY)
    monkeypatch.setattr(result_merger, "FAN_IN", FAN)
    return Site(tmp_path)


def test_results_are_the_same_in_few_files(site: Site) -> None:
    counts = []
    for _ in range(5):
        site.run(EVERY * FAN // 2 + 1)
        assert site.found() == site.expected
        counts.append(site.files())
    assert not site.events
    assert max(part.tier for part in site.log.parts()) == 2
    assert max(counts) < 5 * EVERY + 3 * 2 * FAN
    site.open()
    assert site.found() == site.expected
    assert {1, 2, 3, 4, 8, 9} == set(site.expected)


def test_rows_that_count_for_no_query_are_left_out(site: Site) -> None:
    site.run(EVERY)
    (part,) = site.log.parts()
    assert not part.excluded
    assert not part.alone
    tables = [pq.read_table(site.results / part.folder / name) for name in part.files or {}]
    numbers = Counter(n for table in tables for row in table["queries"].to_pylist() for n in row)
    assert numbers == {n: sum(site.expected[n].values()) for n in (1, 2, 3, 4)}
    assert all(row for table in tables for row in table["queries"].to_pylist())


def test_other_versions_of_tables_are_not_merged_with_each_other(site: Site) -> None:
    for version in range(4):
        site.run(EVERY - 1, {"rooms": version})
    site.run(EVERY, {"rooms": 4})
    assert site.found() == site.expected
    parts = site.log.parts()
    assert sorted(part.tables["rooms"] for part in parts) == [0, 1, 2, 3, *[4] * (len(parts) - 4)]


def kill_everywhere(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[int], Site], act: Callable[[Site], None]
) -> int:
    """Stop an action before its first, second, ... file operation; check what is left."""

    class KilledError(BaseException):
        pass

    names = ("open", "fsync", "replace", "unlink", "rmdir", "mkdir", "fchmod")
    real = {name: getattr(os, name) for name in names}
    left = 10**9

    def limited(name: str) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return real[name](*args, **keywords)

        return call

    for name in names:
        monkeypatch.setattr(os, name, limited(name))
    for allowed in range(10_000):
        site = make(allowed)
        left = allowed
        try:
            act(site)
            return allowed
        except KilledError:
            pass
        finally:
            left = 10**9
        site.open()
        assert site.found() == site.expected, allowed
        listed = {part.folder for part in site.log.parts()}
        assert {path.name for path in site.results.iterdir()} - {"alone"} == listed
        if allowed % 5 == 0:
            site.run(1)
            assert site.found() == site.expected, allowed
    raise AssertionError("it never ends")


def test_a_kill_between_two_file_operations_loses_and_doubles_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "SNAPSHOT_EVERY", 2)
    monkeypatch.setattr(result_merger, "FAN_IN_NEW", 2)
    prepared = Site(tmp_path / "prepared")
    prepared.run(3)
    prepared.finish({})

    def make(allowed: int) -> Site:
        shutil.copytree(prepared.folder, tmp_path / str(allowed))
        site = Site(tmp_path / str(allowed))
        site.rng.seed(allowed)
        site.expected = copy.deepcopy(prepared.expected)
        return site

    operations = kill_everywhere(monkeypatch, make, lambda site: site.keeping.after_batch())
    assert operations > 20


def test_a_damaged_file_is_not_merged_and_does_not_stop_the_run(site: Site) -> None:
    site.run(EVERY - 1)
    path = site.results / "batch=1" / "_source=0" / "part-1.parquet"
    path.write_bytes(path.read_bytes()[::-1])
    site.run(1 + EVERY)
    (event,) = site.events
    assert isinstance(event, TidyingFailed)
    folders = {part.folder.split("-")[0] for part in site.log.parts()}
    assert len(site.log.parts()) == 2 + EVERY - 1  # one waits until there are enough others
    assert folders >= {"batch=1", "merged"}
    assert path.exists()
    assert len(list(site.results.glob("merged-*"))) == 1


def test_what_was_handed_out_stays_for_a_while(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.run(EVERY - 1)
    held = site.log.parts_of(8)
    before = site.found(held)
    site.run(2 * EVERY)
    assert site.found(held) == before
    assert site.found() == site.expected
    assert not (site.results / f"batch={EVERY}").exists()  # nobody had read it
    monkeypatch.setattr(housekeeping, "GRACE_S", 0.0)
    site.run(EVERY)
    assert not any((site.results / part.folder).exists() for part in held)
    assert site.found() == site.expected


def test_a_lost_snapshot_is_noticed_by_merged_results(site: Site) -> None:
    site.run(EVERY)
    (site.folder / "batches" / "snapshot.json").unlink()
    log = BatchLog(site.folder / "batches")
    assert not log.lost  # the folder of records alone looks like that of a new engine
    log.check_stored(site.keeping.merged_batches())
    assert list(log.lost) == [EVERY - 1]


def test_while_snapshots_fail_no_merged_files_pile_up(site: Site) -> None:
    partial = site.folder / "batches" / "snapshot.json.partial"
    partial.mkdir()
    site.run(EVERY + 5)
    assert len(list(site.results.glob("merged-*"))) == 1
    assert site.found() == site.expected
    partial.rmdir()
    site.run(2)
    site.open()
    assert site.found() == site.expected
    assert not list(site.results.glob("merged-*"))  # no snapshot listed it
    site.run(EVERY)
    assert list(site.results.glob("merged-*"))


def test_results_of_dropped_queries_are_deleted_with_the_merge(site: Site) -> None:
    names = [(f"q{number}", "SELECT 1", "parquet") for number in range(1, 10)]
    site.catalogue.add_queries(names)
    site.run(EVERY - 1)
    for number in (1, 4, 8, 9):
        site.catalogue.drop_query(f"q{number}")
    site.run(1)
    assert site.found() == {number: site.expected[number] for number in (2, 3)}
    (part,) = site.log.parts()
    assert not part.join_files  # no query wants them any more
    assert set(site.log.state.matched) == {2, 3}
    tables = [pq.read_table(site.results / part.folder / name) for name in part.files or {}]
    assert {n for table in tables for row in table["queries"].to_pylist() for n in row} == {2, 3}
    assert site.log.state.largest_number == 9
    for number in (2, 3):
        site.catalogue.drop_query(f"q{number}")
    site.run(EVERY)
    assert not site.log.parts()
    assert not list(site.results.glob("*=*")) + list(site.results.glob("merged-*"))


def test_a_query_leaves_the_catalogue_after_its_results(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "LINES_MIN", 4)
    site.catalogue.add_queries([("a", "SELECT 1", "parquet"), ("b", "SELECT 2", "parquet")])
    site.run(EVERY - 1)
    for name in ("b", "c", "d", "e", "f"):
        if name != "b":
            site.catalogue.add_queries([(name, "SELECT 3", "parquet")])
        site.catalogue.drop_query(name)
    assert 2 in site.catalogue.queries
    site.run(1)
    assert list(site.catalogue.queries) == [1]
    site.open()
    assert list(site.catalogue.queries) == [1]


def test_a_dropped_query_leaves_the_catalogue_after_a_while_however_short_it_is(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.catalogue.add_queries([("a", "SELECT 1", "parquet"), ("b", "SELECT 2", "parquet")])
    site.catalogue.drop_query("b")
    site.run(2 * EVERY)
    assert list(site.catalogue.queries) == [1, 2]
    monkeypatch.setattr(housekeeping, "GRACE_S", 0.0)
    site.run(EVERY)
    assert list(site.catalogue.queries) == [1]
    assert site.catalogue.add_queries([("c", "SELECT 3", "parquet")])[0].number > 2


def test_results_are_removed_when_they_are_old(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: clock_s)
    site.open(keep_s=8_000)
    site.run(EVERY)
    older = dict(site.expected)
    clock_s += 7_000
    site.expected = {}
    site.run(EVERY - 1)
    assert site.found() == {n: older[n] + own for n, own in site.expected.items()}
    assert len(site.log.parts()) == EVERY
    clock_s += 2_000
    site.run(1)
    assert site.found() == site.expected
    folders = [part.folder.split("-")[0] for part in site.log.parts()]
    assert folders == ["merged", f"batch={2 * EVERY - 1}"]  # too far apart to be merged
    matched = dict(site.log.state.matched)
    clock_s += 9_000
    site.open()
    assert site.found() == site.expected  # without keep, nothing is removed
    site.open(keep_s=8_000)
    assert site.found() == {}
    assert not list(site.results.glob("merged-*"))
    assert BatchLog(site.folder / "batches").state.matched == matched


def test_a_merge_that_fails_leaves_nothing(site: Site) -> None:
    site.run(3)
    parts = site.log.parts()
    (site.results / "batch=2" / "join-1.parquet").write_bytes(b"x")
    with pytest.raises(Exception, match=r"join-1\.parquet"):
        ResultMerger(site.results).merge(parts)
    assert not list(site.results.glob("merged-*"))


@pytest.mark.slow
def test_sixteen_hundred_micro_batches_leave_few_files(tmp_path: pathlib.Path) -> None:
    """Two streams, a join and a query with files of its own: 7,900 files without merging."""
    site = Site(tmp_path)
    most = 0
    for _ in range(100):
        site.run(16)
        most = max(most, sum(path.is_file() for path in tmp_path.rglob("*")))
    assert most <= 200
    assert site.found() == site.expected
