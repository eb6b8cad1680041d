"""What is kept of a finished micro-batch until a snapshot of the log holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class BatchRecord:
    """A finished micro-batch.

    Parameters
    ----------
    version, tables
        Versions of the catalogue, and of each static table, that it was run with.
    counts
        Results, by query number.
    rows
        Rows read.
    newest_us
        For streams that have an event time: the newest seen so far.
    offsets
        Which rows Spark read, as a fingerprint of its checkpoint; empty if it is not known.
    files
        The result files, by path below the folder of results, with their sizes in bytes; None in
        records of earlier versions, which do not list them.
    alone
        For queries that Spark filtered the rows for by itself, by number: the files of their own.
    join_files
        The files with results of joins, below the folder of results, with their sizes in bytes.
    state_added, state_removed
        Containers of join state that it wrote, and names of those that it replaced or that have
        expired.
    excluded
        Rows on which the SELECT of a query failed, by query number: name of the file and index
        in it of each. They are not in its results.
    finished_s
        When it was finished, in seconds since 1970.
    late
        Rows of streams that were too late to be joined, by number of the stream.
    idle
        Streams that joins did not wait for.
    counted
        Rows of each stream so far, by name; empty if no query had a window of rows.

    """

    version: int
    tables: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    newest_us: dict[str, int] = field(default_factory=dict)
    offsets: str = ""
    files: dict[str, int] | None = field(default_factory=dict)
    join_files: dict[str, int] = field(default_factory=dict)
    state_added: list[dict[str, Any]] = field(default_factory=list)
    state_removed: list[str] = field(default_factory=list)
    alone: dict[int, dict[str, int]] = field(default_factory=dict)
    excluded: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    finished_s: float = 0.0
    late: dict[int, int] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> BatchRecord:
        """Read what `to_dict` wrote."""
        by_query: dict[str, Any] = {
            name: {int(number): value for number, value in plain.get(name, {}).items()}
            for name in ("counts", "alone", "late")
        }
        by_query["excluded"] = read_places(plain.get("excluded", {}))
        files = plain.get("files")
        return cls(**{**plain, "counts": plain["counts"], "files": files, **by_query})


def read_places(plain: Mapping[str, Any]) -> dict[int, list[tuple[str, int]]]:
    """Return places of stored rows by query number, as they were before they became JSON.

    Examples
    --------
    >>> read_places({"7": [["a.parquet", 3]]})
    {7: [('a.parquet', 3)]}

    """
    return {
        int(number): [(str(file), int(index)) for file, index in places]
        for number, places in plain.items()
    }
