"""Runs as sections of containers, and the cache of those that this worker process has mapped.

Idle workers are handed out in turn, so a worker that missed some micro-batches maps their files
before it probes. Mapping does not copy; indexes are built when first probed.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps
from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.keys import KeyColumn
from eddyline.joins.run import Run
from eddyline.spark.common.worker_cache import WorkerCache
from eddyline.spark.state.join_plan import JoinPlan, StemLayout
from eddyline.spark.state.state_file import (
    Section,
    SectionRows,
    StateFile,
    check_present,
    open_container,
    section_of,
)
from eddyline.spark.state.stored_lineage import SlotKeys, from_column, to_column, translate

SECTIONS_MAX = 4_096
_TIME, _ROW, _SEQUENCE = "time_us", "row", "sequence"


@dataclass(frozen=True)
class StoredRun:
    """A section in the memory of this process.

    Parameters
    ----------
    keys, compared
        Its key columns, and those that comparisons across streams use, by name.
    run
        Its rows, with these columns in the order in which they were written, without lineage.
    lineage
        By occurrence, as it was written.
    batch
        The micro-batch that wrote it.
    others
        The rows with other columns, as plans have asked for them; with their indexes.

    """

    keys: tuple[str, ...]
    compared: tuple[str, ...]
    run: Run
    lineage: Mapping[int, Bitmaps]
    batch: int
    others: dict[tuple[tuple[str, ...], tuple[str, ...]], Run] = field(default_factory=dict)

    def with_columns(self, keys: tuple[str, ...], compared: tuple[str, ...]) -> Run:
        """Return the rows with columns of other names.

        A key column that the rows were stored without belongs to queries that came later and do
        not want them: it is NULL.
        """
        if (keys, compared) == (self.keys, self.compared):
            return self.run
        if (keys, compared) not in self.others:
            count, run = len(self.run), self.run
            by_name = dict(zip(self.keys, run.keys, strict=True))
            absent = KeyColumn(np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=bool))
            values = dict(zip(self.compared, run.compared, strict=True))
            null = np.full(count, np.nan)
            self.others[keys, compared] = Run(
                [by_name.get(name, absent) for name in keys],
                run.times_us,
                {},
                run.payload,
                run.sequence,
                [values.get(name, null) for name in compared],
            )
        return self.others[keys, compared]


_sections: WorkerCache[tuple[str, str, str], StoredRun] = WorkerCache(SECTIONS_MAX)


def forget_all() -> None:
    """Forget all sections, as a new process has none."""
    _sections.clear()


def to_section(run: Run, stem: StemLayout, slot_keys: SlotKeys) -> SectionRows:
    """Return a run in the form in which containers hold it."""
    columns: dict[str, pa.Array] = {_TIME: pa.array(run.times_us)}
    for number, key in enumerate(run.keys):
        columns[f"c{number}"] = pa.array(key.codes)
        if key.values is not None:
            columns[f"k{number}"] = key.values
        if key.is_valid is not None:
            columns[f"v{number}"] = pa.array(key.is_valid)
    for occurrence, bitmaps in run.lineage.items():
        columns[f"l{occurrence}"] = to_column(bitmaps)
    for number, values in enumerate(run.compared):
        columns[f"o{number}"] = pa.array(values)
    columns[_ROW] = run.payload.to_struct_array()
    oldest_us, newest_us = int(run.times_us.min()), int(run.times_us.max())
    last_row = UNCOUNTED
    if run.sequence is not None:
        columns[_SEQUENCE] = pa.array(run.sequence)
        last_row = int(run.sequence.max())
    return SectionRows(
        pa.record_batch(columns),
        oldest_us,
        newest_us,
        stem.keys,
        slot_keys,
        last_row,
        stem.compared,
        run.configuration,
    )


def remember(folder: pathlib.Path, file: StateFile, stem: StemLayout, run: Run) -> None:
    """Keep a run that this process has just written."""
    rows = replace(run, lineage={})
    stored = StoredRun(stem.keys, stem.compared, rows, run.lineage, file.batch)
    _sections.put((str(folder), file.name, stem.name), stored)


def recall(plan: JoinPlan, task: int, words: int) -> dict[str, dict[int, Run]]:
    """Return the stored rows of a task, from this process's memory or from files.

    By name of the container, then by SteM number; containers come in the order of the plan.
    """
    _forget_unlisted(plan)
    runs: dict[str, dict[int, Run]] = {}
    for file in plan.files.get(task, ()):
        runs[file.name] = {
            number: _for_plan(
                _stored_run(plan.state, file, layout.name),
                file.sections[layout.name],
                layout,
                plan.slot_keys,
                words,
            )
            for number, layout in enumerate(plan.stems)
            if layout.name in file.sections
        }
    return runs


def _forget_unlisted(plan: JoinPlan) -> None:
    """Forget the containers of an engine that are merged or expired: memory follows the window.

    Those that tasks of this micro-batch have written are not in its plan yet.
    """
    folder, listed = str(plan.state), {file.name for own in plan.files.values() for file in own}
    for key, stored in _sections:
        if key[0] == folder and key[1] not in listed and stored.batch < plan.batch:
            _sections.drop(key)


def _stored_run(folder: pathlib.Path, file: StateFile, stem: str) -> StoredRun:
    check_present(folder, file)
    stored = _sections.get((str(folder), file.name, stem))
    if stored is None:
        content = open_container(folder, file)
        for name, section in file.sections.items():
            found = _from_section(section_of(content, section), section, file.batch)
            _sections.put((str(folder), file.name, name), found)
            stored = found if name == stem else stored
    assert stored is not None
    return stored


def _from_section(rows: pa.RecordBatch, section: Section, batch: int) -> StoredRun:
    names = set(rows.schema.names)
    keys = []
    for number in range(len(section.keys)):
        is_valid = None
        if f"v{number}" in names:
            is_valid = rows[f"v{number}"].to_numpy(zero_copy_only=False)
        values = rows[f"k{number}"] if f"k{number}" in names else None
        keys.append(KeyColumn(rows[f"c{number}"].to_numpy(), is_valid, values))
    lineage: dict[int, Bitmaps] = {}
    while f"l{len(lineage)}" in names:
        lineage[len(lineage)] = from_column(rows[f"l{len(lineage)}"])
    payload = pa.RecordBatch.from_struct_array(rows[_ROW])
    sequence = rows[_SEQUENCE].to_numpy() if _SEQUENCE in names else None
    compared = [rows[f"o{number}"].to_numpy() for number in range(len(section.compared))]
    times_us, configuration = rows[_TIME].to_numpy(), section.configuration
    run = Run(keys, times_us, {}, payload, sequence, compared, configuration)
    return StoredRun(section.keys, section.compared, run, lineage, batch)


def _for_plan(
    stored: StoredRun, section: Section, layout: StemLayout, slot_keys: SlotKeys, words: int
) -> Run:
    """Return a stored run with the keys and the lineage that the current plan expects."""
    run = stored.with_columns(layout.keys, layout.compared)
    lineage = {
        occurrence: translate(stored.lineage[occurrence], section.slots, slot_keys, words)
        if occurrence in stored.lineage
        else np.zeros((len(run), words), dtype=np.uint64)
        for occurrence in range(layout.occurrences)
    }
    return replace(run, lineage=lineage)
