"""File operations that fail: everything from some operation on, or one of them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

NAMES = ("open", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "fchmod")
PARQUET = ("__init__", "write_batch", "write_table", "close")
_NEVER = 10**9


class KilledError(BaseException):
    """Stands for the end of the process."""


class FileOperations:
    """Counts file operations, and can let one of them, or all from one on, raise an error.

    Nothing waits for the disk meanwhile.

    Parameters
    ----------
    monkeypatch
        Undoes it.

    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        #: What was done since `fail` was called last, as "replace 3.json".
        self.done: list[str] = []
        #: The first operation that failed since then; None if none did.
        self.failed: str | None = None
        self._first, self._last = _NEVER, _NEVER
        self._kind = ""
        self._error: Callable[[], BaseException] = KilledError
        for owner, names in ((os, NAMES), (pq.ParquetWriter, PARQUET)):
            for name in names:
                monkeypatch.setattr(owner, name, self._watched(name, getattr(owner, name)))

    def fail(
        self,
        first: int = 0,
        count: int = _NEVER,
        error: Callable[[], BaseException] = KilledError,
        kind: str = "",
    ) -> None:
        """Let so many operations raise an error, beginning with one that is counted from 0.

        Parameters
        ----------
        first, count
            Which ones; no operation follows the end of a process.
        error
            Makes the error.
        kind
            Count only operations whose text, as in `done`, contains this.

        """
        self.done, self.failed = [], None
        self._first, self._last, self._error, self._kind = first, first + count, error, kind

    def succeed(self) -> None:
        """Let all operations succeed again."""
        self._first = _NEVER

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            what = f"{name} {_path_of(args)}"
            if self._kind in what:
                self.done.append(what)
                if self._first < len(self.done) <= self._last:
                    self.failed = self.failed or what
                    raise self._error()
            return None if name == "fsync" else real(*args, **keywords)

        return call


def _path_of(args: tuple[Any, ...]) -> str:
    """Return the name of the file that an operation is about, as far as it is known."""
    paths = [str(arg) for arg in args if isinstance(arg, str | pathlib.Path)]
    return pathlib.PurePath(paths[-1]).name if paths else ""
