"""The worker side of joins: receives the rows of a task, joins them, and stores them.

Runs once for each task of a micro-batch, as a `mapInArrow` function that returns one note. What a
worker keeps between micro-batches is a cache of files that it has mapped and indexed
(`stored_runs.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, BoolArray, IntArray
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import words_of
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import ProbeOrderChanged
from eddyline.operators.bitmaps import WORD_BITS, bit
from eddyline.spark.common.side_channel import pack
from eddyline.spark.state.compaction import limits_by_slot, merge_runs
from eddyline.spark.state.join_note import HeavyKey, JoinNote
from eddyline.spark.state.join_plan import JoinPlan, StemLayout
from eddyline.spark.state.probe_memory import PlanWords, keep_routes, recall_routes
from eddyline.spark.state.result_writer import ResultWriter, write_late_rows
from eddyline.spark.state.state_file import StateFile, write_container
from eddyline.spark.state.stored_runs import recall, remember, to_section

#: Columns of the rows that tasks receive; those of a SteM are in a struct named by `stem_field`.
TASK, STEM, TIME, PARTS = "task", "stem", "time_us", "parts"
#: A task with fewer rows has no key that is worth reporting.
HEAVY_ROWS_MIN = 10_000
#: Stands for no event time.
NEVER_US = -(2**63)


def stem_field(number: int) -> str:
    """Return the name of the struct column that holds the rows of a SteM."""
    return f"m{number}"


def join_task(plan: JoinPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join and store the rows of a task; the body of the `mapInArrow` function."""
    arrivals = Arrivals.receive(len(plan.stems), batches)
    if arrivals is None:
        return
    began = time.perf_counter()
    words = words_of(plan.queries)
    new, late = _to_runs(plan, arrivals, words)
    late_files = _write_late(plan, arrivals, late)
    opening = time.perf_counter()
    stored = recall(plan, arrivals.task, words)
    opening_s = time.perf_counter() - opening
    stems = {
        number: SteM([runs[number] for runs in stored.values() if number in runs])
        for number in range(len(plan.stems))
    }
    learnt, words_of_plan = recall_routes(plan), PlanWords(plan)
    join = Join(plan.queries, stems, plan.policy, plan.seed, routes=learnt, words=words_of_plan)
    if learnt is None:
        _begin_as_planned(join, plan)
    schemas = {name: plan.stems[role.stream].payload for role, name in plan.role_fields.items()}
    numbers = {slot: key[0] for slot, key in plan.slot_keys.items()}
    writer = ResultWriter(plan.results, plan.role_fields, schemas, numbers)
    join.run(new, writer.write)
    keep_routes(plan, join.routes())
    results = writer.close()
    added = [_store(plan, arrivals.task, new)] if new else []
    removed = plan.merges.get(arrivals.task, ())
    if removed:
        merged = _merge(plan, [stored[name] for name in removed], words)
        tier = 1 + max(file.tier for file in plan.files[arrivals.task] if file.name in removed)
        added += [_store(plan, arrivals.task, merged, tier)] if merged else []
    note = JoinNote(
        tuple(added),
        removed,
        {**results, **late_files},
        writer.counts,
        arrivals.count,
        _count_by_stream(plan, late),
        sum(stem.counts.candidates for stem in join.stems.values()),
        sum(stem.counts.matches for stem in join.stems.values()),
        time.perf_counter() - began,
        {
            plan.role_name(role): tuple(map(words_of_plan.path, order))
            for role, order in join.orders().items()
        },
        opening_s,
        writer.combinations,
        [event.to_dict() for event in join.take_events() if type(event) is not ProbeOrderChanged],
        {arrivals.task: arrivals.count},
        arrivals.heavy_key(plan),
    )
    yield pa.record_batch({"note": pa.array([pack(note.to_dict())], pa.binary())})


def _begin_as_planned(join: Join, plan: JoinPlan) -> None:
    """Let new rows ask SteMs in the order that the last micro-batch ended with."""
    orders, words = {}, PlanWords(plan)
    for role, order in join.orders().items():
        paths = {words.path(path): path for path in order}
        planned = plan.orders.get(plan.role_name(role), ())
        orders[role] = [paths[name] for name in planned if name in paths]
    join.begin_with(orders)


def _to_runs(
    plan: JoinPlan, arrivals: Arrivals, words: int
) -> tuple[dict[int, Run], dict[int, BoolArray]]:
    """Return the rows that some query wants, by SteM, and which rows were late."""
    new: dict[int, Run] = {}
    late: dict[int, BoolArray] = {}
    for number, rows in arrivals.rows.items():
        lineage, is_late = rows.lineage(plan, number, words)
        if is_late.any():
            late[number] = is_late
        wanted = np.flatnonzero(np.logical_or.reduce([b.any(axis=1) for b in lineage.values()]))
        if len(wanted):
            new[number] = rows.to_run(plan.stems[number], lineage, wanted)
    return new, late


def _write_late(
    plan: JoinPlan, arrivals: Arrivals, late: Mapping[int, BoolArray]
) -> dict[str, int]:
    """Store late rows, so that they can be read; return the files with their sizes."""
    files: dict[str, int] = {}
    for number, is_late in late.items():
        layout, rows = plan.stems[number], np.flatnonzero(is_late)
        files |= write_late_rows(plan.results, layout, arrivals.rows[number].late(layout, rows))
    return files


def _count_by_stream(plan: JoinPlan, late: Mapping[int, BoolArray]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for number, is_late in late.items():
        stream = plan.stems[number].stream
        counts[stream] = counts.get(stream, 0) + int(is_late.sum())
    return counts


def _store(plan: JoinPlan, task: int, runs: Mapping[int, Run], tier: int = 0) -> StateFile:
    """Write runs into a container, and keep them in this process's memory."""
    sections = {
        plan.stems[number].name: to_section(run, plan.stems[number], plan.slot_keys)
        for number, run in runs.items()
    }
    file = write_container(
        plan.state, sections, batch=plan.batch, task=task, tasks=plan.tasks, tier=tier
    )
    for number, run in runs.items():
        remember(plan.state, file, plan.stems[number], run)
    return file


def _merge(plan: JoinPlan, stored: Sequence[Mapping[int, Run]], words: int) -> dict[int, Run]:
    """Return the runs of several containers as one for each SteM."""
    limits = limits_by_slot(plan.needed_since_us, words * WORD_BITS)
    merged = {
        number: merge_runs(
            [runs[number] for runs in stored if number in runs], limits, stem.payload
        )
        for number, stem in enumerate(plan.stems)
    }
    return {number: run for number, run in merged.items() if run is not None}


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

    """

    rows: pa.StructArray
    times_us: pa.Array
    parts: pa.Array

    def lineage(
        self, plan: JoinPlan, stem: int, words: int
    ) -> tuple[dict[int, Bitmaps], BoolArray]:
        """Return bitmaps of the queries that want each row, by occurrence, and which are late.

        A row is late if it has no time, or is too old for every query that wants it. A row that
        several SteMs receive counts as late in the first of them.
        """
        count = len(self.rows)
        times = self.times_us.fill_null(NEVER_US).to_numpy()
        lineage: dict[int, Bitmaps] = {}
        is_late = np.ones(count, dtype=bool)
        first_stem = np.full(count, len(plan.stems))
        for number, rows in self._rows_by_part(plan.bits.get(stem, ())):
            part = plan.parts[number]
            in_time = rows[times[rows] >= max(part.watermark_us, NEVER_US + 1)]
            is_late[in_time] = False
            first_stem[rows] = np.minimum(first_stem[rows], part.stem)
            if part.stem != stem:
                continue
            if part.occurrence not in lineage:
                lineage[part.occurrence] = np.zeros((count, words), dtype=np.uint64)
            word, mask = bit(part.slot)
            lineage[part.occurrence][in_time, word] |= mask
        return lineage, is_late & (first_stem == stem)

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
        if stem.time not in stem.payload.names:
            kind = pa.timestamp("us", "UTC")
            fields.append(pa.field(stem.time, kind))
            columns.append(self.times_us.take(chosen).cast(kind))
        return pa.StructArray.from_arrays(columns, fields=fields)

    def to_run(self, stem: StemLayout, lineage: Mapping[int, Bitmaps], wanted: IntArray) -> Run:
        """Return the wanted rows as a run."""
        rows, times = self.rows, self.times_us
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
        return Run(keys, times.to_numpy(), bitmaps, payload)


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
                    names = (stem_field(number), TIME, PARTS)
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
        keys = self.rows[number].rows.field("k0")  # the one that decides the task, if any does
        most = keys.value_counts().sort(order="descending", by="counts")[0].as_py()
        return {self.task: HeavyKey(plan.stems[number].name, str(most["values"]), most["counts"])}
