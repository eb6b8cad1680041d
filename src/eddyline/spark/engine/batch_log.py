"""Which micro-batches are finished, and with which version of the catalogue each was run.

A micro-batch that Spark runs again after a crash must see the same queries as before, so its
version is on disk before it begins. What it wrote counts from the moment its own record is there;
a finished micro-batch is not run again.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eddyline.spark.engine.atomic_file import write_atomically


@dataclass
class BatchRecord:
    """A finished micro-batch.

    Parameters
    ----------
    version, tables
        Versions of the catalogue, and of each static table, that it was run with.
    counts
        Rows matched, by query number.
    rows
        Rows read.
    newest_us
        For streams that have an event time: the newest seen so far.

    """

    version: int
    tables: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    newest_us: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> BatchRecord:
        """Read what `to_dict` wrote."""
        counts = {int(number): count for number, count in plain["counts"].items()}
        return cls(**{**plain, "counts": counts})


class BatchLog:
    """The micro-batches of one engine.

    Examples
    --------
    >>> import tempfile
    >>> log = BatchLog(pathlib.Path(tempfile.mkdtemp()))
    >>> log.begin(0, version=7, tables={}).version
    7
    >>> log.begin(0, version=9, tables={}).version  # run again: the version of the first time
    7
    >>> log.finish(0, BatchRecord(7, counts={1: 20}))
    >>> log.is_finished(0), log.finished()[0].counts
    (True, {1: 20})

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        #: Rows that each query matched in all finished micro-batches, by query number.
        self.matched: dict[int, int] = {}
        #: Newest event time of each stream that has one.
        self.newest_us: dict[str, int] = {}
        for record in self.finished().values():
            self._add_up(record)

    def begin(self, batch: int, version: int, tables: dict[str, int]) -> BatchRecord:
        """Record that a micro-batch begins; return the versions it must be run with."""
        path = self._folder / f"{batch}.begun.json"
        begun = _read(path)
        if begun is None:
            begun = {"version": version, "tables": tables}
            write_atomically(path, begun)
        return BatchRecord(begun["version"], begun["tables"])

    def finish(self, batch: int, record: BatchRecord) -> None:
        """Record that a micro-batch is finished."""
        write_atomically(self._folder / f"{batch}.json", record.to_dict())
        self._add_up(record)
        (self._folder / f"{batch}.begun.json").unlink(missing_ok=True)

    def is_finished(self, batch: int) -> bool:
        """Return True if a micro-batch was run to its end."""
        return _read(self._folder / f"{batch}.json") is not None

    def finished(self) -> dict[int, BatchRecord]:
        """Read the records of all finished micro-batches, in their order."""
        records = {}
        for path in self._folder.glob("*.json"):
            plain = _read(path) if path.stem.isdigit() else None
            if plain is not None:
                records[int(path.stem)] = BatchRecord.from_dict(plain)
        return dict(sorted(records.items()))

    def _add_up(self, record: BatchRecord) -> None:
        for number, count in record.counts.items():
            self.matched[number] = self.matched.get(number, 0) + count
        self.newest_us |= record.newest_us


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """Return the content of a file; None if it does not exist or is not complete."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        return content
    except (FileNotFoundError, ValueError):
        return None
