"""Which micro-batches are finished, and with which version of the catalogue each was run.

A micro-batch that Spark runs again after a crash must see the same queries as before, so its
version is on disk before it begins. What it wrote counts from the moment its own record is there;
a finished micro-batch is not run again. Records have checksums, and a record that is missing or
damaged is an error with its name: no micro-batch disappears in silence.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eddyline.errors import EngineError
from eddyline.spark.engine.atomic_file import (
    FOLDER_MODE,
    DamagedFileError,
    read_checked,
    write_atomically,
)


@dataclass
class BatchRecord:
    """A finished micro-batch.

    Parameters
    ----------
    version, tables
        Versions of the catalogue, and of each static table, that it was run with.
    counts
        Results, by query number.
    rows
        Rows read.
    newest_us
        For streams that have an event time: the newest seen so far.
    offsets
        Which rows Spark read, as a fingerprint of its checkpoint; empty if it is not known.
    files
        The result files, by path below the folder of results, with their sizes in bytes.
    alone
        For queries that Spark filtered the rows for by itself, by number: the files of their own.
    join_files
        The files with results of joins, below the folder of results, with their sizes in bytes.
    state_added, state_removed
        Containers of join state that it wrote, and names of those that it replaced or that have
        expired.
    excluded
        Rows on which the SELECT of a query failed, by query number: name of the file and index
        in it of each. They are not in its results.

    """

    version: int
    tables: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    newest_us: dict[str, int] = field(default_factory=dict)
    offsets: str = ""
    files: dict[str, int] = field(default_factory=dict)
    join_files: dict[str, int] = field(default_factory=dict)
    state_added: list[dict[str, Any]] = field(default_factory=list)
    state_removed: list[str] = field(default_factory=list)
    alone: dict[int, dict[str, int]] = field(default_factory=dict)
    excluded: dict[int, list[tuple[str, int]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> BatchRecord:
        """Read what `to_dict` wrote."""
        by_query = {
            name: {int(number): value for number, value in plain.get(name, {}).items()}
            for name in ("counts", "alone", "excluded")
        }
        by_query["excluded"] = {
            number: [(str(file), int(index)) for file, index in rows]
            for number, rows in by_query["excluded"].items()
        }
        return cls(**{**plain, "counts": plain["counts"], **by_query})


class BatchLog:
    """The micro-batches of one engine.

    Parameters
    ----------
    folder
        Where the records are.

    Examples
    --------
    >>> import tempfile
    >>> log = BatchLog(pathlib.Path(tempfile.mkdtemp()))
    >>> log.begin(0, version=7, tables={}, offsets="").version
    7
    >>> log.begin(0, version=9, tables={}, offsets="").version  # again: as the first time
    7
    >>> log.finish(0, BatchRecord(7, counts={1: 20}))
    >>> log.record(0).counts, log.record(1)
    ({1: 20}, None)

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        #: Results of each query in all finished micro-batches, by query number.
        self.matched: dict[int, int] = {}
        #: Newest event time of each stream that has one.
        self.newest_us: dict[str, int] = {}
        #: Newest version of the catalogue that a micro-batch was run with.
        self.newest_version = 0
        #: Micro-batches whose records are missing or damaged, with the reason.
        self.lost: dict[int, str] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        for record in self.finished().values():
            self._add_up(record)

    def begin(self, batch: int, version: int, tables: dict[str, int], offsets: str) -> BatchRecord:
        """Record that a micro-batch begins; return the versions it must be run with."""
        path = self._folder / f"{batch}.begun.json"
        begun = read_checked(path)
        if begun is None:
            begun = {"version": version, "tables": tables, "offsets": offsets}
            write_atomically(path, begun)
        try:
            record = BatchRecord(int(begun["version"]), begun["tables"])
            record.offsets = begun.get("offsets", "")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DamagedFileError(
                f"{path} is damaged; delete it if micro-batch {batch} was never run before, else "
                f"restore it from a backup"
            ) from None
        return record

    def finish(self, batch: int, record: BatchRecord) -> None:
        """Record that a micro-batch is finished."""
        write_atomically(self._folder / f"{batch}.json", record.to_dict())
        self._add_up(record)
        (self._folder / f"{batch}.begun.json").unlink(missing_ok=True)

    def record(self, batch: int) -> BatchRecord | None:
        """Return the record of a finished micro-batch; None if it is not finished.

        Raises
        ------
        DamagedFileError
            If there is a record that cannot be read.

        """
        path = self._folder / f"{batch}.json"
        plain = read_checked(path)
        if plain is None:
            return None
        try:
            return BatchRecord.from_dict(plain)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DamagedFileError(f"{path} is damaged; restore it from a backup") from None

    def finished(self) -> dict[int, BatchRecord]:
        """Read the records of all finished micro-batches, in their order; note those lost.

        Each number up to the newest is asked for: a listing of the folder may lack a record that is
        written meanwhile.
        """
        records: dict[int, BatchRecord] = {}
        lost: dict[int, str] = {}
        for batch in range(max(self._numbers(), default=-1) + 1):
            try:
                record = self.record(batch)
            except DamagedFileError as error:
                lost[batch] = str(error)
                continue
            if record is None:
                lost[batch] = self._missing(batch)
            else:
                records[batch] = record
        self.lost = lost  # at once: another thread may look at it
        return records

    def check_committed(self, committed: Iterable[int]) -> None:
        """Note micro-batches as lost that Spark has committed but that have no record."""
        for batch in sorted(set(committed) - set(self._numbers()) - set(self.lost)):
            self.lost[batch] = self._missing(batch)

    def _missing(self, batch: int) -> str:
        return f"{self._folder / f'{batch}.json'} is missing"

    def refuse_if_lost(self) -> None:
        """Raise if a micro-batch was lost: whatever is read would silently lack its rows."""
        if self.lost:
            batch, reason = min(self.lost.items())
            more = f" (and {len(self.lost) - 1} more)" if len(self.lost) > 1 else ""
            raise EngineError(
                f"the results of micro-batch {batch} are lost{more}: {reason}. Restore the file "
                f"from a backup, or open the engine with repair=True to go on without them"
            )

    def accept_losses(self) -> list[str]:
        """Count lost micro-batches as finished without results; return what was lost."""
        reasons = [self.lost[batch] for batch in sorted(self.lost)]
        for batch in self.lost:
            write_atomically(self._folder / f"{batch}.json", BatchRecord(0).to_dict())
        self.lost = {}
        return reasons

    def _numbers(self) -> list[int]:
        paths = self._folder.glob("*.json")
        return [int(path.stem) for path in paths if path.stem.isdigit()]

    def _add_up(self, record: BatchRecord) -> None:
        for number, count in record.counts.items():
            self.matched[number] = self.matched.get(number, 0) + count
        self.newest_us |= record.newest_us
        self.newest_version = max(self.newest_version, record.version)
