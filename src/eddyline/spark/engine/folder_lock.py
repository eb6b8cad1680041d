"""One process at a time: a lock on the engine's folder, which dies with the process."""

from __future__ import annotations

import fcntl
import os
import pathlib
from typing import IO

from eddyline.errors import EngineError


def lock_folder(path: pathlib.Path) -> IO[str]:
    """Make the folder, and hold it until the returned file is closed or the process ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = open(path / "engine.lock", "a+")  # noqa: SIM115  held as long as open
    except OSError as error:
        raise EngineError(f"cannot open an engine in {path}: {error.strerror or error}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise EngineError(
            f"the engine in {path} is open already ({holder}); close it there, or use "
            f"another folder"
        ) from None
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file
