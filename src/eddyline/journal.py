"""The journal: every decision as a record, with the numbers it was made on.

The report and the benchmarks are views of these records, and tests assert on them instead of on
timings. A journal is bounded: the newest records are kept and the number forgotten is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

RECORDS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Record:
    """One decision.

    Parameters
    ----------
    kind
        What happened: `start`, `reorder`, `reverted`, `kept`, `drift`, `budget`, ...
    at_rows
        How many rows the router had taken in when it happened.
    numbers
        What was compared, before and after. Only plain values: it travels as JSON.
    where
        Which process made the decision; empty for decisions of the driver.

    Examples
    --------
    >>> Record("reorder", 4096, {"before": [0, 1], "after": [1, 0]})
    Record(kind='reorder', at_rows=4096, numbers={'before': [0, 1], 'after': [1, 0]}, where='')

    """

    kind: str
    at_rows: int
    numbers: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "kind": self.kind,
            "at_rows": self.at_rows,
            "numbers": dict(self.numbers),
            "where": self.where,
        }


class Journal:
    """The newest records, oldest first.

    Examples
    --------
    >>> journal = Journal(records_max=2)
    >>> for rows in (1, 2, 3):
    ...     journal.write(Record("drift", rows))
    >>> [r.at_rows for r in journal], journal.forgotten
    ([2, 3], 1)
    >>> journal.of_kind("reorder")
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
        """Forget all records, as after handing them on."""
        self._records.clear()
        self.forgotten = 0

    def of_kind(self, *kinds: str) -> list[Record]:
        """Return the records of the given kinds."""
        return [r for r in self if r.kind in kinds]

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records))

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Record:
        return self._records[index]

    def __repr__(self) -> str:
        lines = [
            f"{r.at_rows:>12,} rows  {r.kind:<10} "
            + ", ".join(f"{k}={v}" for k, v in r.numbers.items())
            + (f"  [{r.where}]" if r.where else "")
            for r in self
        ]
        if self.forgotten:
            lines.insert(0, f"({self.forgotten:,} older decisions forgotten)")
        return "\n".join(lines) or "(no decisions yet)"
