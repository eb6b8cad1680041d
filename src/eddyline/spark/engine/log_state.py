"""What all finished micro-batches of an engine add up to: the content of a snapshot of its log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.result_part import ResultPart

#: Version of the layout of snapshots; another one is refused.
LAYOUT = 1
#: Fingerprints of so many micro-batches are kept; Spark runs none again that is older.
OFFSETS_KEPT = 200


@dataclass
class LogState:
    """The finished micro-batches before `end`.

    Parameters
    ----------
    end
        Number of the first micro-batch that is not part of it.
    matched
        Results of each query, by query number.
    newest_us
        Newest event time of each stream that has one.
    counted
        Rows of each stream that were counted, for windows of rows.
    newest_version
        Newest version of the catalogue that a micro-batch was run with.
    largest_number
        Largest number that a query with results had.
    offsets
        Fingerprints of what Spark read, of the last micro-batches.
    containers
        Join state that is still needed, by name, oldest first.
    parts
        Stored results, by the newest micro-batch of each part.

    Examples
    --------
    >>> state = LogState()
    >>> state.add(0, BatchRecord(3, counts={1: 20}, offsets="x"))
    >>> state.add(1, BatchRecord(3, counts={1: 2}, offsets="y"))
    >>> state.end, state.matched, state.offsets
    (2, {1: 22}, {0: 'x', 1: 'y'})
    >>> LogState.from_dict(state.to_dict()) == state
    True

    """

    end: int = 0
    matched: dict[int, int] = field(default_factory=dict)
    newest_us: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    newest_version: int = 0
    largest_number: int = 0
    offsets: dict[int, str] = field(default_factory=dict)
    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: dict[int, ResultPart] = field(default_factory=dict)

    def add(self, batch: int, record: BatchRecord) -> None:
        """Take over a finished micro-batch."""
        self.end = max(self.end, batch + 1)
        for number, count in record.counts.items():
            self.matched[number] = self.matched.get(number, 0) + count
        self.largest_number = max(self.largest_number, *record.counts, 0)
        self.newest_us |= record.newest_us
        self.counted |= record.counted
        self.newest_version = max(self.newest_version, record.version)
        self.offsets[batch] = record.offsets
        while len(self.offsets) > OFFSETS_KEPT:
            del self.offsets[next(iter(self.offsets))]
        for container in record.state_added:
            self.containers[container["name"]] = container
        for name in record.state_removed:
            self.containers.pop(name, None)
        part = ResultPart.of(batch, record)
        if part.numbers and part.has_files:
            self.parts[batch] = part

    def give_up(self, batches: Collection[int]) -> None:
        """Count micro-batches as finished without results; it is not known what they read."""
        self.end = max(self.end, *[batch + 1 for batch in batches], 0)
        known = {**dict.fromkeys(batches, ""), **self.offsets}
        self.offsets = dict(sorted(known.items())[-OFFSETS_KEPT:])

    def without_queries(self, numbers: Collection[int]) -> LogState:
        """Return the state without what belongs to some queries, which were dropped."""
        parts = {batch: part.without(numbers) for batch, part in self.parts.items()}
        return replace(
            self,
            matched={n: count for n, count in self.matched.items() if n not in numbers},
            parts={batch: part for batch, part in parts.items() if part.numbers},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "layout": LAYOUT,
            "end": self.end,
            "matched": self.matched,
            "newest_us": self.newest_us,
            "counted": self.counted,
            "newest_version": self.newest_version,
            "largest_number": self.largest_number,
            "offsets": self.offsets,
            "containers": list(self.containers.values()),
            "parts": [part.to_dict() for part in self.parts.values()],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LogState:
        """Read what `to_dict` wrote; another layout is a ValueError."""
        if plain["layout"] != LAYOUT:
            raise ValueError(f"layout {plain['layout']} instead of {LAYOUT}")
        parts = [ResultPart.from_dict(part) for part in plain["parts"]]
        return cls(
            plain["end"],
            {int(number): count for number, count in plain["matched"].items()},
            dict(plain["newest_us"]),
            dict(plain.get("counted", {})),
            plain["newest_version"],
            plain["largest_number"],
            {int(batch): offsets for batch, offsets in plain["offsets"].items()},
            {container["name"]: container for container in plain["containers"]},
            {part.batch: part for part in parts},
        )
