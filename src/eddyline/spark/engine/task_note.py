"""What a task reports to the driver: matches counted, failures, work done.

A note travels through the side channel as JSON, with a version: driver and workers may have
different releases of this package installed. Counts are packed: as JSON, those of 10,000 queries
took a worker longer than routing 4,096 rows for queries that are joined by AND.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from eddyline.errors import EngineError
from eddyline.fabric.shared.learnt import LearntOperator

VERSION = 3


class OperatorWork(NamedTuple):
    """What one operator of an eddy did.

    Parameters
    ----------
    visits
        Rows that visited it.
    busy_s
        Seconds that these visits took.
    tickets
        Share of the tickets that it holds; None under other policies.
    learnt
        What new workers begin with.

    """

    visits: int = 0
    busy_s: float = 0.0
    tickets: float | None = None
    learnt: LearntOperator = LearntOperator()

    @classmethod
    def from_list(cls, plain: Sequence[Any]) -> OperatorWork:
        """Read what JSON makes of it."""
        visits, busy_s, tickets, learnt = plain
        return cls(visits, busy_s, tickets, LearntOperator(*learnt))


@dataclass(frozen=True)
class EddyCounts:
    """What the eddies of all streams did.

    Parameters
    ----------
    rows
        Rows routed.
    visits
        Visits of one row to one operator.
    operators
        By number of the stream and name of the operator, in the order rows visit them.

    Examples
    --------
    >>> one = EddyCounts(10, 12, {0: {"a": OperatorWork(10, 0.5, 1.0)}})
    >>> other = EddyCounts(5, 5, {0: {"b": OperatorWork(3), "a": OperatorWork(2, 0.25, 0.5)}})
    >>> [(name, work.visits, work.busy_s) for name, work in (one + other).operators[0].items()]
    [('b', 3, 0.0), ('a', 12, 0.75)]

    """

    rows: int = 0
    visits: int = 0
    operators: Mapping[int, Mapping[str, OperatorWork]] = field(default_factory=dict)

    def __add__(self, other: EddyCounts) -> EddyCounts:
        """Add counts; of orders and tickets, the other's are the newer ones."""
        operators = dict(self.operators)
        for stream, newer in other.operators.items():
            older = self.operators.get(stream, {})
            added = {}
            for name, work in newer.items():
                before = older.get(name, OperatorWork())
                visits, busy_s = before.visits + work.visits, before.busy_s + work.busy_s
                added[name] = OperatorWork(visits, busy_s, work.tickets, work.learnt)
            operators[stream] = added | {n: w for n, w in older.items() if n not in newer}
        return EddyCounts(self.rows + other.rows, self.visits + other.visits, operators)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        operators = {
            str(stream): {name: list(work) for name, work in by_name.items()}
            for stream, by_name in self.operators.items()
        }
        return {"rows": self.rows, "visits": self.visits, "operators": operators}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EddyCounts:
        """Read what `to_dict` wrote."""
        operators = {
            int(stream): {name: OperatorWork.from_list(work) for name, work in by_name.items()}
            for stream, by_name in plain["operators"].items()
        }
        return cls(plain["rows"], plain["visits"], operators)


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
             eddy=EddyCounts(rows=15, visits=17, operators={}), busy_s=0.75)

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
            "counts": _packed(self.counts),
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
            _unpacked(plain["counts"]),
            {int(number): error for number, error in plain["failures"].items()},
            EddyCounts.from_dict(plain["eddy"]),
            plain["busy_s"],
        )


def _packed(counts: Mapping[int, int]) -> list[str]:
    """Return the numbers of queries and their counts, each as the text of an array.

    Examples
    --------
    >>> _packed({7: 2, 8: 4})
    ['BwAAAAgAAAA=', 'AgAAAAQAAAA=']
    >>> _unpacked(_packed({7: 2, 8: 1 << 40}))
    {7: 2, 8: 1099511627776}

    """
    numbers = np.fromiter(counts.keys(), np.dtype("<i4"), len(counts))
    values = np.fromiter(counts.values(), np.dtype("<u8"), len(counts))
    if values.max(initial=0) < 1 << 32:
        values = values.astype("<u4")
    return [base64.b64encode(array.tobytes()).decode() for array in (numbers, values)]


def _unpacked(packed: Sequence[str]) -> dict[int, int]:
    """Return the counts that `_packed` got; the length of the second array shows its type."""
    raw_numbers, raw_values = map(base64.b64decode, packed)
    kind = "<u4" if len(raw_values) == len(raw_numbers) else "<u8"
    numbers, values = np.frombuffer(raw_numbers, "<i4"), np.frombuffer(raw_values, kind)
    return dict(zip(numbers.tolist(), values.tolist(), strict=True))
