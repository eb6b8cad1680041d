"""Containers of join state: immutable files of Arrow sections, one section for each SteM.

A task writes one container for the rows of a micro-batch, and one whenever it merges several. The
driver knows every container by a `StateFile`, which travels in the note of the task and is kept in
the batch log; what no record lists does not exist.
"""

from __future__ import annotations

import os
import pathlib
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eddyline.errors import EngineError
from eddyline.index.configuration import Configuration
from eddyline.joins.arrivals import UNCOUNTED

#: Version of the layout of containers; another one is refused.
LAYOUT = 1
_MAGIC = b"EDDYSTEM"
_ALIGNMENT = 64
_FIX = (
    "restore it from a backup, or open the engine with repair=True to go on without the rows in it"
)


class StateFileError(EngineError):
    """A file of join state is missing or is not as it was written."""


@dataclass(frozen=True)
class Section:
    """The rows of one SteM in a container.

    Parameters
    ----------
    offset, length
        Where the section lies, in bytes.
    rows
        Number of rows.
    oldest_us, newest_us
        Smallest and largest event time.
    keys
        Names of the key columns.
    slots
        Which query a bit of the lineage stands for: by slot, the query's number and how often it
        was resumed.
    last_row
        Largest sequence number of the rows.
    compared
        Names of the columns that comparisons across streams use.
    configuration
        Of the index over the key columns; None without one.

    """

    offset: int
    length: int
    rows: int
    oldest_us: int
    newest_us: int
    keys: tuple[str, ...]
    slots: Mapping[int, tuple[int, int]]
    last_row: int = UNCOUNTED
    compared: tuple[str, ...] = ()
    configuration: Configuration | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "at": [self.offset, self.length, self.rows, self.oldest_us, self.newest_us],
            "keys": list(self.keys),
            "slots": {str(slot): list(key) for slot, key in self.slots.items()},
            "last_row": self.last_row,
            "compared": list(self.compared),
            "index": None if self.configuration is None else self.configuration.to_list(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Section:
        """Read what `to_dict` wrote."""
        offset, length, rows, oldest_us, newest_us = plain["at"]
        slots = {int(slot): (key[0], key[1]) for slot, key in plain["slots"].items()}
        return cls(
            offset,
            length,
            rows,
            oldest_us,
            newest_us,
            tuple(plain["keys"]),
            slots,
            plain.get("last_row", UNCOUNTED),
            tuple(plain.get("compared", ())),
            Configuration.from_list(index) if (index := plain.get("index")) else None,
        )


@dataclass(frozen=True)
class StateFile:
    """A container.

    Parameters
    ----------
    name
        File name below the folder of join state; never used twice.
    batch
        The micro-batch that wrote it.
    task, tasks
        The task that its rows belong to, and the number of tasks that rows were dealt out to.
    size, checksum
        Bytes, and their CRC-32.
    sections
        By name of the SteM.
    tier
        How often its rows were merged.

    """

    name: str
    batch: int
    task: int
    tasks: int
    size: int
    checksum: int
    sections: Mapping[str, Section]
    tier: int = 0

    @property
    def rows(self) -> int:
        """Number of rows of all streams."""
        return sum(section.rows for section in self.sections.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "layout": LAYOUT,
            "name": self.name,
            "batch": self.batch,
            "task": self.task,
            "tasks": self.tasks,
            "size": self.size,
            "checksum": self.checksum,
            "sections": {name: section.to_dict() for name, section in self.sections.items()},
            "tier": self.tier,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StateFile:
        """Read what `to_dict` wrote; refuse another layout."""
        if plain.get("layout") != LAYOUT:
            raise StateFileError(
                f"the join state has layout {plain.get('layout')}, this release of eddyline reads "
                f"layout {LAYOUT}; open the engine with the release that wrote it, or begin a new "
                f"engine in another folder"
            )
        sections = {name: Section.from_dict(given) for name, given in plain["sections"].items()}
        rest = {k: v for k, v in plain.items() if k not in ("layout", "sections")}
        return cls(**rest, sections=sections)


@dataclass(frozen=True)
class SectionRows:
    """Rows to write into a section: their columns, and what `Section` says of them."""

    columns: pa.RecordBatch
    oldest_us: int
    newest_us: int
    keys: tuple[str, ...]
    slots: Mapping[int, tuple[int, int]]
    last_row: int = UNCOUNTED
    compared: tuple[str, ...] = ()
    configuration: Configuration | None = None


def write_container(
    folder: pathlib.Path,
    rows: Mapping[str, SectionRows],
    *,
    batch: int,
    task: int,
    tasks: int,
    tier: int = 0,
) -> StateFile:
    """Write a container, make it durable, and return its description.

    Parameters
    ----------
    folder
        Of the join state.
    rows
        By name of the SteM.
    batch, task, tasks, tier
        As in `StateFile`.

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = SectionRows(pa.record_batch({"a": [1, 2]}), 5, 6, (), {})
    >>> written = write_container(folder, {"light": rows}, batch=3, task=0, tasks=1)
    >>> read_section(folder, written, "light")["a"].to_pylist()
    [1, 2]

    """
    name = f"{batch}-{task}-{uuid.uuid4().hex[:12]}.stem"
    sink = pa.BufferOutputStream()
    sink.write(_MAGIC + LAYOUT.to_bytes(8, "little"))
    sections = {}
    for stem, given in rows.items():
        sink.write(b"\0" * (-sink.tell() % _ALIGNMENT))
        begin = sink.tell()
        with pa.ipc.new_stream(sink, given.columns.schema) as writer:
            writer.write_batch(given.columns)
        length, count = sink.tell() - begin, given.columns.num_rows
        sections[stem] = Section(
            begin,
            length,
            count,
            given.oldest_us,
            given.newest_us,
            given.keys,
            given.slots,
            given.last_row,
            given.compared,
            given.configuration,
        )
    content = sink.getvalue()
    path = folder / name
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StateFileError(
            f"cannot write join state to {path}: {error.strerror or error}; free some space or "
            f"grant access, then start the engine again: nothing is lost"
        ) from error
    return StateFile(name, batch, task, tasks, content.size, zlib.crc32(content), sections, tier)


def check_present(folder: pathlib.Path, file: StateFile) -> None:
    """Raise if a container is missing or has another size; for one that is mapped already."""
    path = folder / file.name
    size = path.stat().st_size if path.exists() else -1
    if size != file.size:
        what = "is missing" if size < 0 else "is damaged"
        raise StateFileError(f"{path}, which micro-batch {file.batch} wrote, {what}; {_FIX}")


def open_container(folder: pathlib.Path, file: StateFile) -> pa.Buffer:
    """Map a container into memory, after comparing it with its description."""
    path = folder / file.name
    where = f"{path}, which micro-batch {file.batch} wrote,"
    try:
        with pa.memory_map(str(path)) as mapped:
            content = mapped.read_buffer()
    except OSError as error:
        raise StateFileError(
            f"{where} cannot be read: {error.strerror or error}; {_FIX}"
        ) from error
    if content.size != file.size or zlib.crc32(content) != file.checksum:
        raise StateFileError(f"{where} is damaged; {_FIX}")
    return content


def read_section(folder: pathlib.Path, file: StateFile, stem: str) -> pa.RecordBatch:
    """Return the rows of one SteM without copying them."""
    return section_of(open_container(folder, file), file.sections[stem])


def section_of(content: pa.Buffer, section: Section) -> pa.RecordBatch:
    """Return the rows of a section of an opened container."""
    part = content.slice(section.offset, section.length)
    return pa.ipc.open_stream(pa.BufferReader(part)).read_next_batch()
