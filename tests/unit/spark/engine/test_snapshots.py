"""A snapshot takes the place of records, and loses and doubles nothing."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from eddyline.errors import EngineError
from eddyline.journal import Event
from eddyline.journal.events import TidyingFailed
from eddyline.spark.engine.batch_log import SNAPSHOT, BatchLog
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.catalogue import Catalogue
from eddyline.spark.engine.housekeeping import SNAPSHOT_EVERY, Housekeeping
from eddyline.spark.engine.log_state import OFFSETS_KEPT


class KilledError(BaseException):
    """Stands for the end of the process."""


def make_record(batch: int) -> BatchRecord:
    return BatchRecord(
        3 + batch // 10,
        {"rooms": 1 + batch // 20},
        {1: 10, 2 + batch % 3: 1},
        rows=20,
        newest_us={"events": 1_000 * batch},
        offsets=f"offsets {batch}",
        files={"_source=0/a.parquet": 100 + batch},
        state_added=[{"name": f"{batch}.stem"}],
        state_removed=[f"{batch - 2}.stem"],
        alone={2: {"b.parquet": 5}} if batch == 7 else {},
        excluded={1: [("a.parquet", 3)]} if batch == 8 else {},
    )


def fill(log: BatchLog, batches: range) -> None:
    for batch in batches:
        log.begin(batch, 1, {}, f"offsets {batch}")
        log.finish(batch, make_record(batch))


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def log(tmp_path: pathlib.Path) -> BatchLog:
    log = BatchLog(tmp_path)
    fill(log, range(40))
    return log


def test_the_state_is_the_same_with_and_without_a_snapshot(
    log: BatchLog, tmp_path: pathlib.Path
) -> None:
    before = BatchLog(tmp_path).state
    log.save(log.state)
    assert [path.name for path in tmp_path.iterdir()] == [SNAPSHOT]
    after = BatchLog(tmp_path)
    assert after.state == before == log.state
    fill(after, range(40, 45))
    again = BatchLog(tmp_path)
    assert again.state == after.state
    assert again.state.end == 45
    assert again.state.matched[1] == 450
    assert list(again.state.containers) == ["43.stem", "44.stem"]
    assert list(again.state.parts) == list(range(45))
    assert again.record(39) == BatchRecord(0, offsets="offsets 39")
    assert again.record(45) is None


def test_a_kill_between_two_file_operations_loses_and_doubles_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop before the first, second, ... operation on files, and open again."""
    operations = ("open", "fsync", "replace", "unlink")
    real = {name: getattr(os, name) for name in operations}
    left = 10**9

    def limited(name: str):
        def call(*args, **keywords):
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return real[name](*args, **keywords)

        return call

    for name in operations:
        monkeypatch.setattr(os, name, limited(name))
    killed = 0
    for allowed in range(200):
        folder = tmp_path / str(allowed)
        log = BatchLog(folder)
        fill(log, range(5))
        log.save(log.state)
        fill(log, range(5, 12))
        before = BatchLog(folder).state
        left = allowed
        try:
            log.save(log.state)
        except KilledError:
            killed += 1
        finally:
            is_done, left = left >= 0, 10**9
        opened = BatchLog(folder)
        opened.refuse_if_lost()
        assert opened.state == before
        opened.delete_leftovers()
        again = BatchLog(folder)
        again.refuse_if_lost()
        assert again.state == before
        if is_done:
            break
    assert killed > 7  # write, sync, rename, sync, and a deletion for each record
    assert len(list(folder.iterdir())) == 1


def damages(content: bytes) -> dict[str, bytes | None]:
    plain = json.loads(content.split(b"\n", 1)[1]) if content else {}
    return {
        "deleted": None,
        "emptied": b"",
        "cut": content[: len(content) // 2],
        "cut by one": content[:-1],
        "garbled": content[:-4] + b"\xff\x00x}",
        "another number": content.replace(b"400", b"999"),
        "a list": b"[]",
        "an object": b"{}",
        "null": b"null",
        "another layout": json.dumps({**plain, "layout": 99}).encode(),
    }


@pytest.mark.parametrize("damage", list(damages(b"")))
@pytest.mark.parametrize("later", [0, 2])
def test_a_snapshot_that_is_not_as_it_was_written_is_named(
    log: BatchLog, tmp_path: pathlib.Path, damage: str, later: int
) -> None:
    log.save(log.state)
    fill(log, range(40, 40 + later))
    path = tmp_path / SNAPSHOT
    content = damages(path.read_bytes())[damage]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    opened = BatchLog(tmp_path)
    opened.check_committed(range(30, 40 + later))
    with pytest.raises(EngineError, match=r"snapshot\.json"):
        opened.refuse_if_lost()
    assert any("snapshot.json" in reason for reason in opened.accept_losses())
    again = BatchLog(tmp_path)
    again.check_committed(range(30, 40 + later))
    again.refuse_if_lost()
    assert again.state.end == 40 + later
    assert again.state.matched.get(1, 0) == 10 * later
    lost = again.record(39)
    assert lost is not None
    assert not lost.offsets  # it is not known what it read, so Spark may not be contradicted


def test_a_snapshot_from_an_old_backup_is_noticed(log: BatchLog, tmp_path: pathlib.Path) -> None:
    log.save(log.state)
    backup = (tmp_path / SNAPSHOT).read_bytes()
    fill(log, range(40, 60))
    log.save(log.state)
    fill(log, range(60, 62))
    (tmp_path / SNAPSHOT).write_bytes(backup)
    opened = BatchLog(tmp_path)
    assert list(opened.lost) == list(range(40, 60))


def test_only_what_spark_may_plan_again_is_remembered(tmp_path: pathlib.Path) -> None:
    log = BatchLog(tmp_path)
    for batch in range(OFFSETS_KEPT + 10):
        log.state.add(batch, make_record(batch))
    log.save(log.state)
    opened = BatchLog(tmp_path)
    recent, old = opened.record(10), opened.record(9)
    assert recent is not None
    assert recent.offsets == "offsets 10"
    assert old is not None
    assert old.offsets not in ("", "offsets 9")  # the run stops: Spark's checkpoint is too old


def test_a_log_of_thousands_of_micro_batches_opens_at_once(tmp_path: pathlib.Path) -> None:
    log = BatchLog(tmp_path)
    for batch in range(3_000):
        log.state.add(batch, make_record(batch))
    log.save(log.state)
    began = time.process_time()
    opened = BatchLog(tmp_path)
    assert time.process_time() - began < 1
    assert opened.state.end == 3_000
    assert len(list(tmp_path.iterdir())) == 1


def test_snapshots_are_written_while_it_runs(tmp_path: pathlib.Path) -> None:
    log, events = BatchLog(tmp_path), list[Event]()
    keeping = Housekeeping(
        log, tmp_path / "results", Catalogue(tmp_path / "catalogue"), events.append
    )
    for batch in range(5 * SNAPSHOT_EVERY + 3):
        log.finish(batch, BatchRecord(1, counts={1: 10}))
        keeping.after_batch()
        assert len(list(tmp_path.iterdir())) <= SNAPSHOT_EVERY + 1
    assert not events
    assert BatchLog(tmp_path).state == log.state
    assert log.records == 3


def test_a_snapshot_that_cannot_be_written_does_not_stop_the_run(
    tmp_path: pathlib.Path,
) -> None:
    log, events = BatchLog(tmp_path), list[Event]()
    keeping = Housekeeping(
        log, tmp_path / "results", Catalogue(tmp_path / "catalogue"), events.append
    )
    for batch in range(SNAPSHOT_EVERY):
        log.finish(batch, BatchRecord(1, counts={1: 10}))
    (tmp_path / f"{SNAPSHOT}.partial").mkdir()
    keeping.after_batch()
    keeping.after_batch()
    (failed,) = events
    assert isinstance(failed, TidyingFailed)
    assert "snapshot.json" in failed.reason
    (tmp_path / f"{SNAPSHOT}.partial").rmdir()
    keeping.after_batch()
    assert BatchLog(tmp_path).state.end == SNAPSHOT_EVERY
    assert [path.name for path in tmp_path.iterdir()] == [SNAPSHOT]
