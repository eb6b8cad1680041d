"""A run: immutable rows of one stream, which arrived together or were merged by compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, FloatArray, IntArray
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.ordered_bits import OrderedBits
from eddyline.index.partition import Partition
from eddyline.index.sorted_values import SortedValues
from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.keys import KeyColumn
from eddyline.joins.plan import TIME_COLUMN


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
    compared
        Columns that comparisons across streams use; NaN stands for NULL.
    sequence
        Number of each row among all rows of its stream; None if nothing counted them.
    configuration
        Of the bit-address index over the join columns; None for no bits.

    """

    keys: Sequence[KeyColumn]
    times_us: IntArray
    lineage: Mapping[int, Bitmaps]
    payload: pa.RecordBatch
    sequence: IntArray | None = None
    compared: Sequence[FloatArray] = ()
    configuration: Configuration | None = None
    #: At most one; shared by runs that differ in their lineage alone.
    _partitions: list[Partition] = field(default_factory=list)
    _sorted: dict[int, SortedValues] = field(default_factory=dict)
    _ordered: dict[tuple[int, int], OrderedBits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times_us)

    @property
    def columns(self) -> Columns:
        """The join columns as indexes see them."""
        return Columns([key.codes for key in self.keys], [key.is_valid for key in self.keys])

    def partition(self, costs: UnitCosts = DEFAULT_COSTS, only: str | None = None) -> Partition:
        """Return the rows with their indexes; made when first asked for.

        Parameters
        ----------
        costs, only
            As for `Partition`.

        """
        if not self._partitions:
            columns = self.columns
            configuration = self.configuration or Configuration((0,) * len(self.keys))
            self._partitions.append(Partition(columns, configuration, costs, only))
        return self._partitions[0]

    def values(self, column: int) -> FloatArray:
        """Return a compared column, or the event times."""
        if column == TIME_COLUMN:
            return self.times_us.astype(np.float64)
        return self.compared[column]

    def sorted_values(self, column: int) -> SortedValues:
        """Return the ordered index over a compared column, built when first asked for."""
        if column not in self._sorted:
            self._sorted[column] = SortedValues(self.values(column))
        return self._sorted[column]

    def ordered_bits(self, first: int, second: int) -> OrderedBits:
        """Return the ordered index over two compared columns, built when first asked for."""
        if (first, second) not in self._ordered:
            index = OrderedBits(self.values(first), self.values(second))
            self._ordered[first, second] = index
        return self._ordered[first, second]

    def sequence_numbers(self) -> IntArray:
        """Return the sequence number of each row; `UNCOUNTED` if nothing counted them."""
        return np.full(len(self), UNCOUNTED) if self.sequence is None else self.sequence

    def column(self, field: pa.Field) -> pa.Array:
        """Return a stored column; NULL if the rows were stored without it.

        Timestamps carry the time zone of the session that they came from, in their type only.
        """
        if field.name not in self.payload.schema.names:
            return pa.nulls(len(self), field.type)
        stored = self.payload[field.name]
        return stored if stored.type == field.type else stored.cast(field.type)

    @property
    def index_bytes(self) -> int:
        """Memory that the indexes built so far take."""
        ordered = sum(index.bytes for index in self._sorted.values())
        ordered += sum(index.bytes for index in self._ordered.values())
        return ordered + sum(partition.bytes for partition in self._partitions)
