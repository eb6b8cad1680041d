"""Stored results as they are read: those of one micro-batch, or of several that were merged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eddyline.spark.engine.batch_record import BatchRecord, read_places
from eddyline.spark.engine.number_set import NumberSet
from eddyline.spark.state.join_plan import late_number


@dataclass(frozen=True)
class ResultPart:
    """Results that were computed with the same versions of the static tables.

    Parameters
    ----------
    batch
        The newest micro-batch that it holds results of.
    folder
        Below the folder of results.
    tables
        Versions of the static tables.
    numbers
        The queries that have results in it, and the numbers of late rows of streams; rows may carry
        other numbers, which do not count.
    files, join_files, alone, excluded
        As in `BatchRecord`.
    began_s, finished_s
        When the oldest and the newest of its micro-batches were finished.
    tier
        How often its rows were merged.

    Examples
    --------
    >>> part = ResultPart.of(7, BatchRecord(3, counts={1: 20}, files={"a.parquet": 900}))
    >>> part.folder, 1 in part.numbers, part.size
    ('batch=7', True, 900)
    >>> ResultPart.from_dict(part.to_dict()) == part
    True

    """

    batch: int
    folder: str
    tables: Mapping[str, int]
    numbers: NumberSet
    files: Mapping[str, int] | None = field(default_factory=dict)
    join_files: Mapping[str, int] = field(default_factory=dict)
    alone: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    excluded: Mapping[int, Collection[tuple[str, int]]] = field(default_factory=dict)
    began_s: float = 0.0
    finished_s: float = 0.0
    tier: int = 0

    @classmethod
    def of(cls, batch: int, record: BatchRecord) -> ResultPart:
        """Return the results of one micro-batch."""
        return cls(
            batch,
            f"batch={batch}",
            record.tables,
            NumberSet.of([*record.counts, *map(late_number, record.late)]),
            record.files,
            record.join_files,
            record.alone,
            record.excluded,
            record.finished_s,
            record.finished_s,
        )

    @property
    def has_files(self) -> bool:
        """Whether anything is stored, as far as that is known."""
        return self.files is None or bool(self.files or self.join_files or self.alone)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        groups = [self.files or {}, self.join_files, *self.alone.values()]
        return sum(sum(files.values()) for files in groups)

    def excluded_by_file(self, query: int) -> dict[str, list[int]]:
        """Return the indexes of rows that are not results of a query, by the name of the file."""
        by_file: dict[str, list[int]] = {}
        for file, index in self.excluded.get(query, ()):
            by_file.setdefault(file, []).append(index)
        return by_file

    def without(self, numbers: Collection[int]) -> ResultPart:
        """Return the part without the results of some queries; their rows are still in its files.

        Examples
        --------
        >>> part = ResultPart.of(7, BatchRecord(3, counts={1: 20, 2: 5}))
        >>> list(part.without({2}).numbers)
        [1]

        """
        kept = self.numbers.without(numbers)
        return self if kept == self.numbers else replace(self, numbers=kept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON, without those that are empty."""
        plain = {
            "batch": self.batch,
            "folder": self.folder,
            "tables": dict(self.tables),
            "numbers": [list(pair) for pair in self.numbers.ranges],
            "files": None if self.files is None else dict(self.files),
            "join_files": dict(self.join_files),
            "alone": {number: dict(files) for number, files in self.alone.items()},
            "excluded": {number: list(places) for number, places in self.excluded.items()},
            "began_s": self.began_s,
            "finished_s": self.finished_s,
            "tier": self.tier,
        }
        return {name: value for name, value in plain.items() if value != {}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ResultPart:
        """Read what `to_dict` wrote."""
        return cls(
            plain["batch"],
            plain["folder"],
            plain.get("tables", {}),
            NumberSet(plain["numbers"]),
            plain.get("files", {}),
            plain.get("join_files", {}),
            {int(number): files for number, files in plain.get("alone", {}).items()},
            read_places(plain.get("excluded", {})),
            plain["began_s"],
            plain["finished_s"],
            plain["tier"],
        )
