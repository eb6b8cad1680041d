"""No micro-batch disappears in silence."""

from __future__ import annotations

import contextlib
import json
import pathlib
from typing import Any

import pytest

from eddyline.errors import EngineError
from eddyline.spark.engine.atomic_file import DamagedFileError, write_atomically
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.checkpoint import (
    SHORT_HISTORY,
    Checkpoint,
    short_history,
)
from eddyline.spark.engine.engine import Engine


def filled(folder: pathlib.Path, batches: int = 4) -> BatchLog:
    log = BatchLog(folder)
    for batch in range(batches):
        log.begin(batch, 1, {}, f"offsets {batch}")
        log.finish(batch, BatchRecord(1, counts={1: 10}, offsets=f"offsets {batch}"))
    return log


def damages(content: bytes) -> dict[str, bytes | None]:
    return {
        "deleted": None,
        "emptied": b"",
        "cut": content[: len(content) // 2],
        "cut by one": content[:-1],
        "garbled": content[:-4] + b"\xff\x00x}",
        "another number": content.replace(b"10", b"99"),
        "a list": b"[]",
        "an object": b"{}",
        "null": b"null",
    }


@pytest.mark.parametrize("damage", list(damages(b"")))
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_a_record_that_is_not_as_it_was_written_is_named(
    tmp_path: pathlib.Path, damage: str, batch: int
) -> None:
    filled(tmp_path)
    path = tmp_path / f"{batch}.json"
    content = damages(path.read_bytes())[damage]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    opened = BatchLog(tmp_path)
    opened.check_committed([0, 1, 2, 3])
    assert list(opened.lost) == [batch]
    with pytest.raises(EngineError, match=rf"{batch}\.json is (missing|damaged)"):
        opened.refuse_if_lost()


def test_a_repaired_log_continues_without_what_was_lost(tmp_path: pathlib.Path) -> None:
    filled(tmp_path)
    (tmp_path / "2.json").write_text("")
    opened = BatchLog(tmp_path)
    assert ["2.json is damaged" in reason for reason in opened.accept_losses()] == [True]
    again = BatchLog(tmp_path)
    again.refuse_if_lost()
    assert again.state.matched == {1: 30}
    assert not again.lost


@pytest.mark.parametrize("content", ["{}", "[]", "3", "", "garbage", '{"version": "x"}'])
def test_a_damaged_begun_file_is_named(tmp_path: pathlib.Path, content: str) -> None:
    log = BatchLog(tmp_path)
    (tmp_path / "0.begun.json").write_text(content)
    with pytest.raises(DamagedFileError, match=r"0\.begun\.json is damaged"):
        log.begin(0, 1, {}, "offsets")


def test_records_of_earlier_versions_are_read(tmp_path: pathlib.Path) -> None:
    plain = {"version": 3, "tables": {"t": 1}, "counts": {"5": 6}, "rows": 9, "newest_us": {}}
    (tmp_path / "0.json").write_text(json.dumps(plain))
    record = BatchLog(tmp_path).record(0)
    written_s = (tmp_path / "0.json").stat().st_mtime
    assert record == BatchRecord(3, {"t": 1}, {5: 6}, 9, files=None, finished_s=written_s)


def test_a_replay_gets_what_the_first_attempt_had(tmp_path: pathlib.Path) -> None:
    log = BatchLog(tmp_path)
    log.begin(0, 4, {"t": 2}, "first")
    assert log.begin(0, 9, {"t": 3}, "second") == BatchRecord(4, {"t": 2}, offsets="first")


class TestCheckpoint:
    def make(self, folder: pathlib.Path, identity: str = "a", files: str = "1.csv") -> Checkpoint:
        for name, content in {
            "metadata": f'{{"id":"{identity}"}}',
            "offsets/3": 'v1\n{"batchTimestampMs":17}\n{"logOffset":2}\n{"partition":5}',
            "sources/0/2": f"v1\n{files}",
            "commits/0": "v1",
            "commits/1": "v1",
            "commits/.1.crc": "x",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        return Checkpoint(folder)

    def test_the_same_rows_have_the_same_fingerprint(self, tmp_path: pathlib.Path) -> None:
        before = self.make(tmp_path).fingerprint(3)
        offsets = tmp_path / "offsets/3"
        offsets.write_text(offsets.read_text().replace("17", "99"))  # only the time differs
        assert Checkpoint(tmp_path).fingerprint(3) == before

    def test_another_checkpoint_offset_or_file_has_another(self, tmp_path: pathlib.Path) -> None:
        before = self.make(tmp_path).fingerprint(3)
        assert self.make(tmp_path, identity="b").fingerprint(3) != before
        assert self.make(tmp_path, files="2.csv").fingerprint(3) != before
        offsets = tmp_path / "offsets/3"
        offsets.write_text(offsets.read_text().replace("5}", "6}"))
        assert self.make(tmp_path).fingerprint(3) == before
        offsets.write_text(offsets.read_text().replace("5}", "6}"))
        assert Checkpoint(tmp_path).fingerprint(3) != before

    def test_a_compacted_log_of_files_counts_too(self, tmp_path: pathlib.Path) -> None:
        before = self.make(tmp_path).fingerprint(3)
        (tmp_path / "sources/0/2").rename(tmp_path / "sources/0/2.compact")
        assert Checkpoint(tmp_path).fingerprint(3) == before

    def test_committed_micro_batches(self, tmp_path: pathlib.Path) -> None:
        assert sorted(self.make(tmp_path).committed()) == [0, 1]


RETAINED = "spark.sql.streaming.minBatchesToRetain"


class Session:
    """As much of a Spark session as `short_history` needs."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.conf = self

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def unset(self, name: str) -> None:
        del self.settings[name]


@pytest.mark.parametrize("given", [{}, {RETAINED: "77"}])
def test_spark_keeps_few_micro_batches_unless_it_is_told_how_many(given: dict[str, str]) -> None:
    session, seen = Session(dict(given)), dict[str, str]()
    with contextlib.suppress(KeyError), short_history(session):
        seen.update(session.settings)
        raise KeyError("as if the query could not be started")
    assert seen == {**SHORT_HISTORY, **given}
    assert session.settings == given


@pytest.mark.parametrize("keep", ["a week", "7", "0 days", "-1 days", "7 days ago", "", 7, True])
def test_times_that_cannot_be_read_are_refused_before_anything_is_made(
    tmp_path: pathlib.Path, keep: Any
) -> None:
    with pytest.raises(EngineError, match=r"cannot read keep=.*such as \"7 days\""):
        Engine(object(), tmp_path / "engine", keep=keep)
    assert not (tmp_path / "engine").exists()


def test_a_failed_write_names_the_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(EngineError, match=r"cannot write .*no_folder"):
        write_atomically(tmp_path / "no_folder" / "x.json", {})


def test_files_of_single_queries_and_excluded_rows_are_kept(tmp_path: pathlib.Path) -> None:
    record = BatchRecord(
        3,
        counts={7: 2},
        alone={7: {"part.parquet": 10}},
        excluded={8: [("part.parquet", 4), ("part.parquet", 9)]},
    )
    BatchLog(tmp_path).finish(0, record)
    assert BatchLog(tmp_path).record(0) == record


def test_a_record_of_an_earlier_version_has_neither(tmp_path: pathlib.Path) -> None:
    plain = BatchRecord(3, counts={7: 2}).to_dict()
    del plain["alone"], plain["excluded"]
    assert BatchRecord.from_dict(plain) == BatchRecord(3, counts={7: 2})
