"""The worker side of joins: receives the rows of a task, joins them, and stores them.

Runs once for each task of a micro-batch, as a `mapInArrow` function that returns one note. What a
worker keeps between micro-batches is a cache of files that it has mapped and indexed
(`stored_runs.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.index.tuner import Tuner
from eddyline.joins.join import Join
from eddyline.joins.plan import words_of
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import ProbeOrderChanged
from eddyline.spark.common.side_channel import pack
from eddyline.spark.state.arrived_rows import Arrivals
from eddyline.spark.state.compaction import merge_runs
from eddyline.spark.state.index_note import IndexNote
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import JoinPlan
from eddyline.spark.state.probe_memory import (
    PlanWords,
    keep_routes,
    recall_routes,
    recall_tuner,
)
from eddyline.spark.state.result_writer import ResultWriter, write_late_rows
from eddyline.spark.state.state_file import StateFile, write_container
from eddyline.spark.state.stored_runs import recall, remember, to_section


def join_task(plan: JoinPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join and store the rows of a task; the body of the `mapInArrow` function."""
    arrivals = Arrivals.receive(len(plan.stems), batches)
    if arrivals is None:
        return
    began = time.perf_counter()
    words = words_of(plan.queries)
    new, late, originals = _to_runs(plan, arrivals, words)
    late_files = _write_late(plan, arrivals, late)
    opening = time.perf_counter()
    stored = recall(plan, arrivals.task, words)
    opening_s = time.perf_counter() - opening
    stems = {
        number: SteM(
            [runs[number] for runs in stored.values() if number in runs],
            clock=counted.clock if (counted := plan.counted.get(layout.stream)) else None,
        )
        for number, layout in enumerate(plan.stems)
    }
    learnt, words_of_plan, tuner = recall_routes(plan), PlanWords(plan), recall_tuner(plan)
    tuned_s = tuner.busy_s
    join = Join(
        plan.queries,
        stems,
        plan.policy,
        plan.seed,
        routes=learnt,
        words=words_of_plan,
        tuner=tuner,
    )
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
        merged = _merge(plan, [stored[name] for name in removed], tuner)
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
        originals,
        {
            layout.name: IndexNote.of(join.stems[number], tuner, layout.keys)
            for number, layout in enumerate(plan.stems)
            if layout.keys
        },
        tuner.busy_s - tuned_s,
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
) -> tuple[dict[int, Run], dict[int, BoolArray], int]:
    """Return by SteM the rows that some query wants, and those too late; and how many there are.

    A row that goes to several tasks or SteMs is late, and counts, in one of them.
    """
    new: dict[int, Run] = {}
    late: dict[int, BoolArray] = {}
    originals = 0
    for number, rows in arrivals.rows.items():
        lineage, is_late, is_original = rows.lineage(plan, number, words)
        first_tasks = plan.stems[number].first_tasks
        if first_tasks is None or arrivals.task in first_tasks:
            originals += int(is_original.sum())
            if is_late.any():
                late[number] = is_late
        wanted = np.flatnonzero(np.logical_or.reduce([b.any(axis=1) for b in lineage.values()]))
        if len(wanted):
            stem = plan.stems[number]
            counted = plan.counted.get(stem.stream)
            new[number] = rows.to_run(stem, lineage, wanted, counted)
    return new, late, originals


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


def _merge(plan: JoinPlan, stored: Sequence[Mapping[int, Run]], tuner: Tuner) -> dict[int, Run]:
    """Return the runs of several containers as one for each SteM, with its configuration now."""
    merged: dict[int, Run] = {}
    for number, stem in enumerate(plan.stems):
        runs = [own[number] for own in stored if number in own]
        run = merge_runs(runs, plan.needs.get(number, ()), stem.payload)
        if run is not None:
            if run.keys:
                run.configuration = tuner.configuration(stem.name, run.columns)
            merged[number] = run
    return merged
