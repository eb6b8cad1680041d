"""A run: immutable rows of one stream, which arrived together or were merged by compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.arrays import Bitmaps, BoolArray, IntArray
from eddyline.index.index import Index, Pattern
from eddyline.index.sorted_hash import SortedHash
from eddyline.joins.keys import KeyColumn


@dataclass
class Run:
    """Rows of one stream, with what probes need of them.

    Parameters
    ----------
    keys
        The join columns.
    times_us
        Event time of each row in microseconds.
    lineage
        For each occurrence of the stream in a query (0, and 1, 2... for self-joins), a bitmap of
        the queries that want the row there.
    payload
        The columns that results, and conditions over several streams, are made of.

    """

    keys: Sequence[KeyColumn]
    times_us: IntArray
    lineage: Mapping[int, Bitmaps]
    payload: pa.RecordBatch
    _indexes: dict[Pattern, Index] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times_us)

    def index(self, pattern: Pattern) -> Index:
        """Return the index that serves an access pattern, built when first asked for."""
        if pattern not in self._indexes:
            columns = [self.keys[position] for position in pattern]
            self._indexes[pattern] = SortedHash([c.codes for c in columns], _all_valid(columns))
        return self._indexes[pattern]

    def column(self, field: pa.Field) -> pa.Array:
        """Return a stored column; NULL if the rows were stored without it."""
        if field.name in self.payload.schema.names:
            return self.payload[field.name]
        return pa.nulls(len(self), field.type)

    @property
    def index_bytes(self) -> int:
        """Memory that the indexes built so far take."""
        return sum(index.bytes for index in self._indexes.values())


def _all_valid(columns: Sequence[KeyColumn]) -> BoolArray | None:
    is_valid: BoolArray | None = None
    for column in columns:
        if column.is_valid is not None:
            is_valid = column.is_valid if is_valid is None else is_valid & column.is_valid
    return is_valid
