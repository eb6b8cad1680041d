"""A change is on disk completely, or not at all, also on a full disk."""

from __future__ import annotations

import errno
import os
import pathlib
import stat

import pytest

from eddyline.errors import EngineError
from eddyline.spark.engine.catalogue import FILE, Catalogue
from eddyline.spark.engine.change_log import ChangeLog


class FullDisk:
    """Lets so many bytes through, then fails as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, can_truncate: bool = True) -> None:
        self.free_bytes = 10**9
        self.can_truncate = can_truncate
        pwrite, ftruncate = os.pwrite, os.ftruncate

        def limited_pwrite(descriptor: int, data: bytes, offset: int) -> int:
            if not self.free_bytes:
                raise OSError(errno.ENOSPC, "No space left on device")
            part = data[: self.free_bytes]
            self.free_bytes -= len(part)
            return pwrite(descriptor, part, offset)

        def limited_ftruncate(descriptor: int, length: int) -> None:
            if not self.can_truncate:
                raise OSError(errno.EIO, "Input/output error")
            ftruncate(descriptor, length)

        monkeypatch.setattr(os, "pwrite", limited_pwrite)
        monkeypatch.setattr(os, "ftruncate", limited_ftruncate)


def add(catalogue: Catalogue, name: str) -> None:
    catalogue.add_queries([(name, f"SELECT '{name}'", "parquet")])


@pytest.mark.parametrize("free_bytes", [0, 1, 8, 9, 40])
def test_a_full_disk_leaves_no_part_of_a_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int
) -> None:
    catalogue = Catalogue(tmp_path)
    add(catalogue, "before")
    content = (tmp_path / FILE).read_bytes()
    disk = FullDisk(monkeypatch)
    disk.free_bytes = free_bytes
    with pytest.raises(EngineError, match="No space left on device; nothing was changed"):
        add(catalogue, "refused")
    assert (tmp_path / FILE).read_bytes() == content
    assert catalogue.names() == ["before"]
    disk.free_bytes = 10**9
    add(catalogue, "after")
    catalogue.drop_query("before")
    assert Catalogue(tmp_path).names() == ["after"]
    assert Catalogue(tmp_path).damage is None


def test_what_could_not_be_undone_is_undone_before_the_next_change(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(tmp_path)
    add(catalogue, "before")
    disk = FullDisk(monkeypatch, can_truncate=False)
    disk.free_bytes = 20
    with pytest.raises(EngineError, match="cannot write"):
        add(catalogue, "refused")
    disk.free_bytes = 10**9
    with pytest.raises(EngineError, match="Input/output error"):  # still cannot be undone
        add(catalogue, "also refused")
    disk.can_truncate = True
    add(catalogue, "after")
    assert Catalogue(tmp_path).names() == ["before", "after"]


def test_a_second_damage_does_not_overwrite_what_the_first_put_aside(
    tmp_path: pathlib.Path,
) -> None:
    for name in ("first", "second"):
        catalogue = Catalogue(tmp_path)
        add(catalogue, name)
        (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-3])
        assert "is damaged" in str(Catalogue(tmp_path).damage)
    aside = sorted(tmp_path.glob(f"{FILE}.damaged-*"))
    assert ["first" in path.read_text() for path in aside] == [True, False]
    assert ["second" in path.read_text() for path in aside] == [False, True]


@pytest.mark.parametrize("garbage", [b"[]\n", b"{}\n", b'{"version":2}\n', b"\x00\xff\n", b"\n"])
def test_lines_that_are_no_changes_are_put_aside_by_name(
    tmp_path: pathlib.Path, garbage: bytes
) -> None:
    import zlib

    add(Catalogue(tmp_path), "good")
    text = garbage.rstrip(b"\n")
    for line in (garbage, f"{zlib.crc32(text):08x} ".encode() + garbage):
        content = (tmp_path / FILE).read_bytes()
        (tmp_path / FILE).write_bytes(content + line)
        opened = Catalogue(tmp_path)
        assert opened.names() == ["good"]
        assert "line 2" in str(opened.damage)


def test_numbers_in_stored_rows_are_never_given_out_again(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    add(catalogue, "lost")
    (tmp_path / FILE).write_bytes(b"")
    opened = Catalogue(tmp_path)
    opened.reserve_numbers([1, 7])
    assert [entry.number for entry in opened.add_queries([("new", "SELECT 1", "parquet")])] == [8]


def test_only_the_owner_can_read_the_file(tmp_path: pathlib.Path) -> None:
    log = ChangeLog(tmp_path / "changes.jsonl")
    log.append({"a": 1})
    assert stat.S_IMODE((tmp_path / "changes.jsonl").stat().st_mode) == 0o600
