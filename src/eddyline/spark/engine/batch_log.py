"""Which micro-batches are finished, and with which version of the catalogue each was run.

A micro-batch that Spark runs again after a crash must see the same queries as before, so its
version is on disk before it begins. What it wrote counts from the moment its own record is there;
a finished micro-batch is not run again. From time to time a snapshot takes the place of all records
before it (`docs/decisions/0020`). Files have checksums, and one that is missing or damaged is an
error with its name: no micro-batch disappears in silence.
"""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Iterable, Sequence

from eddyline.errors import EngineError
from eddyline.spark.engine.atomic_file import (
    FOLDER_MODE,
    DamagedFileError,
    read_checked,
    write_atomically,
)
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.log_state import LogState
from eddyline.spark.engine.result_part import ResultPart

SNAPSHOT = "snapshot.json"
#: Stands for offsets that are no longer kept; equal to none that Spark may plan.
FORGOTTEN = "forgotten"


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
        self._snapshot = folder / SNAPSHOT
        self._snapshot_end = 0
        #: Held while the state changes or is copied.
        self._lock = threading.Lock()
        self._handed_out_s: dict[str, float] = {}
        #: What all finished micro-batches add up to.
        self.state = LogState()
        #: Micro-batches whose records are missing or damaged, with the reason.
        self.lost: dict[int, str] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        self._read()

    @property
    def records(self) -> int:
        """Number of finished micro-batches that the snapshot does not hold."""
        return self.state.end - self._snapshot_end

    # --- micro-batches -----------------------------------------------------------------------

    def begin(
        self,
        batch: int,
        version: int,
        tables: dict[str, int],
        offsets: str,
        idle: Sequence[str] = (),
    ) -> BatchRecord:
        """Record that a micro-batch begins; return the versions it must be run with.

        If it began before, what was recorded then counts, also which streams were idle.
        """
        path = self._begun(batch)
        begun = read_checked(path)
        if begun is None:
            begun = {"version": version, "tables": tables, "offsets": offsets, "idle": list(idle)}
            write_atomically(path, begun)
        try:
            record = BatchRecord(int(begun["version"]), begun["tables"])
            record.offsets = begun.get("offsets", "")
            record.idle = list(begun.get("idle", ()))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DamagedFileError(
                f"{path} is damaged; delete it if micro-batch {batch} was never run before, else "
                f"restore it from a backup"
            ) from None
        return record

    def finish(self, batch: int, record: BatchRecord) -> None:
        """Record that a micro-batch is finished."""
        record.finished_s = time.time()
        path = self._path(batch)
        try:
            write_atomically(path, record.to_dict())
        finally:
            if path.exists():  # it counts, also if the disk was too full to sync its folder
                with self._lock:
                    self.state.add(batch, record)
        self._begun(batch).unlink(missing_ok=True)

    def record(self, batch: int) -> BatchRecord | None:
        """Return the record of a finished micro-batch; None if it is not finished.

        Of one that the snapshot holds, only the offsets.

        Raises
        ------
        DamagedFileError
            If there is a record that cannot be read.

        """
        if batch < self._snapshot_end:
            return BatchRecord(0, offsets=self.state.offsets.get(batch, FORGOTTEN))
        path = self._path(batch)
        plain = read_checked(path)
        if plain is None:
            return None
        try:
            record = BatchRecord.from_dict(plain)
            if not record.finished_s:  # records of earlier versions
                record.finished_s = path.stat().st_mtime
            return record
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DamagedFileError(f"{path} is damaged; restore it from a backup") from None

    # --- stored results ----------------------------------------------------------------------

    def parts(self) -> list[ResultPart]:
        """Return all stored results."""
        with self._lock:
            return list(self.state.parts.values())

    def parts_of(self, query: int) -> list[ResultPart]:
        """Return the parts with results of a query, and note that a reader was given them."""
        with self._lock:
            parts = [part for part in self.state.parts.values() if query in part.numbers]
            self._handed_out_s |= dict.fromkeys([part.folder for part in parts], time.monotonic())
            return parts

    def handed_out_s(self, folder: str) -> float:
        """Return when a part was last given to a reader, by its folder; minus infinity if never."""
        return self._handed_out_s.get(folder, float("-inf"))

    def forget_reader(self, folder: str) -> None:
        """Forget that a part was given to a reader, as it was deleted."""
        with self._lock:
            self._handed_out_s.pop(folder, None)

    # --- snapshots ---------------------------------------------------------------------------

    def save(self, state: LogState) -> None:
        """Write a snapshot, from then on the state of the log; delete the records it replaces."""
        write_atomically(self._snapshot, state.to_dict())
        with self._lock:
            self.state = state
            self._snapshot_end = state.end
        self.delete_leftovers()

    def delete_leftovers(self) -> None:
        """Delete records that the snapshot holds, oldest first: what is left has no gaps."""
        for number in sorted(n for n in self._numbers() if n < self._snapshot_end):
            self._path(number).unlink(missing_ok=True)
        for path in self._folder.glob("*.begun.json"):
            name = path.name.removesuffix(".begun.json")
            if name.isdigit() and int(name) < self.state.end:
                path.unlink(missing_ok=True)

    def _read(self) -> None:
        """Read the snapshot and the records behind it; note those lost."""
        numbers = self._numbers()
        try:
            self.state = self._read_snapshot()
        except DamagedFileError as error:
            first = min(numbers, default=1)
            self.lost = dict.fromkeys(range(first), str(error))
            self.state = LogState(end=first)
        self._snapshot_end = self.state.end
        for batch in range(self.state.end, max(numbers, default=-1) + 1):
            try:
                record = self.record(batch)
            except DamagedFileError as error:
                self.lost[batch] = str(error)
                continue
            if record is None:
                self.lost[batch] = self._missing(batch)
            else:
                self.state.add(batch, record)
        self.state.end = max(self.state.end, max(self.lost, default=-1) + 1)

    def _read_snapshot(self) -> LogState:
        plain = read_checked(self._snapshot)
        if plain is None:
            return LogState()
        try:
            return LogState.from_dict(plain)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DamagedFileError(
                f"{self._snapshot} is damaged; restore it from a backup"
            ) from None

    # --- losses ------------------------------------------------------------------------------

    def check_committed(self, committed: Iterable[int]) -> None:
        """Note micro-batches as lost that Spark has committed but that have no record."""
        for batch in sorted(set(committed)):
            if batch >= self.state.end and batch not in self.lost:
                self.lost[batch] = self._missing(batch)

    def check_stored(self, batches: Iterable[int]) -> None:
        """Note micro-batches as lost that have merged results but are not in the log.

        Results are merged only after their micro-batches are finished.
        """
        for batch in sorted(set(batches)):
            if batch >= self.state.end and batch not in self.lost:
                self.lost[batch] = f"{self._snapshot} is missing or older than the results"

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
        if not self.lost:
            return []
        reasons = list(dict.fromkeys(self.lost[batch] for batch in sorted(self.lost)))
        self.state.give_up(self.lost)
        self.lost = {}
        self.save(self.state)
        return reasons

    def give_up_state(self, names: Iterable[str]) -> None:
        """Let joins go on without the rows of some containers."""
        for name in names:
            del self.state.containers[name]
        self.save(self.state)

    # --- files -------------------------------------------------------------------------------

    def _missing(self, batch: int) -> str:
        alone = "" if self._snapshot.exists() else f", and there is no {SNAPSHOT} that holds it"
        return f"{self._path(batch)} is missing{alone}"

    def _path(self, batch: int) -> pathlib.Path:
        return self._folder / f"{batch}.json"

    def _begun(self, batch: int) -> pathlib.Path:
        return self._folder / f"{batch}.begun.json"

    def _numbers(self) -> list[int]:
        paths = self._folder.glob("*.json")
        return [int(path.stem) for path in paths if path.stem.isdigit()]
