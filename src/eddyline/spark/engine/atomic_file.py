"""Files that are either complete or not there."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from eddyline.errors import EngineError


def write_atomically(path: pathlib.Path, content: Any) -> None:
    """Write a JSON file; a crash leaves the old file or the new one, never a part of it."""
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "w") as file:
            file.write(json.dumps(content, separators=(",", ":")))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise EngineError(
            f"cannot write {path}: {error.strerror or error}; free some space or grant access, "
            f"then start the engine again: nothing is lost, the micro-batch will be run again"
        ) from error
