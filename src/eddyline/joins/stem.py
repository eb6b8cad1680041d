"""SteM: the state module of one stream. Rows are built in, and probed by other streams.

The rows lie in runs. Rows of the current micro-batch are the last run, so that a probe can leave
them out: new rows of stream i probe old and new rows of every stream before i, and only old rows
of every stream behind it. That makes each result exactly once, without a check of any row
(the delta rule, `docs/decisions/0019`).

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.arrays import Bitmaps, FloatArray, IntArray
from eddyline.index.bit_address import search_together
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.ordered_bits import Limits
from eddyline.index.partition import NO_DEMAND, Partition
from eddyline.index.tuner import Tuner
from eddyline.joins.arrivals import ArrivalClock
from eddyline.joins.keys import KeyColumn, concat_keys
from eddyline.joins.run import Run
from eddyline.joins.searches import (
    CANDIDATES_MAX,
    cut,
    in_parts,
    in_slices,
    valid_probes,
    within,
)


@dataclass
class ProbeCounts:
    """What probes of one SteM came to.

    Parameters
    ----------
    probes, candidates, matches
        Numbers of probes, of stored rows compared with them, and of those that were equal.
    searches
        Number of probes by access pattern, and the index that a partition chose for them.
    build_s
        Seconds that building indexes took.

    """

    probes: int = 0
    candidates: int = 0
    matches: int = 0
    searches: Counter[tuple[Pattern, str]] = field(default_factory=Counter)
    build_s: float = 0.0


@dataclass
class SteM:
    """The rows of one stream.

    Parameters
    ----------
    old
        Runs of earlier micro-batches.
    new
        The rows of this micro-batch; None if there are none.
    clock
        Counts the rows of the stream; None if no query has a window of rows.
    name, tuner
        Tunes the indexes of the rows, which it knows by the name; None for no tuning.

    Examples
    --------
    >>> from eddyline.joins.keys import key_column
    >>> rows = pa.record_batch({"k": [1, 2, 1]})
    >>> run = Run([key_column(rows["k"])], np.array([5, 6, 7]), {}, rows)
    >>> stem = SteM([run])
    >>> for probes, ids in stem.probe((0,), [key_column(pa.array([1, 9]))], with_new=True):
    ...     print(probes.tolist(), ids.tolist())
    [0, 0] [0, 2]

    """

    old: list[Run]
    new: Run | None = None
    clock: ArrivalClock | None = None
    name: str = ""
    tuner: Tuner | None = None
    counts: ProbeCounts = field(default_factory=ProbeCounts)

    def runs(self, with_new: bool) -> list[Run]:
        """Return the runs, with or without the rows of this micro-batch."""
        return [*self.old, self.new] if with_new and self.new is not None else self.old

    def __len__(self) -> int:
        return sum(map(len, self.runs(with_new=True)))

    @property
    def first_new_id(self) -> int:
        """Id of the first row of this micro-batch; old rows have smaller ones."""
        return sum(map(len, self.old))

    def partitions(self) -> list[Partition]:
        """Return the stored rows that have join columns, with their indexes, oldest first."""
        return [self._partition(run) for run in self.old if run.keys and len(run)]

    def _partition(self, run: Run) -> Partition:
        if self.tuner is None:
            return run.partition()
        return run.partition(self.tuner.costs, self.tuner.options.only)

    def keep_new(self) -> None:
        """Let the rows of this micro-batch become old ones."""
        if self.new is not None:
            self.old.append(self.new)
            self.new = None

    def probe(
        self, pattern: Pattern, keys: Sequence[KeyColumn], with_new: bool
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield probe positions and row ids of matches, in slices of bounded size.

        Parameters
        ----------
        pattern
            The searched columns; at least one.
        keys
            Their values, one for each probe.
        with_new
            Whether rows of this micro-batch count.

        """
        runs = [run for run in self.runs(with_new) if len(run)]
        bases = np.cumsum([0, *map(len, runs)])
        if not runs or not len(keys[0]):
            return
        valid = valid_probes(keys)
        if valid is not None:
            keys = [key.take(valid) for key in keys]
        indexes = self._choose(runs, pattern, len(keys[0]))
        self.counts.probes += len(keys[0])
        for first, part in in_parts(indexes, pattern, keys):
            codes = [key.codes for key in part]
            ranges = search_together(indexes, pattern, codes)
            for begin, end in in_slices(ranges, len(part[0])):
                found = [
                    self._matches(run, index, pattern, part, cut(given, begin, end), int(base))
                    for run, index, given, base in zip(runs, indexes, ranges, bases, strict=False)
                ]
                probes = np.concatenate([one for one, _ in found])
                ids = np.concatenate([other for _, other in found])
                self.counts.matches += len(ids)
                if len(ids):
                    probes = probes + first if first else probes
                    yield (probes if valid is None else valid[probes]), ids

    def _choose(self, runs: Sequence[Run], pattern: Pattern, probes: int) -> list[Index]:
        """Return the index of each run that serves a batch of probes."""
        demand: Mapping[Pattern, float] = NO_DEMAND
        partitions = [self._partition(run) for run in runs]
        if self.tuner is not None:
            self.tuner.record(self.name, pattern, probes)
            self.tuner.prepare(self.name, pattern, probes, partitions)
            demand = self.tuner.expected(self.name)
        indexes = []
        for partition in partitions:
            built_s = partition.build_s
            indexes.append(partition.choose(pattern, probes, demand))
            self.counts.build_s += partition.build_s - built_s
            chosen = indexes[-1].name
            self.counts.searches[pattern, chosen] += probes
            if self.tuner is not None:
                self.tuner.note_choice(self.name, pattern, chosen, len(partition), probes)
        return indexes

    def count(self, pattern: Pattern, keys: Sequence[KeyColumn], with_new: bool) -> IntArray:
        """Return the number of candidates of each probe; more than its matches, if anything."""
        counts = np.zeros(len(keys[0]), dtype=np.int64)
        runs = [run for run in self.runs(with_new) if len(run)]
        indexes = self._choose(runs, pattern, len(keys[0]))
        for first, part in in_parts(indexes, pattern, keys):
            for ranges in search_together(indexes, pattern, [key.codes for key in part]):
                np.add.at(counts, ranges.probes + first, ranges.counts)
        return counts

    def between(
        self, limits: Mapping[int, Limits], with_new: bool
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield probe positions and ids of rows within intervals, in slices; and of some others.

        Parameters
        ----------
        limits
            By compared column, the interval of each probe; the most selective ones come first.
        with_new
            Whether rows of this micro-batch count.

        """
        runs = [run for run in self.runs(with_new) if len(run)]
        bases = np.cumsum([0, *map(len, runs)])
        probes = len(next(iter(limits.values())).low)
        self.counts.probes += probes
        parts = [within(run, limits) for run in runs]
        ranges, rows = [own for own, _ in parts], [own for _, own in parts]
        for begin, end in in_slices(ranges, probes):
            found = []
            for given, own, base in zip(ranges, rows, bases, strict=False):
                positions = cut(given, begin, end).expand()
                found.append((positions[0], own[positions[1]] + base))
            ids = np.concatenate([np.zeros(0, np.int64), *[own for _, own in found]])
            self.counts.candidates += len(ids)
            self.counts.matches += len(ids)
            if len(ids):
                yield np.concatenate([own for own, _ in found]), ids

    def every_row(self, probes: int, with_new: bool) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield all rows for every probe, in slices of bounded size."""
        rows = sum(map(len, self.runs(with_new)))
        per_slice = max(1, CANDIDATES_MAX // max(rows, 1))
        for begin in range(0, probes if rows else 0, per_slice):
            count = min(per_slice, probes - begin)
            self.counts.candidates += count * rows
            yield np.repeat(np.arange(begin, begin + count), rows), np.tile(np.arange(rows), count)

    def _matches(
        self,
        run: Run,
        index: Index,
        pattern: Pattern,
        keys: Sequence[KeyColumn],
        ranges: Ranges,
        base: int,
    ) -> tuple[IntArray, IntArray]:
        probes, positions = ranges.expand()
        self.counts.candidates += len(probes)
        rows, is_equal = index.confirm(pattern, positions, [key.codes[probes] for key in keys])
        probes, rows = probes[is_equal], rows[is_equal]
        for position, key in zip(pattern, keys, strict=True):
            if key.values is not None:
                same = run.keys[position].take(rows).equals(key.take(probes))
                probes, rows = probes[same], rows[same]
        return probes, rows + base

    # --- columns of rows, by row id ----------------------------------------------------------

    def times_us(self, ids: IntArray) -> IntArray:
        """Return the event times of rows."""
        times: IntArray = self._gather(ids, lambda run: run.times_us, np.empty(len(ids), np.int64))
        return times

    def arrivals(self, ids: IntArray) -> IntArray:
        """Return the arrival numbers of rows."""
        assert self.clock is not None
        return self.clock.arrivals(self._sequence(ids))

    def rows_since(self, ids: IntArray, arrivals: IntArray) -> IntArray:
        """Return how many rows of the stream arrived after rows, up to others."""
        assert self.clock is not None
        return self.clock.rows_until(arrivals) - 1 - self._sequence(ids)

    def _sequence(self, ids: IntArray) -> IntArray:
        out = np.empty(len(ids), np.int64)
        sequence: IntArray = self._gather(ids, Run.sequence_numbers, out)
        return sequence

    def values(self, ids: IntArray, column: int) -> FloatArray:
        """Return a compared column of rows."""
        out = np.empty(len(ids), np.float64)
        values: FloatArray = self._gather(ids, lambda run: run.values(column), out)
        return values

    def lineage(self, ids: IntArray, occurrence: int, words: int) -> Bitmaps:
        """Return the bitmaps of the queries that want rows in a role."""
        out = np.empty((len(ids), words), dtype=np.uint64)
        bitmaps: Bitmaps = self._gather(ids, lambda run: run.lineage[occurrence], out)
        return bitmaps

    def key(self, ids: IntArray, position: int) -> KeyColumn:
        """Return a key column of rows."""
        parts, back = self._by_run(ids)
        columns = [run.keys[position].take(rows) for run, rows in parts]
        return columns[0] if back is None else concat_keys(columns).take(back)

    def payload(self, ids: IntArray, schema: pa.Schema) -> list[pa.Array]:
        """Return columns of rows; a column that is not stored with a row is NULL."""
        parts, back = self._by_run(ids)
        columns = [
            [run.column(field).take(pa.array(rows)) for run, rows in parts] for field in schema
        ]
        if back is None:
            return [chunks[0] for chunks in columns]
        where = pa.array(back)
        return [pa.concat_arrays(chunks).take(where) for chunks in columns]

    def _by_run(self, ids: IntArray) -> tuple[list[tuple[Run, IntArray]], IntArray | None]:
        """Return runs with the positions of rows in them, and how to put them in order again.

        None in place of an order if all rows are of one run.
        """
        runs = self.runs(with_new=True)
        if len(runs) == 1:
            return [(runs[0], ids)], None
        ends = np.cumsum(list(map(len, runs)))
        run_of = np.searchsorted(ends, ids, side="right")
        parts = [
            (runs[number], ids[run_of == number] - (ends[number] - len(runs[number])))
            for number in np.flatnonzero(np.bincount(run_of))
        ]
        back = np.empty(len(ids), dtype=np.int64)
        back[np.argsort(run_of, kind="stable")] = np.arange(len(ids))
        return parts, back

    def _gather(
        self, ids: IntArray, column: Callable[[Run], NDArray[Any]], out: NDArray[Any]
    ) -> Any:
        parts, back = self._by_run(ids)
        if back is None:
            return column(parts[0][0])[parts[0][1]]
        return np.concatenate([out[:0], *[column(run)[rows] for run, rows in parts]])[back]
