"""What the catalogue knows of a stream, a static table and a query."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


#: A span of versions: the first at which a query runs, and the first at which it no longer does.
Span = tuple[int, int | None]
_VERSION_BITS = 32


class _Changes:
    """What happened to a query since it was added; most queries have none."""

    __slots__ = ("error", "is_dropped", "sink", "spans")

    def __init__(self, sink: str, spans: list[Span], error: str | None, is_dropped: bool) -> None:
        self.sink, self.spans, self.error, self.is_dropped = sink, spans, error, is_dropped


class QueryEntry:
    """A query, and the versions of the catalogue at which it is to be run.

    An engine may have a hundred thousand of them, so an entry holds a string or a number only where
    it differs from those of other entries.

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

    Examples
    --------
    >>> entry = QueryEntry(7, "hot", "SELECT ...", "count", [(3, None)])
    >>> entry.number, entry.spans, entry.runs_at(2), entry.runs_at(3)
    (7, [(3, None)], False, True)
    >>> entry.end(5)
    >>> entry.spans, entry.runs_at(5)
    ([(3, 5)], False)
    >>> QueryEntry(-7, "role of a join", "", "part").number
    -7

    """

    __slots__ = ("_place", "_state", "name", "text")

    def __init__(
        self,
        number: int,
        name: str,
        text: str,
        sink: str,
        spans: Iterable[Sequence[Any]] = (),
        error: str | None = None,
        is_dropped: bool = False,
    ) -> None:
        self.name, self.text = name, text
        known: list[Span] = [(begin, end) for begin, end in spans]
        begin = known[0][0] if known else 0
        #: Its number and the first version at which it runs, as one number.
        self._place = number << _VERSION_BITS | begin
        is_as_added = known in ([], [(begin, None)]) and error is None and not is_dropped
        #: Only its sink, as long as nothing happened to it.
        self._state: str | _Changes = (
            sys.intern(sink) if is_as_added else _Changes(sink, known, error, is_dropped)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryEntry) and self.to_dict() == other.to_dict()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"QueryEntry({', '.join(f'{k}={v!r}' for k, v in self.to_dict().items())})"

    @property
    def number(self) -> int:
        """Its number; negative for a role of a join."""
        return self._place >> _VERSION_BITS

    @property
    def _begin(self) -> int:
        return self._place & ((1 << _VERSION_BITS) - 1)

    @property
    def sink(self) -> str:
        """The kind of its sink."""
        return self._state if isinstance(self._state, str) else self._state.sink

    @property
    def spans(self) -> list[Span]:
        """From which version to which it is to be run."""
        if not isinstance(self._state, str):
            return self._state.spans
        return [(self._begin, None)] if self._begin else []

    @property
    def error(self) -> str | None:
        """Why it is paused, if it is."""
        return None if isinstance(self._state, str) else self._state.error

    @error.setter
    def error(self, error: str | None) -> None:
        self._changed().error = error

    @property
    def is_dropped(self) -> bool:
        """Whether it was dropped."""
        return not isinstance(self._state, str) and self._state.is_dropped

    @is_dropped.setter
    def is_dropped(self, is_dropped: bool) -> None:
        self._changed().is_dropped = is_dropped

    def _changed(self) -> _Changes:
        if isinstance(self._state, str):
            self._state = _Changes(self._state, self.spans, None, is_dropped=False)
        return self._state

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "number": self.number,
            "name": self.name,
            "text": self.text,
            "sink": self.sink,
            "spans": [list(span) for span in self.spans],
            "error": self.error,
            "is_dropped": self.is_dropped,
        }

    def runs_at(self, version: int) -> bool:
        """Return True if it runs at a version of the catalogue."""
        if isinstance(self._state, str):
            return 0 < self._begin <= version
        return any(
            begin <= version and (end is None or version < end) for begin, end in self._state.spans
        )

    def resumed_at(self, version: int) -> int:
        """Return how often it had been resumed at a version of the catalogue."""
        return sum(begin <= version for begin, _ in self.spans[1:])

    def begin(self, version: int) -> None:
        """Let it run again, from a version on."""
        self._changed().spans.append((version, None))

    def end(self, version: int) -> None:
        """Let it run no longer, from a version on."""
        spans = self.spans
        if spans and spans[-1][1] is None:
            self._changed().spans[-1] = (spans[-1][0], version)
