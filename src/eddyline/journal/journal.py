"""The journal: every decision as a record, with the numbers it was made on.

The report and the benchmarks are views of these records, and tests assert on them instead of on
timings. A journal is bounded: it keeps the newest records and counts those it dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from eddyline.journal.events import Event, event_from_dict

RECORDS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Record:
    """One decision: what happened, when, and in which process.

    Parameters
    ----------
    event
        What was decided, with its numbers.
    at_rows
        Number of rows the router had processed when it happened.
    process
        The worker process that decided; "driver" or empty for driver-side decisions.

    Examples
    --------
    >>> from eddyline.journal.events import BudgetExhausted
    >>> record = Record(BudgetExhausted(share=0.01), at_rows=4096)
    >>> record.kind, record.numbers
    ('BudgetExhausted', {'share': 0.01})
    >>> Record.from_dict(record.to_dict()) == record
    True

    """

    event: Event
    at_rows: int = 0
    process: str = ""

    @property
    def kind(self) -> str:
        """Name of the event's class."""
        return self.event.kind

    @property
    def numbers(self) -> dict[str, Any]:
        """Fields of the event, by name."""
        return self.event.fields()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {"at_rows": self.at_rows, "process": self.process, "event": self.event.to_dict()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Record:
        """Read what `to_dict` wrote."""
        return cls(event_from_dict(plain["event"]), plain["at_rows"], plain["process"])

    def __str__(self) -> str:
        process = f"  [{self.process}]" if self.process else ""
        return f"after {self.at_rows:,} rows: {self.event.sentence()}{process}"


class Journal:
    """The newest records, oldest first.

    Examples
    --------
    >>> from eddyline.journal.events import BudgetExhausted, OrderChanged
    >>> journal = Journal(records_max=2)
    >>> for rows in (1, 2, 3):
    ...     journal.write(Record(BudgetExhausted(share=0.01), rows))
    >>> [record.at_rows for record in journal], journal.forgotten
    ([2, 3], 1)
    >>> journal.of(OrderChanged)
    []

    """

    def __init__(self, records_max: int = RECORDS_MAX) -> None:
        self._records: deque[Record] = deque(maxlen=records_max)
        self.forgotten = 0

    def write(self, record: Record) -> None:
        """Append one record."""
        if len(self._records) == self._records.maxlen:
            self.forgotten += 1
        self._records.append(record)

    def extend(self, records: Iterable[Record]) -> None:
        """Append several records in their order."""
        for record in records:
            self.write(record)

    def clear(self) -> None:
        """Remove all records, as after handing them on."""
        self._records.clear()
        self.forgotten = 0

    def of(self, *events: type[Event]) -> list[Record]:
        """Return the records of events of the given classes."""
        return [record for record in self if isinstance(record.event, events)]

    def route_changes(self) -> list[Record]:
        """Return the records after which rows may take other routes than before."""
        return [record for record in self if record.event.changes_routes]

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records))

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Record:
        return self._records[index]

    def __repr__(self) -> str:
        lines = [str(record) for record in self]
        if self.forgotten:
            lines.insert(0, f"({self.forgotten:,} older records dropped)")
        return "\n".join(lines) or "(no decisions yet)"
