"""What a task reports to the driver: matches counted, failures, work done.

A note travels through the side channel as JSON, with a version: driver and workers may have
different releases of this package installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eddyline.errors import EngineError

VERSION = 1


@dataclass(frozen=True)
class EddyCounts:
    """What the eddy of one stream did.

    Parameters
    ----------
    rows
        Rows routed.
    visits
        Visits of one row to one operator.
    tickets
        Share of the tickets that each operator holds, by name; empty under other policies.

    Examples
    --------
    >>> EddyCounts(10, 12, {"a": 1.0}) + EddyCounts(5, 5, {"a": 0.5, "b": 0.5})
    EddyCounts(rows=15, visits=17, tickets={'a': 0.5, 'b': 0.5})

    """

    rows: int = 0
    visits: int = 0
    tickets: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: EddyCounts) -> EddyCounts:
        """Add counts; of the tickets, the other's are the newer ones."""
        tickets = {**self.tickets, **other.tickets}
        return EddyCounts(self.rows + other.rows, self.visits + other.visits, tickets)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {"rows": self.rows, "visits": self.visits, "tickets": dict(self.tickets)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EddyCounts:
        """Read what `to_dict` wrote."""
        return cls(plain["rows"], plain["visits"], plain["tickets"])


@dataclass(frozen=True)
class TaskNote:
    """What one task, or all tasks of a micro-batch, did.

    Parameters
    ----------
    counts
        Rows matched, by query number; queries without a match are left out.
    failures
        Errors of queries that could not judge a row, by query number.
    eddy
        What the eddies of all streams did.
    busy_s
        Seconds that workers spent, waiting for rows included.

    Examples
    --------
    >>> one = TaskNote({7: 2}, {}, EddyCounts(10, 12), 0.5)
    >>> other = TaskNote({7: 1, 8: 4}, {9: "broken"}, EddyCounts(5, 5), 0.25)
    >>> TaskNote.merge([one, other])
    TaskNote(counts={7: 3, 8: 4}, failures={9: 'broken'},
             eddy=EddyCounts(rows=15, visits=17, tickets={}), busy_s=0.75)

    """

    counts: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    eddy: EddyCounts = field(default_factory=EddyCounts)
    busy_s: float = 0.0

    @classmethod
    def merge(cls, notes: Iterable[TaskNote]) -> TaskNote:
        """Return the notes of several tasks as one."""
        counts: dict[int, int] = {}
        failures: dict[int, str] = {}
        eddy, busy_s = EddyCounts(), 0.0
        for note in notes:
            for number, count in note.counts.items():
                counts[number] = counts.get(number, 0) + count
            failures |= note.failures
            eddy += note.eddy
            busy_s += note.busy_s
        return cls(counts, failures, eddy, busy_s)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "version": VERSION,
            "counts": {str(number): count for number, count in self.counts.items()},
            "failures": {str(number): error for number, error in self.failures.items()},
            "eddy": self.eddy.to_dict(),
            "busy_s": self.busy_s,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TaskNote:
        """Read what `to_dict` wrote; refuse another version."""
        if plain.get("version") != VERSION:
            raise EngineError(
                f"a worker sent a note of version {plain.get('version')}, the driver reads version "
                f"{VERSION}; install the same release of eddyline everywhere"
            )
        return cls(
            {int(number): count for number, count in plain["counts"].items()},
            {int(number): error for number, error in plain["failures"].items()},
            EddyCounts.from_dict(plain["eddy"]),
            plain["busy_s"],
        )
