"""The rows of a state in partitions by arrival, each with its own index; purged whole.

A search that began while partition n was filled concerns the partitions of its window, whatever
has arrived since. A partition is therefore removed only when the earliest search in flight, and so
every later one, has left it behind.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, section 4.2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern

#: Makes the index of a partition from its rows.
MakeIndex = Callable[[Columns], Index]


@dataclass
class TimePartition:
    """Rows that arrived one after the other.

    Parameters
    ----------
    number
        Of the partition, from 0.
    codes
        For each join column, the codes of the rows.
    index
        Over the rows; None until they are searched.

    """

    number: int
    codes: list[Codes]
    index: Index | None = None

    def __len__(self) -> int:
        return len(self.codes[0])


@dataclass
class TimePartitions:
    """A state of constant partitions over a window of rows.

    Parameters
    ----------
    columns
        Number of join columns.
    partition_rows, window_rows
        Rows of a partition, and rows of the window.
    make
        Makes the index of a partition.

    Examples
    --------
    >>> from eddyline.index.lazy_hash import LazyHash
    >>> state = TimePartitions(1, partition_rows=2, window_rows=4, make=LazyHash)
    >>> codes = np.array([7, 8, 7], dtype=np.uint64) << np.uint64(60)
    >>> state.append([codes])
    >>> search = state.begin_search()
    >>> [(p.number, rows.tolist()) for p, _, rows in state.search(search, (0,), [codes[:1]])]
    [(0, [0]), (1, [0])]
    >>> for _ in range(4):
    ...     state.append([codes])
    >>> state.purge(), [partition.number for partition in state.partitions]
    (0, [0, 1, 2, 3, 4, 5, 6, 7])
    >>> state.end_search(search)
    >>> state.purge(), [partition.number for partition in state.partitions]
    (5, [5, 6, 7])

    """

    columns: int
    partition_rows: int
    window_rows: int
    make: MakeIndex
    partitions: list[TimePartition] = field(default_factory=list)
    #: Rows received so far.
    received: int = 0
    _in_flight: Counter[int] = field(default_factory=Counter)

    @property
    def number(self) -> int:
        """Number of the partition that is being filled."""
        return self.received // self.partition_rows

    @property
    def partitions_in_window(self) -> int:
        """Number of partitions before the one that is being filled that a window reaches."""
        return math.ceil(self.window_rows / self.partition_rows)

    def append(self, codes: Sequence[Codes]) -> None:
        """Add rows, which fill the current partition and begin further ones."""
        begin, rows = 0, len(codes[0])
        while begin < rows:
            room = self.partition_rows - self.received % self.partition_rows
            part = [column[begin : begin + room] for column in codes]
            if self.partitions and self.partitions[-1].number == self.number:
                last = self.partitions[-1]
                last.codes = [np.concatenate(pair) for pair in zip(last.codes, part, strict=True)]
                last.index = None
            else:
                self.partitions.append(TimePartition(self.number, part))
            self.received += len(part[0])
            begin += len(part[0])

    def begin_search(self) -> int:
        """Take note of a search that begins now; return the number that it has."""
        self._in_flight[self.number] += 1
        return self.number

    def end_search(self, number: int) -> None:
        """Take note that a search has ended."""
        self._in_flight[number] -= 1
        if not self._in_flight[number]:
            del self._in_flight[number]

    @property
    def earliest_search(self) -> int:
        """Smallest number of the searches in flight (EPN); the current one if there are none."""
        return min(self._in_flight, default=self.number)

    def purge(self) -> int:
        """Remove the partitions that no search can concern any more; return how many."""
        oldest = self.earliest_search - self.partitions_in_window
        kept = [partition for partition in self.partitions if partition.number >= oldest]
        removed = len(self.partitions) - len(kept)
        self.partitions = kept
        return removed

    def index_of(self, partition: TimePartition) -> Index:
        """Return the index of a partition, built when first searched."""
        if partition.index is None:
            partition.index = self.make(Columns(partition.codes, [None] * self.columns))
        return partition.index

    def concerned(self, number: int) -> list[TimePartition]:
        """Return the partitions in the window of a search."""
        oldest = number - self.partitions_in_window
        return [p for p in self.partitions if oldest <= p.number <= number]

    def search(
        self, number: int, pattern: Pattern, codes: Sequence[Codes]
    ) -> Iterator[tuple[TimePartition, IntArray, IntArray]]:
        """Yield partitions of a search's window with probes and the rows that match them.

        Parameters
        ----------
        number
            Of the search.
        pattern, codes
            The searched columns, and their codes for all probes.

        """
        for partition in self.concerned(number):
            index = self.index_of(partition)
            probes, positions = index.ranges(pattern, codes).expand()
            given = [column[probes] for column in codes]
            rows, is_equal = index.confirm(pattern, positions, given)
            if is_equal.any():
                yield partition, probes[is_equal], rows[is_equal]
