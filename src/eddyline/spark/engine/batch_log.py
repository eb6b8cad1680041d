"""Which micro-batches are finished, and with which version of the catalogue each was run.

A micro-batch that Spark runs again after a crash must see the same queries as before: its version
is on disk before it begins. One that is finished is not run again: what it wrote counts from the
moment its record is there, and not before.
"""

from __future__ import annotations

import json
import os
import pathlib
from dataclasses import dataclass, field
from typing import Any

from eddyline.errors import EngineError


@dataclass
class BatchRecord:
    """A finished micro-batch.

    Parameters
    ----------
    version, tables
        The versions of the catalogue, and of each static table, that it was run with.
    counts
        How many rows each query matched, by the query's number.
    rows
        Rows read.
    newest_us
        For streams that have a time: the newest seen so far.

    """

    version: int
    tables: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    newest_us: dict[str, int] = field(default_factory=dict)


class BatchLog:
    """The micro-batches of one engine.

    Examples
    --------
    >>> import tempfile
    >>> log = BatchLog(pathlib.Path(tempfile.mkdtemp()))
    >>> log.begin(0, version=7, tables={}).version
    7
    >>> log.begin(0, version=9, tables={}).version  # run again: with the queries of the first time
    7
    >>> log.finish(0, BatchRecord(7, counts={1: 20}))
    >>> log.is_finished(0), log.finished()[0].counts
    (True, {1: 20})

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._finished: dict[int, BatchRecord] = {}
        self._known_names: set[str] = set()

    def begin(self, batch: int, version: int, tables: dict[str, int]) -> BatchRecord:
        """Note that a micro-batch begins; return what it must be run with."""
        path = self._folder / f"{batch}.begun.json"
        known = _read(path)
        if known is None:
            known = {"version": version, "tables": tables}
            _write(path, known)
        return BatchRecord(known["version"], known["tables"])

    def finish(self, batch: int, record: BatchRecord) -> None:
        """Note that a micro-batch is finished."""
        path = self._folder / f"{batch}.json"
        _write(
            path,
            {
                "version": record.version,
                "tables": record.tables,
                "counts": record.counts,
                "rows": record.rows,
                "newest_us": record.newest_us,
            },
        )
        self._finished[batch] = record
        self._known_names.add(path.name)
        (self._folder / f"{batch}.begun.json").unlink(missing_ok=True)

    def is_finished(self, batch: int) -> bool:
        """Say whether a micro-batch was run to its end."""
        return batch in self.finished()

    def finished(self) -> dict[int, BatchRecord]:
        """Return all finished micro-batches, in their order."""
        for path in self._folder.glob("[0-9]*.json"):
            if path.name in self._known_names or path.name.endswith(".begun.json"):
                continue
            known = _read(path)
            if known is None:
                continue
            self._known_names.add(path.name)
            self._finished[int(path.stem)] = BatchRecord(
                known["version"],
                known["tables"],
                {int(number): count for number, count in known["counts"].items()},
                known["rows"],
                known["newest_us"],
            )
        return dict(sorted(self._finished.items()))


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """Return a file's content; None if there is none, or not a whole one."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        return content
    except (FileNotFoundError, ValueError):
        return None


def _write(path: pathlib.Path, content: dict[str, Any]) -> None:
    """Write a file so that it is there whole, or not at all."""
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "w") as file:
            file.write(json.dumps(content, separators=(",", ":")))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise EngineError(
            f"cannot write {path}: {error.strerror or error}; make room or give access, then start "
            f"the engine again: nothing is lost, the micro-batch will be run again"
        ) from error
