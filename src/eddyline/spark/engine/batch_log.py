"""Which micro-batches are finished, and with which version of the catalogue each was run.

A micro-batch that Spark runs again after a crash must see the same queries as before: its version
is on disk before it begins. One that is finished is not run again: what it wrote counts from the
moment its record is there, and not before.
"""

from __future__ import annotations

import json
import os
import pathlib
from dataclasses import asdict, dataclass, field
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
        #: How many rows each query matched in all finished micro-batches, by its number.
        self.matched: dict[int, int] = {}
        #: The newest time seen in each stream that has one.
        self.newest_us: dict[str, int] = {}
        for record in self.finished().values():
            self._take_in(record)

    def begin(self, batch: int, version: int, tables: dict[str, int]) -> BatchRecord:
        """Note that a micro-batch begins; return what it must be run with."""
        path = self._folder / f"{batch}.begun.json"
        known = _read(path)
        if known is None:
            known = {"version": version, "tables": tables}
            write_whole(path, known)
        return BatchRecord(known["version"], known["tables"])

    def finish(self, batch: int, record: BatchRecord) -> None:
        """Note that a micro-batch is finished."""
        write_whole(self._folder / f"{batch}.json", asdict(record))
        self._take_in(record)
        (self._folder / f"{batch}.begun.json").unlink(missing_ok=True)

    def is_finished(self, batch: int) -> bool:
        """Say whether a micro-batch was run to its end."""
        return _read(self._folder / f"{batch}.json") is not None

    def finished(self) -> dict[int, BatchRecord]:
        """Read all finished micro-batches, in their order; nothing of them is kept in memory."""
        found = {}
        for path in self._folder.glob("*.json"):
            known = _read(path) if path.stem.isdigit() else None
            if known is not None:
                known["counts"] = {int(n): count for n, count in known["counts"].items()}
                found[int(path.stem)] = BatchRecord(**known)
        return dict(sorted(found.items()))

    def _take_in(self, record: BatchRecord) -> None:
        for number, count in record.counts.items():
            self.matched[number] = self.matched.get(number, 0) + count
        self.newest_us |= record.newest_us


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """Return a file's content; None if there is none, or not a whole one."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        return content
    except (FileNotFoundError, ValueError):
        return None


def write_whole(path: pathlib.Path, content: Any) -> None:
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
