"""What a join task reports to the driver; its files exist from the moment a record lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eddyline.spark.state.index_note import IndexNote
from eddyline.spark.state.state_file import StateFile


class HeavyKey(NamedTuple):
    """The key that most rows of a large task have.

    Parameters
    ----------
    stem
        Name of the SteM.
    key
        Its value, as text.
    rows
        Rows that have it.

    """

    stem: str
    key: str
    rows: int


@dataclass(frozen=True)
class JoinNote:
    """What one join task, or all of a micro-batch, did.

    Parameters
    ----------
    added, removed
        Containers written, and the names of those that they replace.
    results
        Result files below the folder of results, with their sizes in bytes.
    counts
        Results, by query number.
    rows, late
        Rows received, and by stream number those that were too late.
    candidates, matches
        Stored rows compared with probes, and those that were equal.
    busy_s, opening_s
        Seconds that workers spent joining, and those of them opening state that others wrote.
    orders
        By role of new rows, the names of the probes in their order at the end.
    combinations
        Results, each counted once for all its queries.
    events
        Changes of classes of rows, as plain values.
    task_rows
        Rows received, by task.
    heavy
        By task, the key that most of its rows have; only of large tasks.
    originals
        Rows received, each counted once however many tasks and SteMs it went to.
    indexes
        By name of the SteM, what its indexes did.
    tuning_s
        Seconds that assessing searches and selecting configurations took.

    """

    added: tuple[StateFile, ...] = ()
    removed: tuple[str, ...] = ()
    results: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)
    rows: int = 0
    late: Mapping[int, int] = field(default_factory=dict)
    candidates: int = 0
    matches: int = 0
    busy_s: float = 0.0
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    opening_s: float = 0.0
    combinations: int = 0
    events: Sequence[Mapping[str, Any]] = ()
    task_rows: Mapping[int, int] = field(default_factory=dict)
    heavy: Mapping[int, HeavyKey] = field(default_factory=dict)
    originals: int = 0
    indexes: Mapping[str, IndexNote] = field(default_factory=dict)
    tuning_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "added": [file.to_dict() for file in self.added],
            "removed": list(self.removed),
            "results": dict(self.results),
            "counts": {str(number): count for number, count in self.counts.items()},
            "rows": self.rows,
            "late": {str(stream): count for stream, count in self.late.items()},
            "candidates": self.candidates,
            "matches": self.matches,
            "busy_s": self.busy_s,
            "orders": {role: list(order) for role, order in self.orders.items()},
            "opening_s": self.opening_s,
            "combinations": self.combinations,
            "events": list(self.events),
            "task_rows": {str(task): rows for task, rows in self.task_rows.items()},
            "heavy": {str(task): list(key) for task, key in self.heavy.items()},
            "originals": self.originals,
            "indexes": {name: note.to_dict() for name, note in self.indexes.items()},
            "tuning_s": self.tuning_s,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> JoinNote:
        """Read what `to_dict` wrote."""
        return cls(
            tuple(StateFile.from_dict(file) for file in plain["added"]),
            tuple(plain["removed"]),
            plain["results"],
            {int(number): count for number, count in plain["counts"].items()},
            plain["rows"],
            {int(stream): count for stream, count in plain["late"].items()},
            plain["candidates"],
            plain["matches"],
            plain["busy_s"],
            {role: tuple(order) for role, order in plain["orders"].items()},
            plain["opening_s"],
            plain["combinations"],
            plain["events"],
            {int(task): rows for task, rows in plain["task_rows"].items()},
            {int(task): HeavyKey(*key) for task, key in plain["heavy"].items()},
            plain["originals"],
            {name: IndexNote.from_dict(note) for name, note in plain["indexes"].items()},
            plain["tuning_s"],
        )

    @classmethod
    def merge(cls, notes: Iterable[JoinNote]) -> JoinNote:
        """Return the notes of several tasks as one; of the orders, the last task's.

        Examples
        --------
        >>> JoinNote.merge([JoinNote(counts={1: 2}), JoinNote(counts={1: 1})]).counts
        {1: 3}

        """
        listed = list(notes)
        return cls(
            tuple(file for note in listed for file in note.added),
            tuple(name for note in listed for name in note.removed),
            {name: size for note in listed for name, size in note.results.items()},
            _sum(note.counts for note in listed),
            sum(note.rows for note in listed),
            _sum(note.late for note in listed),
            sum(note.candidates for note in listed),
            sum(note.matches for note in listed),
            sum(note.busy_s for note in listed),
            {role: order for note in listed for role, order in note.orders.items()},
            sum(note.opening_s for note in listed),
            sum(note.combinations for note in listed),
            [event for note in listed for event in note.events],
            _sum(note.task_rows for note in listed),
            {task: key for note in listed for task, key in note.heavy.items()},
            sum(note.originals for note in listed),
            _merge_indexes(note.indexes for note in listed),
            sum(note.tuning_s for note in listed),
        )


def _merge_indexes(notes: Iterable[Mapping[str, IndexNote]]) -> dict[str, IndexNote]:
    by_name: dict[str, list[IndexNote]] = {}
    for given in notes:
        for name, note in given.items():
            by_name.setdefault(name, []).append(note)
    return {name: IndexNote.merge(own) for name, own in by_name.items()}


def _sum(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for given in counts:
        for key, count in given.items():
            total[key] = total.get(key, 0) + count
    return total
