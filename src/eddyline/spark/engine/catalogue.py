"""The catalogue of an engine, on disk: streams, static tables, function names, queries, settings.

The file is a log of changes, one line with a checksum each, so a change costs one line for any
number of queries (`change_log`).
"""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eddyline.errors import ERROR_LENGTH_MAX, EngineError
from eddyline.spark.engine.catalogue_entries import QueryEntry, StreamEntry, TableEntry
from eddyline.spark.engine.change_log import ChangeLog
from eddyline.spark.engine.numbered import Numbered

FILE = "catalogue.jsonl"
#: The file is rewritten if it has so many lines, and two more for each query.
LINES_MIN = 200


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
        self._log = ChangeLog(folder / FILE)
        #: Held while the catalogue changes.
        self.lock = threading.RLock()
        self.version = 0
        self.streams: dict[str, StreamEntry] = {}
        self.tables: dict[str, TableEntry] = {}
        #: Files of every version of every table, as they were stored.
        self.table_files: dict[tuple[str, int], Mapping[str, int]] = {}
        self.functions: dict[str, bool] = {}
        #: Counts the changes of streams, tables and functions.
        self.registrations = 0
        #: Session settings that the queries were written under; None if they were not recorded.
        self.settings: Mapping[str, str | None] | None = None
        self.queries: Numbered[QueryEntry] = Numbered()
        self._by_name: dict[str, QueryEntry] = {}
        self._largest_number = 0
        self._read()

    @property
    def largest_number(self) -> int:
        """The largest number that was given to a query, or reserved."""
        return self._largest_number

    @property
    def damage(self) -> str | None:
        """What was wrong with the file when it was read; None if nothing was."""
        return self._log.damage

    # --- reading -----------------------------------------------------------------------------

    def query(self, name: str) -> QueryEntry:
        """Return the query that has the name now."""
        with self.lock:
            found = self._by_name.get(name)
            if found is None:
                names = ", ".join(list(self._by_name)[:10]) or "none"
                raise EngineError(f"no query {name!r}; queries are {names}")
            return found

    def has(self, name: str) -> bool:
        """Return True if a query has the name now."""
        return name in self._by_name

    def named(self) -> list[QueryEntry]:
        """Return the queries that were not dropped, in the order they were added."""
        with self.lock:
            return list(self._by_name.values())

    def names(self) -> list[str]:
        """Return the names of all queries in the order they were added."""
        return [entry.name for entry in self.named()]

    def running_at(self, version: int) -> list[QueryEntry]:
        """Return the queries that run at a version, without those that were dropped later."""
        with self.lock:
            return [q for q in self.queries.listed() if q.runs_at(version) and not q.is_dropped]

    def dropped(self) -> set[int]:
        """Return the numbers of dropped queries that the catalogue still has."""
        with self.lock:
            return {query.number for query in self.queries.listed() if query.is_dropped}

    # --- changes -----------------------------------------------------------------------------

    def add_queries(self, given: Sequence[tuple[str, str, str]]) -> list[QueryEntry]:
        """Add queries: name, text and kind of sink of each."""
        with self.lock:
            taken = [name for name, _, _ in given if name in self._by_name]
            if taken:
                raise EngineError(f"query {taken[0]!r} exists already; drop it, or choose a name")
            first = self._largest_number + 1
            numbered = [[number, *query] for number, query in enumerate(given, start=first)]
            self._write("queries", {"queries": numbered})
            return [self._by_name[name] for name, _, _ in given]

    def check_version(self, newest_version: int) -> None:
        """Note as damage that micro-batches were run with a newer version than the file has."""
        if self.version < newest_version and self._log.damage is None:
            self._log.damage = (
                f"{FILE} ends at version {self.version}, but micro-batches were run with version "
                f"{newest_version}: queries were lost. Restore it from a backup, or add them again"
            )

    def reserve_numbers(self, numbers: Iterable[int]) -> None:
        """Never give these numbers to a new query: stored rows carry them."""
        with self.lock:
            self._largest_number = max(self._largest_number, *numbers, 0)

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
                str(number): error[:ERROR_LENGTH_MAX]
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

    def remove(self, what: str, name: str) -> None:
        """Remove a `stream`, `table` or `function`; its name is free again."""
        with self.lock:
            names = self._registered(what)
            if name not in names:
                raise EngineError(f"no {what} {name!r}; there are {', '.join(names) or 'none'}")
            self._write("remove", {"what": what, "name": name})

    def set_settings(self, settings: Mapping[str, str | None]) -> None:
        """Keep the settings that the queries are written under."""
        with self.lock:
            if self.settings != settings:
                self._write("settings", {"settings": dict(settings)})

    def compact(self, dropped: Collection[int], is_due: bool = False) -> None:
        """Forget dropped queries and rewrite the file, if it is due or makes it much shorter.

        Numbers of forgotten queries are never given out again. No micro-batch may be running: one
        that began before a query was dropped still asks for it.
        """
        with self.lock:
            if not is_due and self._log.lines < LINES_MIN + 2 * len(self._by_name):
                return
            entries = self.queries.listed()
            kept = Numbered((q.number, q) for q in entries if q.number not in dropped)
            self._log.replace_all(
                {
                    "version": self.version,
                    "kind": "state",
                    "streams": {name: entry.to_dict() for name, entry in self.streams.items()},
                    "tables": {name: entry.to_dict() for name, entry in self.tables.items()},
                    "table_files": [[*key, dict(f)] for key, f in self.table_files.items()],
                    "functions": list(self.functions),
                    "settings": None if self.settings is None else dict(self.settings),
                    "queries": [query.to_dict() for query in kept.listed()],
                    "largest_number": self._largest_number,
                }
            )
            self.queries = kept

    # --- the file ----------------------------------------------------------------------------

    def _write(self, kind: str, what: dict[str, Any]) -> None:
        change = {"version": self.version + 1, "kind": kind, **what}
        self._log.append(change)
        self._apply(change)

    def _read(self) -> None:
        for line, change in enumerate(self._log.read(), start=1):
            try:
                is_state = line == 1 and change["kind"] == "state"
                is_next = change["version"] == self.version + 1 or is_state
                if is_next:
                    self._apply(change)
            except (KeyError, TypeError, ValueError):
                is_next = False
            if not is_next:
                self._log.put_aside_line(line)
                return

    def _apply(self, record: Mapping[str, Any]) -> None:
        self.version = version = int(record["version"])
        kind = record["kind"]
        if kind == "queries":
            for number, name, text, sink in record["queries"]:
                query = QueryEntry(number, name, text, sink, [(version, None)])
                self.queries[number] = query
                self._by_name[name] = query
                self._largest_number = max(self._largest_number, number)
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
            query.begin(version)
        elif kind == "settings":
            self.settings = dict(record["settings"])
        elif kind == "state":
            self._apply_state(record)
        else:
            self._apply_registration(kind, record)
            self.registrations += 1

    def _apply_state(self, record: Mapping[str, Any]) -> None:
        """Take over what `compact` wrote."""
        self.streams = {n: StreamEntry.from_dict(plain) for n, plain in record["streams"].items()}
        self.tables = {n: TableEntry.from_dict(plain) for n, plain in record["tables"].items()}
        self.table_files = {(name, number): f for name, number, f in record["table_files"]}
        self.functions = dict.fromkeys(record["functions"], True)
        self.settings = record["settings"]
        entries = [QueryEntry(**plain) for plain in record["queries"]]
        self.queries = Numbered((query.number, query) for query in entries)
        self._by_name = {query.name: query for query in entries if not query.is_dropped}
        self._largest_number = record["largest_number"]

    def _apply_registration(self, kind: str, record: Mapping[str, Any]) -> None:
        name = record["name"]
        if kind == "stream":
            self.streams[name] = StreamEntry.from_dict(record["about"])
        elif kind == "table":
            entry = TableEntry.from_dict(record["about"])
            self.tables[name] = entry
            self.table_files[name, entry.version] = entry.files
        elif kind == "remove":
            del self._registered(record["what"])[name]
        else:
            self.functions[name] = True

    def _registered(self, what: str) -> dict[str, Any]:
        registered: dict[str, dict[str, Any]] = {
            "stream": self.streams,
            "table": self.tables,
            "function": self.functions,
        }
        return registered[what]
