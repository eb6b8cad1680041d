"""The folder of an engine: everything that survives a restart, held by one process at a time."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import warnings
from typing import IO, TYPE_CHECKING

from eddyline.errors import EngineError
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import BatchLost, CatalogueRepaired, StateLost
from eddyline.spark.engine.atomic_file import FILE_MODE, FOLDER_MODE
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.catalogue import Catalogue
from eddyline.spark.engine.checkpoint import Checkpoint
from eddyline.spark.engine.housekeeping import Housekeeping
from eddyline.spark.engine.result_store import ResultStore
from eddyline.spark.state.state_file import (
    StateFile,
    StateFileError,
    check_present,
    open_container,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class EngineFolder:
    """Catalogue, micro-batches, results and journal of one engine.

    Parameters
    ----------
    spark
        The session that reads and writes results.
    path
        The folder; made if it does not exist, and locked until `close`.
    keep_s
        For how long results are kept; None for any time.

    """

    def __init__(
        self, spark: SparkSession, path: pathlib.Path, keep_s: float | None = None
    ) -> None:
        self._lock_file = _lock(path)
        self.path = path
        try:
            self.catalogue = Catalogue(path)
            self.log = BatchLog(path / "batches")
            #: Where Spark keeps the offsets of the streams.
            self.checkpoint = Checkpoint(path / "checkpoint")
            self.log.check_committed(self.checkpoint.committed())
        except BaseException:
            self.close()
            raise
        self.catalogue.reserve_numbers([self.log.state.largest_number])
        self.catalogue.check_version(self.log.state.newest_version)
        self.results = ResultStore(spark, path, self.catalogue.table_files)
        #: Decisions since the folder was opened; all of them are in `journal.jsonl`.
        self.journal = Journal()
        self._is_journal_written = True
        #: Keeps the folder small.
        self.housekeeping = Housekeeping(
            self.log, path / "results", self.catalogue, self.note, keep_s
        )
        self.log.check_stored(self.housekeeping.merged_batches())

    @property
    def is_closed(self) -> bool:
        """Whether the folder was let go."""
        return self._lock_file.closed

    @property
    def has_run(self) -> bool:
        """Whether a micro-batch was begun, planned or finished."""
        return bool(self.checkpoint.planned()) or any((self.path / "batches").glob("*.json"))

    def check_open(self) -> None:
        """Refuse to go on in a folder that may belong to another process now."""
        if self.is_closed:
            raise EngineError("the engine is closed; open it again with el.Engine(spark, path)")

    def handle_damage(self, repair: bool) -> None:
        """Warn of a damaged catalogue; refuse lost micro-batches, or accept them."""
        damage = self.catalogue.damage
        if damage:
            self.note(CatalogueRepaired(damage=damage))
            warnings.warn(damage, stacklevel=4)
        if not repair:
            self.log.refuse_if_lost()
        lost: list[Event] = []
        if repair:
            lost += [BatchLost(reason=reason) for reason in self.log.accept_losses()]
            lost += [StateLost(reason=reason) for reason in self._give_up_state()]
        for event in lost:
            self.note(event)
        if not lost:  # files of what was lost stay until the engine is opened again
            self.housekeeping.at_opening()

    def _give_up_state(self) -> list[str]:
        """Let joins go on without containers that are missing or damaged; return the reasons."""
        lost: dict[str, str] = {}
        for plain in self.log.state.containers.values():
            file = StateFile.from_dict(plain)
            try:
                check_present(self.path / "state", file)
                open_container(self.path / "state", file)
            except StateFileError as error:
                lost[file.name] = str(error)
        if lost:
            self.log.give_up_state(lost)
        return list(lost.values())

    def note(self, event: Event, rows: int = 0) -> None:
        """Write a decision to the journal, in memory and on disk.

        A journal that cannot be written is a warning, once: it must not stop queries.
        """
        record = Record(event, rows)
        self.journal.write(record)
        path = self.path / "journal.jsonl"
        line = json.dumps(record.to_dict()) + "\n"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
            with os.fdopen(descriptor, "a", errors="backslashreplace") as file:
                file.write(line)
        except OSError as error:
            if self._is_journal_written:
                warnings.warn(
                    f"cannot write {path}: {error.strerror or error}; decisions are kept in memory "
                    f"only until it can be written",
                    stacklevel=3,
                )
            self._is_journal_written = False
        else:
            self._is_journal_written = True

    def close(self) -> None:
        """Release the lock."""
        if not self._lock_file.closed:
            self._lock_file.close()


def _lock(path: pathlib.Path) -> IO[str]:
    """Make the folder, and lock it until the returned file is closed or the process ends."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        descriptor = os.open(path / "engine.lock", os.O_RDWR | os.O_CREAT, FILE_MODE)
        file = os.fdopen(descriptor, "r+")  # held as long as open
    except OSError as error:
        raise EngineError(
            f"cannot open an engine in {path}: {error.strerror or error}; give a folder that this "
            f"process can make and write"
        ) from error
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
