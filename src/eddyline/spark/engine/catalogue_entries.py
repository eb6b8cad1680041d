"""What the catalogue knows of a stream, a static table and a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class StreamEntry:
    """A stream.

    Parameters
    ----------
    schema
        Its schema, as Spark writes it as JSON.
    time
        Its event-time column, if it has one.
    delay_us
        How late a row may be.

    Examples
    --------
    >>> entry = StreamEntry({"type": "struct", "fields": []}, "ts", 10_000_000)
    >>> StreamEntry.from_dict(entry.to_dict()) == entry
    True

    """

    schema: Mapping[str, Any]
    time: str | None = None
    delay_us: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {"schema": dict(self.schema), "time": self.time, "delay_us": self.delay_us}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StreamEntry:
        """Read what `to_dict` wrote."""
        return cls(plain["schema"], plain["time"], plain["delay_us"])


@dataclass(frozen=True)
class TableEntry:
    """A static table.

    Parameters
    ----------
    schema
        Its schema, as Spark writes it as JSON.
    rows, hash_sum
        Number of rows, and the sum of their hashes: equal for equal tables.
    version
        Which copy of the table is in use.
    files
        Files of that copy with their sizes in bytes; empty if they were not recorded.

    Examples
    --------
    >>> entry = TableEntry({"type": "struct", "fields": []}, 2, "-17", 1)
    >>> entry.to_dict()["fingerprint"], TableEntry.from_dict(entry.to_dict()) == entry
    ([2, '-17'], True)

    """

    schema: Mapping[str, Any]
    rows: int
    hash_sum: str
    version: int
    files: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        plain: dict[str, Any] = {
            "schema": dict(self.schema),
            "fingerprint": [self.rows, self.hash_sum],
            "version": self.version,
        }
        return {**plain, "files": dict(self.files)} if self.files else plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TableEntry:
        """Read what `to_dict` wrote."""
        rows, hash_sum = plain["fingerprint"]
        return cls(plain["schema"], rows, hash_sum, plain["version"], plain.get("files", {}))


@dataclass
class QueryEntry:
    """A query, and the versions of the catalogue at which it is to be run.

    Parameters
    ----------
    number
        Identifies the query permanently; names are reused.
    name, text, sink
        As the user gave them; the sink by its kind.
    spans
        First version at which it runs, and the first at which it no longer does; None if it runs
        still. One more for each time that it was resumed.
    error
        Why it is paused, if it is.
    is_dropped
        Whether it was dropped.

    """

    number: int
    name: str
    text: str
    sink: str
    spans: list[list[int | None]] = field(default_factory=list)
    error: str | None = None
    is_dropped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return asdict(self)

    def runs_at(self, version: int) -> bool:
        """Return True if it runs at a version of the catalogue."""
        return any(
            begin is not None and begin <= version and (end is None or version < end)
            for begin, end in self.spans
        )

    def resumed_at(self, version: int) -> int:
        """Return how often it had been resumed at a version of the catalogue."""
        return sum(begin is not None and begin <= version for begin, _ in self.spans[1:])

    def end(self, version: int) -> None:
        """Let it run no longer, from a version on."""
        if self.spans and self.spans[-1][1] is None:
            self.spans[-1][1] = version
