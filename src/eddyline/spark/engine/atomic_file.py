"""Small JSON files that are either complete or not there, with a checksum.

The checksum is the first line, so that a file that was cut, emptied or altered is recognised. Files
of earlier versions, which are bare JSON, are read too.
"""

from __future__ import annotations

import json
import os
import pathlib
import zlib
from typing import Any

from eddyline.errors import EngineError

FILE_MODE = 0o600
FOLDER_MODE = 0o700


class DamagedFileError(EngineError):
    """A file of an engine is not as it was written."""


def write_atomically(path: pathlib.Path, content: Any) -> None:
    """Write a JSON file; a crash leaves the old file or the new one, never a part of it."""
    partial = path.with_name(f"{path.name}.partial")
    text = json.dumps(content, separators=(",", ":")).encode()
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(f"{zlib.crc32(text):08x}\n".encode() + text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        raise EngineError(
            f"cannot write {path}: {error.strerror or error}; free some space or grant access, "
            f"then start the engine again: nothing is lost, the micro-batch will be run again"
        ) from error


def read_checked(path: pathlib.Path) -> Any | None:
    """Return the content of a file; None if it does not exist.

    Raises
    ------
    DamagedFileError
        If the file is not as it was written.

    Examples
    --------
    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "record.json"
    >>> write_atomically(path, {"rows": 3})
    >>> read_checked(path)
    {'rows': 3}
    >>> path.write_bytes(path.read_bytes()[:-1]) > 0
    True
    >>> read_checked(path)
    Traceback (most recent call last):
    ...
    eddyline.spark.engine.atomic_file.DamagedFileError: .../record.json is damaged; ...

    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedFileError(
            f"cannot read {path}: {error.strerror or error}; grant access or restore it from a "
            f"backup"
        ) from error
    try:
        if raw[:1] in (b"{", b"["):  # written before files had checksums
            return json.loads(raw)
        checksum, text = raw.split(b"\n", 1)
        if int(checksum, 16) == zlib.crc32(text):
            return json.loads(text)
    except ValueError:
        pass
    raise DamagedFileError(f"{path} is damaged; restore it from a backup")


def sync_folder(folder: pathlib.Path) -> None:
    """Make sure that the names of new files in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
