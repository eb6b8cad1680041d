"""The worker side of joins: receives the rows of a task, joins them, and stores them.

Runs once for each task of a micro-batch, as a `mapInArrow` function that returns one note. What a
worker keeps between micro-batches is a cache of files it has mapped and indexed; idle workers are
handed out in turn, so one that missed some micro-batches maps their files first.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, IntArray
from eddyline.joins.join import Join
from eddyline.joins.keys import KeyColumn, key_column
from eddyline.joins.plan import words_of
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.operators.bitmaps import bit
from eddyline.spark.common.side_channel import pack
from eddyline.spark.common.worker_cache import WorkerCache
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import JoinPlan, SpacePlan, StreamLayout
from eddyline.spark.state.result_writer import ResultWriter
from eddyline.spark.state.state_file import SectionRows, StateFile, open_container, section_of, write_container
from eddyline.spark.state.stored_lineage import from_column, to_column, translate

SECTIONS_MAX = 4_096
TASK, STREAM, TIME, PARTS = "task", "stream", "time_us", "parts"


@dataclass(frozen=True)
class StoredRun:
    """A section that this process has mapped: its rows, and their lineage as it was written."""

    run: Run
    lineage: Mapping[int, Bitmaps]


_sections: WorkerCache[tuple[str, str, int], StoredRun] = WorkerCache(SECTIONS_MAX)


def join_task(plan: JoinPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join and store the rows of a task; the body of the `mapInArrow` function."""
    received = _receive(plan.space, batches)
    if received is None:
        return
    began = time.perf_counter()
    space, words = plan.space, words_of(plan.space.queries)
    new: dict[int, Run] = {}
    late: dict[int, int] = {}
    for stream, rows in received.streams.items():
        lineage, is_late = rows.lineage(space, words)
        late[stream] = int(is_late.sum())
        wanted = np.flatnonzero(np.logical_or.reduce([b.any(axis=1) for b in lineage.values()]))
        if len(wanted):
            new[stream] = rows.to_run(space.layouts[stream], lineage, wanted)
    stems = _recall(plan, received.task, words)
    join = Join(space.queries, stems)
    roles = {
        role: space.layouts[role.stream].payload for query in space.queries for role in query.roles
    }
    numbers = {slot: key[0] for slot, key in space.keys.items()}
    writer = ResultWriter(plan.results, roles, join.stems, numbers)
    join.run(new, writer.write)
    results = writer.close()
    added = []
    if new:
        sections = {stream: _to_section(run, space) for stream, run in new.items()}
        file = write_container(
            plan.state, sections, batch=plan.batch, space=space.name, task=received.task
        )
        added.append(file)
        for stream, run in new.items():
            key = (str(plan.state), file.name, stream)
            _sections.put(key, StoredRun(replace(run, lineage={}), run.lineage))
    note = JoinNote(
        tuple(added),
        results,
        writer.counts,
        received.rows,
        {stream: count for stream, count in late.items() if count},
        sum(stem.counts.candidates for stem in join.stems.values()),
        sum(stem.counts.matches for stem in join.stems.values()),
        time.perf_counter() - began,
    )
    yield pa.record_batch({"note": pa.array([pack(note.to_dict())], pa.binary())})


# --- rows that arrive ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrivedRows:
    """The rows of one stream that arrived at a task.

    Parameters
    ----------
    rows
        A struct for each: key columns, hashes, and the stored columns.
    times_us
        Event times; NULL without one.
    parts
        The numbers of the query roles that want each row.

    """

    rows: pa.StructArray
    times_us: pa.Array
    parts: pa.ListArray

    def lineage(self, space: SpacePlan, words: int) -> tuple[dict[int, Bitmaps], Bitmaps]:
        """Return bitmaps of the queries that want each row, by occurrence, and which are late.

        A row is late if it has no time, or is too old for every query that wants it.
        """
        count = len(self.rows)
        owners = np.repeat(np.arange(count), np.diff(self.parts.offsets.to_numpy()))
        numbers = self.parts.flatten().to_numpy(zero_copy_only=False)
        known = np.array(sorted(space.parts), dtype=np.int64)
        parts = [space.parts[int(number)] for number in known]
        at = np.searchsorted(known, numbers)
        has_time = self.times_us.is_valid().to_numpy(zero_copy_only=False)
        times = self.times_us.fill_null(0).to_numpy()
        limits = np.array([part.watermark_us for part in parts], dtype=np.int64)
        in_time = has_time[owners] & (times[owners] >= limits[at])
        occurrences = {part.occurrence for part in parts}
        lineage = {n: np.zeros((count, words), dtype=np.uint64) for n in sorted(occurrences)}
        for number, part in enumerate(parts):
            word, mask = bit(part.slot)
            rows = owners[(at == number) & in_time]
            lineage[part.occurrence][rows, word] |= mask
        is_late = np.zeros(count, dtype=bool)
        is_late[owners] = True
        is_late[owners[in_time]] = False
        return lineage, is_late

    def to_run(
        self, layout: StreamLayout, lineage: Mapping[int, Bitmaps], wanted: IntArray
    ) -> Run:
        """Return the wanted rows as a run."""
        rows, times = self.rows, self.times_us
        if len(wanted) < len(rows):
            rows, times = rows.take(pa.array(wanted)), times.take(pa.array(wanted))
            lineage = {n: bitmaps[wanted] for n, bitmaps in lineage.items()}
        columns = {field.name: rows.field(field.name) for field in rows.type}
        return Run(
            _keys(columns, layout),
            times.to_numpy(),
            lineage,
            pa.RecordBatch.from_struct_array(columns["row"]),
        )


@dataclass(frozen=True)
class Received:
    """Everything that arrived at a task."""

    task: int
    rows: int
    streams: Mapping[int, ArrivedRows]


def _receive(space: SpacePlan, batches: Iterable[pa.RecordBatch]) -> Received | None:
    """Collect the rows of a task by stream; None if there are none."""
    parts: dict[int, list[tuple[pa.Array, pa.Array, pa.Array]]] = {}
    task, count = -1, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        task, count = batch[TASK][0].as_py(), count + batch.num_rows
        stream_of_row = batch[STREAM].to_numpy()
        for stream in space.layouts:
            rows = pa.array(np.flatnonzero(stream_of_row == stream))
            if len(rows):
                columns = [batch[name].take(rows) for name in (f"s{stream}", TIME, PARTS)]
                parts.setdefault(stream, []).append((columns[0], columns[1], columns[2]))
    if not count:
        return None
    streams = {
        stream: ArrivedRows(*[pa.concat_arrays(chunks) for chunks in zip(*given, strict=True)])
        for stream, given in parts.items()
    }
    return Received(task, count, streams)


def _keys(columns: Mapping[str, pa.Array], layout: StreamLayout) -> list[KeyColumn]:
    return [
        key_column(columns[f"k{number}"], columns[f"h{number}"] if is_hashed else None)
        for number, is_hashed in enumerate(layout.hashed)
    ]


# --- rows that are stored ------------------------------------------------------------------------


def _to_section(run: Run, space: SpacePlan) -> SectionRows:
    columns: dict[str, pa.Array] = {TIME: pa.array(run.times_us)}
    for number, key in enumerate(run.keys):
        columns[f"c{number}"] = pa.array(key.codes)
        if key.values is not None:
            columns[f"k{number}"] = key.values
        if key.is_valid is not None:
            columns[f"v{number}"] = pa.array(key.is_valid)
    for occurrence, bitmaps in run.lineage.items():
        columns[f"l{occurrence}"] = to_column(bitmaps)
    columns["row"] = run.payload.to_struct_array()
    keys = {occurrence: dict(space.keys) for occurrence in run.lineage}
    oldest, newest = int(run.times_us.min()), int(run.times_us.max())
    return SectionRows(pa.record_batch(columns), oldest, newest, keys)


def _recall(plan: JoinPlan, task: int, words: int) -> dict[int, SteM]:
    """Return the SteMs of a task, from this process's memory or from files."""
    stems: dict[int, SteM] = {stream: SteM([]) for stream in plan.space.layouts}
    for file in plan.space.files.get(task, ()):
        for stream in file.sections:
            if stream in stems:
                stored = _stored_run(plan.state, file, stream, plan.space.layouts[stream])
                stems[stream].old.append(_with_lineage(stored, file, stream, plan.space, words))
    return stems


def _stored_run(
    folder: pathlib.Path, file: StateFile, stream: int, layout: StreamLayout
) -> StoredRun:
    key = (str(folder), file.name, stream)
    stored = _sections.get(key)
    if stored is None:
        content = open_container(folder, file)
        for other, section in file.sections.items():
            rows = section_of(content, section)
            found = _from_section(rows, section.slots)
            _sections.put((str(folder), file.name, other), found)
            if other == stream:
                stored = found
    assert stored is not None
    return stored


def _from_section(rows: pa.RecordBatch, occurrences: Iterable[int]) -> StoredRun:
    names = set(rows.schema.names)
    keys: list[KeyColumn] = []
    while f"c{len(keys)}" in names:
        number = len(keys)
        is_valid = None
        if f"v{number}" in names:
            is_valid = rows[f"v{number}"].to_numpy(zero_copy_only=False)
        values = rows[f"k{number}"] if f"k{number}" in names else None
        keys.append(KeyColumn(rows[f"c{number}"].to_numpy(), is_valid, values))
    lineage = {occurrence: from_column(rows[f"l{occurrence}"]) for occurrence in occurrences}
    payload = pa.RecordBatch.from_struct_array(rows["row"])
    return StoredRun(Run(keys, rows[TIME].to_numpy(), {}, payload), lineage)


def _with_lineage(
    stored: StoredRun, file: StateFile, stream: int, space: SpacePlan, words: int
) -> Run:
    then = file.sections[stream].slots
    lineage = {
        occurrence: translate(stored.lineage[occurrence], then[occurrence], space.keys, words)
        if occurrence in then
        else np.zeros((len(stored.run), words), dtype=np.uint64)
        for occurrence in range(space.layouts[stream].occurrences)
    }
    return replace(stored.run, lineage=lineage)
