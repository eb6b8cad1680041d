"""What an engine knows, on disk: streams' schemas, tables, functions by name, and queries.

A log of changes, one line each, checked by a sum of its own. A line that was not written whole is
found by that sum: the state before it is used, and what stands behind is put aside, not thrown
away. A change costs one line, however many queries there are.
"""

from __future__ import annotations

import json
import os
import pathlib
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eddyline.errors import EngineError

FILE = "catalogue.jsonl"


@dataclass
class CataloguedQuery:
    """A query and the versions of the catalogue at which it is to be run.

    Parameters
    ----------
    number
        Its own for ever.
    name, text, sink
        As the user gave them; the sink by its kind.
    spans
        From which version on it runs, and before which it stops; None while it runs.
    error
        Why it was paused, if it is.

    """

    number: int
    name: str
    text: str
    sink: str
    spans: list[list[int | None]] = field(default_factory=list)
    error: str | None = None
    is_dropped: bool = False

    def runs_at(self, version: int) -> bool:
        """Say whether it runs at a version of the catalogue."""
        return any(
            begin is not None and begin <= version and (end is None or version < end)
            for begin, end in self.spans
        )


class Catalogue:
    """The catalogue of one engine; every change is on disk before it takes effect.

    Parameters
    ----------
    folder
        Where the file is.

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
        #: Held while something changes.
        self.lock = threading.RLock()
        self.version = 0
        self.streams: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.functions: set[str] = set()
        self.queries: dict[int, CataloguedQuery] = {}
        self._by_name: dict[str, CataloguedQuery] = {}
        #: What was wrong with the file when it was read, if anything.
        self.damage: str | None = None
        self._read()

    # --- what is asked of it -----------------------------------------------------------------

    def query(self, name: str) -> CataloguedQuery:
        """Return the query that has the name now."""
        found = self._by_name.get(name)
        if found is None:
            names = ", ".join(list(self._by_name)[:10]) or "none"
            raise EngineError(f"no query {name!r}; queries are {names}")
        return found

    def has(self, name: str) -> bool:
        """Say whether a query has the name now."""
        return name in self._by_name

    def names(self) -> list[str]:
        """Return the names of all queries, as they were added."""
        return list(self._by_name)

    def running_at(self, version: int) -> list[CataloguedQuery]:
        """Return the queries that run at a version, without those dropped since."""
        with self.lock:
            return [q for q in self.queries.values() if q.runs_at(version) and not q.is_dropped]

    # --- changes -----------------------------------------------------------------------------

    def add_queries(self, given: Sequence[tuple[str, str, str]]) -> list[CataloguedQuery]:
        """Add queries: name, text and kind of sink of each."""
        with self.lock:
            number = max(self.queries, default=0)
            self._write(
                "queries",
                {"queries": [[number + n, *query] for n, query in enumerate(given, start=1)]},
            )
            return [self._by_name[name] for name, _, _ in given]

    def drop_query(self, name: str) -> CataloguedQuery:
        """Drop a query; its name is free again."""
        with self.lock:
            query = self.query(name)
            self._write("drop", {"number": query.number})
            return query

    def pause(self, errors: Mapping[int, str]) -> None:
        """Let queries rest, each with its error, until they are resumed."""
        with self.lock:
            running = {
                str(number): error
                for number, error in errors.items()
                if self.queries[number].error is None and not self.queries[number].is_dropped
            }
            if running:
                self._write("pause", {"errors": running})

    def resume(self, name: str) -> None:
        """Let a paused query go on."""
        with self.lock:
            query = self.query(name)
            if query.error is None:
                raise EngineError(f"query {name!r} is not paused")
            self._write("resume", {"number": query.number})

    def set_stream(self, name: str, about: dict[str, Any]) -> None:
        """Note a stream: its schema, its time column and delay."""
        with self.lock:
            if self.streams.get(name) != about:
                self._write("stream", {"name": name, "about": about})

    def set_table(self, name: str, about: dict[str, Any]) -> None:
        """Note a static table: its schema and which copy of it is in use."""
        with self.lock:
            if self.tables.get(name) != about:
                self._write("table", {"name": name, "about": about})

    def set_function(self, name: str) -> None:
        """Note that there is a Python function of this name."""
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
                f"cannot write {self._path}: {error.strerror or error}; nothing was changed. Make "
                f"room or give access, then try again"
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
                query = CataloguedQuery(number, name, text, sink, [[version, None]])
                self.queries[number] = query
                self._by_name[name] = query
        elif kind == "drop":
            query = self.queries[record["number"]]
            self._end(query, version)
            query.is_dropped = True
            del self._by_name[query.name]
        elif kind == "pause":
            for number, error in record["errors"].items():
                self._end(self.queries[int(number)], version)
                self.queries[int(number)].error = error
        elif kind == "resume":
            query = self.queries[record["number"]]
            query.error = None
            query.spans.append([version, None])
        elif kind == "stream":
            self.streams[record["name"]] = record["about"]
        elif kind == "table":
            self.tables[record["name"]] = record["about"]
        else:
            self.functions.add(record["name"])

    @staticmethod
    def _end(query: CataloguedQuery, version: int) -> None:
        if query.spans and query.spans[-1][1] is None:
            query.spans[-1][1] = version


def _checked(line: bytes) -> dict[str, Any] | None:
    """Return a line's record, or None if it is not what was once written."""
    try:
        checksum, text = line[:8], line[9:].rstrip(b"\n")
        if not line.endswith(b"\n") or int(checksum, 16) != zlib.crc32(text):
            return None
        record: dict[str, Any] = json.loads(text)
        return record
    except ValueError:
        return None
