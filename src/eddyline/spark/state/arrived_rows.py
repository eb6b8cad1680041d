"""The rows that arrive at a join task: their columns, who wants them, and which are late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, BoolArray, IntArray
from eddyline.joins.keys import key_column
from eddyline.joins.run import Run
from eddyline.operators.bitmaps import bit
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.join_note import HeavyKey
from eddyline.spark.state.join_plan import JoinPlan, StemLayout

#: Columns of the rows that tasks receive; those of a SteM are in a struct named by `stem_field`.
TASK, STEM, TIME, PARTS = "task", "stem", "time_us", "parts"
#: Column with an id for every row, from which its sequence number follows.
ARRIVAL = "arrival"
#: A task with fewer rows has no key that is worth reporting.
HEAVY_ROWS_MIN = 10_000
#: Stands for no event time.
NEVER_US = -(2**63)


def stem_field(number: int) -> str:
    """Return the name of the struct column that holds the rows of a SteM."""
    return f"m{number}"


@dataclass(frozen=True)
class ArrivedRows:
    """The rows that arrived at a task for one SteM.

    Parameters
    ----------
    rows
        A struct for each: key columns, hashes, and the stored columns.
    times_us
        Event times; NULL without one.
    parts
        The query roles that want each row: a list of numbers, or a bitmap.
    ids
        What `CountedRows` numbers rows by; None if no query has a window of rows.

    """

    rows: pa.StructArray
    times_us: pa.Array
    parts: pa.Array
    ids: pa.Array | None = None

    def lineage(
        self, plan: JoinPlan, stem: int, words: int
    ) -> tuple[dict[int, Bitmaps], BoolArray, BoolArray]:
        """Return bitmaps of queries by occurrence, which rows are late, and which are originals.

        A bitmap has the queries that want the row. It is late if it has no time, or is too old for
        every query that wants it. A row that several SteMs receive is an original in the first of
        them, and late only there.
        """
        count = len(self.rows)
        times = self.times_us.fill_null(NEVER_US).to_numpy()
        lineage: dict[int, Bitmaps] = {}
        is_late = np.ones(count, dtype=bool)
        first_stem = np.full(count, len(plan.stems))
        for number, rows in self._rows_by_part(plan.bits.get(stem, ())):
            part = plan.parts[number]
            in_time = rows
            if part.watermark_us is not None:
                in_time = rows[times[rows] >= max(part.watermark_us, NEVER_US + 1)]
            is_late[in_time] = False
            first_stem[rows] = np.minimum(first_stem[rows], part.stem)
            if part.stem != stem:
                continue
            if part.occurrence not in lineage:
                lineage[part.occurrence] = np.zeros((count, words), dtype=np.uint64)
            word, mask = bit(part.slot)
            lineage[part.occurrence][in_time, word] |= mask
        is_original = first_stem == stem
        return lineage, is_late & is_original, is_original

    def _rows_by_part(self, bits: Sequence[int]) -> Iterator[tuple[int, IntArray]]:
        """Yield the numbers of roles, each with the rows that it wants."""
        if bits:
            bitmaps = self.parts.to_numpy()
            for position, number in enumerate(bits):
                yield number, np.flatnonzero(bitmaps & (1 << position))
            return
        owners = np.repeat(np.arange(len(self.rows)), np.diff(self.parts.offsets.to_numpy()))
        numbers = self.parts.flatten().to_numpy(zero_copy_only=False)
        by_number = np.argsort(numbers, kind="stable")
        known, starts = np.unique(numbers[by_number], return_index=True)
        for number, rows in zip(known, np.split(owners[by_number], starts[1:]), strict=True):
            yield int(number), rows

    def late(self, stem: StemLayout, rows: IntArray) -> pa.StructArray:
        """Return some rows with their stored columns and their event time."""
        chosen = pa.array(rows)
        stored = self.rows.field("row").take(chosen)
        fields = list(stem.payload)
        columns = [stored.field(field.name).cast(field.type) for field in fields]
        assert stem.time is not None  # without one no row is late
        if stem.time not in stem.payload.names:
            kind = pa.timestamp("us", "UTC")
            fields.append(pa.field(stem.time, kind))
            columns.append(self.times_us.take(chosen).cast(kind))
        return pa.StructArray.from_arrays(columns, fields=fields)

    def to_run(
        self,
        stem: StemLayout,
        lineage: Mapping[int, Bitmaps],
        wanted: IntArray,
        counted: CountedRows | None,
    ) -> Run:
        """Return the wanted rows as a run."""
        rows, times = self.rows, self.times_us.fill_null(NEVER_US)
        if len(wanted) < len(rows):
            rows, times = rows.take(pa.array(wanted)), times.take(pa.array(wanted))
        columns = {field.name: rows.field(field.name) for field in rows.type}
        keys = [
            key_column(columns[f"k{number}"], columns[f"h{number}"] if is_hashed else None)
            for number, is_hashed in enumerate(stem.hashed)
        ]
        empty = np.zeros((len(wanted), next(iter(lineage.values())).shape[1]), dtype=np.uint64)
        bitmaps = {
            n: lineage[n][wanted] if n in lineage else empty for n in range(stem.occurrences)
        }
        payload = pa.RecordBatch.from_struct_array(columns["row"])
        sequence = None
        if counted is not None and self.ids is not None:
            sequence = counted.sequence(self.ids.to_numpy()[wanted])
        compared = [
            columns[f"o{number}"].to_numpy(zero_copy_only=False)
            for number in range(len(stem.compared))
        ]
        return Run(keys, times.to_numpy(), bitmaps, payload, sequence, compared)


@dataclass(frozen=True)
class Arrivals:
    """Everything that arrived at a task.

    Parameters
    ----------
    task
        Number of the task.
    count
        Rows of all SteMs.
    rows
        By SteM number.

    """

    task: int
    count: int
    rows: Mapping[int, ArrivedRows]

    @classmethod
    def receive(cls, stems: int, batches: Iterable[pa.RecordBatch]) -> Arrivals | None:
        """Collect the rows of a task; None if there are none."""
        chunks: dict[int, list[list[pa.Array]]] = {}
        task, count = -1, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            task, count = batch[TASK][0].as_py(), count + batch.num_rows
            stem_of_row = batch[STEM].to_numpy()
            for number in range(stems):
                rows = pa.array(np.flatnonzero(stem_of_row == number))
                if len(rows):
                    names = [stem_field(number), TIME, PARTS]
                    names += [ARRIVAL] if ARRIVAL in batch.schema.names else []
                    chunks.setdefault(number, []).append([batch[name].take(rows) for name in names])
        if not count:
            return None
        rows_by_stem = {
            number: ArrivedRows(*map(pa.concat_arrays, zip(*given, strict=True)))
            for number, given in chunks.items()
        }
        return cls(task, count, rows_by_stem)

    def heavy_key(self, plan: JoinPlan) -> dict[int, HeavyKey]:
        """Return the key that most rows have, if there are many rows."""
        if self.count < HEAVY_ROWS_MIN:
            return {}
        number = max(self.rows, key=lambda own: len(self.rows[own].rows))
        rows = self.rows[number].rows
        if rows.type.get_field_index("k0") < 0:
            return {}  # other comparisons alone link its stream with others
        keys = rows.field("k0")  # the one that decides the task, if any does
        most = keys.value_counts().sort(order="descending", by="counts")[0].as_py()
        return {self.task: HeavyKey(plan.stems[number].name, str(most["values"]), most["counts"])}
