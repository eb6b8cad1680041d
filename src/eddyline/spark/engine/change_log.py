"""An append-only file of changes: one line with a checksum for each.

The property everything rests on: a change that was acknowledged is a complete line on disk, and a
change that was refused left nothing behind. Lines are written without buffering, so that nothing is
written later than the call that reports the failure.
"""

from __future__ import annotations

import json
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any

from eddyline.errors import EngineError
from eddyline.spark.engine.atomic_file import FILE_MODE, sync_folder


class ChangeLog:
    """The lines of one file.

    Parameters
    ----------
    path
        The file; made when the first change is written.

    Examples
    --------
    >>> import tempfile
    >>> log = ChangeLog(pathlib.Path(tempfile.mkdtemp()) / "changes.jsonl")
    >>> log.append({"version": 1})
    >>> list(log.read()), log.damage
    ([{'version': 1}], None)

    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        #: What was wrong with the file when it was read; None if nothing was.
        self.damage: str | None = None
        #: Number of changes in the file, as far as it was read.
        self.lines = 0
        self._size = path.stat().st_size if path.exists() else 0

    def append(self, change: dict[str, Any]) -> None:
        """Write a change; raise, with the file as it was, if it cannot be written."""
        line = to_line(change)
        try:
            self._write(line)
        except OSError as error:
            raise self._cannot_write(error) from error
        self._size += len(line)
        self.lines += 1

    def replace_all(self, change: dict[str, Any]) -> None:
        """Let one change take the place of all; a crash leaves the old file or the new one."""
        line = to_line(change)
        partial = self._path.with_name(f"{self._path.name}.partial")
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
            self._size, self.lines = len(line), 1
            sync_folder(self._path.parent)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> EngineError:
        return EngineError(
            f"cannot write {self._path}: {error.strerror or error}; nothing was changed. Free "
            f"some space or grant access, then try again"
        )

    def _write(self, line: bytes) -> None:
        is_new = not self._path.exists()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, FILE_MODE)
        try:
            if os.fstat(descriptor).st_size != self._size:
                # An earlier failure could not be undone: that must succeed before anything else.
                os.ftruncate(descriptor, self._size)
            try:
                written = 0
                while written < len(line):
                    written += os.pwrite(descriptor, line[written:], self._size + written)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, self._size)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            sync_folder(self._path.parent)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all changes; what comes after the first damaged line is put aside."""
        if not self._path.exists():
            return
        for number, line in enumerate(self._path.read_bytes().splitlines(keepends=True), start=1):
            change = read_line(line)
            if change is None:
                self.put_aside_line(number)
                return
            self.lines = number
            yield change

    def put_aside_line(self, number: int) -> None:
        """Move a line, counted from 1, and all that follow it to a file of their own."""
        lines = self._path.read_bytes().splitlines(keepends=True)
        kept, damaged = b"".join(lines[: number - 1]), b"".join(lines[number - 1 :])
        aside = self._free_name()
        aside.write_bytes(damaged)
        os.chmod(aside, FILE_MODE)
        os.truncate(self._path, len(kept))
        self._size, self.lines = len(kept), number - 1
        self.damage = (
            f"line {number} of {self._path.name} is damaged; the state before it is used, and the "
            f"rest was moved to {aside.name}"
        )

    def _free_name(self) -> pathlib.Path:
        """Return a name that no earlier damage was put aside under."""
        number = 1
        while (name := self._path.with_name(f"{self._path.name}.damaged-{number}")).exists():
            number += 1
        return name


def to_line(change: dict[str, Any]) -> bytes:
    """Return a change as a line with a checksum."""
    text = json.dumps(change, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def read_line(line: bytes) -> dict[str, Any] | None:
    """Return the change of a line; None if the line is not as it was written."""
    try:
        checksum, text = line[:8], line[9:].rstrip(b"\n")
        if not line.endswith(b"\n") or int(checksum, 16) != zlib.crc32(text):
            return None
        change = json.loads(text)
    except ValueError:
        return None
    return change if isinstance(change, dict) else None
