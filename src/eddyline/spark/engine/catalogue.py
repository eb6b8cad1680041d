"""The catalogue of an engine, on disk: streams, static tables, function names and queries.

The file is a log of changes, one line with a checksum each, so a change costs one line for any
number of queries. If a line is incomplete or altered, the state before it is used, and the rest of
the file is moved to another file, not deleted.
"""

from __future__ import annotations

import json
import os
import pathlib
import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from eddyline.errors import EngineError
from eddyline.spark.engine.catalogue_entries import QueryEntry, StreamEntry, TableEntry

FILE = "catalogue.jsonl"


class Catalogue:
    """The catalogue of one engine; every change is on disk before it takes effect.

    Parameters
    ----------
    folder
        The folder of the engine.

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> catalogue = Catalogue(folder)
    >>> [query.number for query in catalogue.add_queries([("hot", "SELECT ...", "parquet")])]
    [1]
    >>> again = Catalogue(folder)
    >>> again.query("hot").text, again.version
    ('SELECT ...', 1)

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._path = folder / FILE
        #: Held while the catalogue changes.
        self.lock = threading.RLock()
        self.version = 0
        self.streams: dict[str, StreamEntry] = {}
        self.tables: dict[str, TableEntry] = {}
        self.functions: set[str] = set()
        self.queries: dict[int, QueryEntry] = {}
        self._by_name: dict[str, QueryEntry] = {}
        #: What was wrong with the file when it was read; None if nothing was.
        self.damage: str | None = None
        self._read()

    # --- reading -----------------------------------------------------------------------------

    def query(self, name: str) -> QueryEntry:
        """Return the query that has the name now."""
        found = self._by_name.get(name)
        if found is None:
            names = ", ".join(list(self._by_name)[:10]) or "none"
            raise EngineError(f"no query {name!r}; queries are {names}")
        return found

    def has(self, name: str) -> bool:
        """Return True if a query has the name now."""
        return name in self._by_name

    def names(self) -> list[str]:
        """Return the names of all queries in the order they were added."""
        return list(self._by_name)

    def running_at(self, version: int) -> list[QueryEntry]:
        """Return the queries that run at a version, without those that were dropped later."""
        with self.lock:
            return [q for q in self.queries.values() if q.runs_at(version) and not q.is_dropped]

    # --- changes -----------------------------------------------------------------------------

    def add_queries(self, given: Sequence[tuple[str, str, str]]) -> list[QueryEntry]:
        """Add queries: name, text and kind of sink of each."""
        with self.lock:
            number = max(self.queries, default=0)
            self._write(
                "queries",
                {"queries": [[number + n, *query] for n, query in enumerate(given, start=1)]},
            )
            return [self._by_name[name] for name, _, _ in given]

    def drop_query(self, name: str) -> QueryEntry:
        """Drop a query; its name is free again."""
        with self.lock:
            query = self.query(name)
            self._write("drop", {"number": query.number})
            return query

    def pause(self, errors: Mapping[int, str]) -> None:
        """Pause queries, each with its error, until they are resumed."""
        with self.lock:
            running = {
                str(number): error
                for number, error in errors.items()
                if self.queries[number].error is None and not self.queries[number].is_dropped
            }
            if running:
                self._write("pause", {"errors": running})

    def resume(self, name: str) -> None:
        """Let a paused query run again."""
        with self.lock:
            query = self.query(name)
            if query.error is None:
                raise EngineError(f"query {name!r} is not paused")
            self._write("resume", {"number": query.number})

    def set_stream(self, name: str, entry: StreamEntry) -> None:
        """Add or replace a stream."""
        with self.lock:
            if self.streams.get(name) != entry:
                self._write("stream", {"name": name, "about": entry.to_dict()})

    def set_table(self, name: str, entry: TableEntry) -> None:
        """Add or replace a static table."""
        with self.lock:
            if self.tables.get(name) != entry:
                self._write("table", {"name": name, "about": entry.to_dict()})

    def add_function(self, name: str) -> None:
        """Add the name of a Python function."""
        with self.lock:
            if name not in self.functions:
                self._write("function", {"name": name})

    # --- the file ----------------------------------------------------------------------------

    def _write(self, kind: str, what: dict[str, Any]) -> None:
        record = {"version": self.version + 1, "kind": kind, **what}
        text = json.dumps(record, separators=(",", ":"))
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        try:
            with open(self._path, "ab") as file:
                before = file.tell()
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(before)
                    raise
        except OSError as error:
            raise EngineError(
                f"cannot write {self._path}: {error.strerror or error}; nothing was changed. Free "
                f"some space or grant access, then try again"
            ) from error
        self._apply(record)

    def _read(self) -> None:
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        at = 0
        for number, line in enumerate(content.splitlines(keepends=True), start=1):
            record = _checked(line)
            if record is None or record["version"] != self.version + 1:
                self._put_aside(content, at, number)
                return
            self._apply(record)
            at += len(line)

    def _put_aside(self, content: bytes, at: int, line: int) -> None:
        aside = self._path.with_name(f"{FILE}.damaged-at-version-{self.version + 1}")
        aside.write_bytes(content[at:])
        whole = self._path.with_name(f"{FILE}.whole")
        whole.write_bytes(content[:at])
        os.replace(whole, self._path)
        self.damage = (
            f"line {line} of {FILE} was not written whole; the state before it is used "
            f"(version {self.version}), and the rest was put into {aside.name}"
        )

    def _apply(self, record: Mapping[str, Any]) -> None:
        self.version = version = int(record["version"])
        kind = record["kind"]
        if kind == "queries":
            for number, name, text, sink in record["queries"]:
                query = QueryEntry(number, name, text, sink, [[version, None]])
                self.queries[number] = query
                self._by_name[name] = query
        elif kind == "drop":
            query = self.queries[record["number"]]
            query.end(version)
            query.is_dropped = True
            del self._by_name[query.name]
        elif kind == "pause":
            for number, error in record["errors"].items():
                query = self.queries[int(number)]
                query.end(version)
                query.error = error
        elif kind == "resume":
            query = self.queries[record["number"]]
            query.error = None
            query.spans.append([version, None])
        elif kind == "stream":
            self.streams[record["name"]] = StreamEntry.from_dict(record["about"])
        elif kind == "table":
            self.tables[record["name"]] = TableEntry.from_dict(record["about"])
        else:
            self.functions.add(record["name"])


def _checked(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None if the line is not as it was written."""
    try:
        checksum, text = line[:8], line[9:].rstrip(b"\n")
        if not line.endswith(b"\n") or int(checksum, 16) != zlib.crc32(text):
            return None
        record: dict[str, Any] = json.loads(text)
        return record
    except ValueError:
        return None
