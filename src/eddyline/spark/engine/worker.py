"""The worker side of an engine: runs the eddies of a plan on the batches of a task.

A worker process keeps its eddies from task to task and from micro-batch to micro-batch. If queries
changed meanwhile, it applies the changes; a new process, or one that missed too many versions,
builds its eddies from the base in the plan. Eddies are a cache: the plan is always sufficient.

Every new process imports this module before its first row, so it imports neither the SQL parser nor
reports (`docs/decisions/0014`); an import contract checks it.
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray
from eddyline.fabric.held_errors import judge_in_parts
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.matches import Matches
from eddyline.operators import Batch
from eddyline.ordering.tickets import Tickets
from eddyline.spark.common.convert import SparkColumnReader
from eddyline.spark.common.operator_plans import make_operator
from eddyline.spark.common.side_channel import pack
from eddyline.spark.common.worker_cache import WorkerCache
from eddyline.spark.engine.plans import EddyPlan, StreamPlan
from eddyline.spark.engine.task_note import EddyCounts, OperatorWork, TaskNote

EDDIES_MAX = 16


@dataclass
class StreamEddy:
    """The eddy of one stream, and what is needed to feed it.

    Parameters
    ----------
    eddy
        With the queries of the version.
    version
        Version of the plan that was applied last.
    readers
        One for each column that crosses; empty until the first plan was applied.

    """

    eddy: SharedEddy
    version: int
    readers: list[SparkColumnReader]


_eddies: WorkerCache[tuple[str, int], StreamEddy] = WorkerCache(EDDIES_MAX)


def recall(plan: EddyPlan, number: int) -> StreamEddy:
    """Return this process's eddy for a stream, brought to the version of the plan."""
    key = (plan.run_id, number)
    history = plan.streams[number].queries
    known = _eddies.get(key)
    is_new = False
    if known is None or not history.base_version <= known.version <= plan.version:
        eddy = SharedEddy(plan.streams[number].domains, copy.deepcopy(plan.policy), plan.seed)
        eddy.add(pickle.loads(history.base))
        known = StreamEddy(eddy, history.base_version, [])
        is_new = True
    if known.version != plan.version or not known.readers:
        _bring_up_to_date(known, plan, plan.streams[number])
    if is_new and plan.streams[number].learnt:
        known.eddy.adopt(plan.streams[number].learnt)
    _eddies.put(key, known)
    return known


def _bring_up_to_date(known: StreamEddy, plan: EddyPlan, stream: StreamPlan) -> None:
    for change in stream.queries.changes:
        if change.version > known.version:
            known.eddy.drop(change.dropped)  # first: added queries may have slots of dropped ones
            known.eddy.add(change.added)
    known.version = plan.version
    known.readers = [
        SparkColumnReader(name, kind, plan.timezone, plan.binary_as_bytes)
        for name, kind in stream.columns
    ]
    operators = {key: make_operator(operator) for key, operator in stream.operators.items()}
    known.eddy.bind(stream.values, operators)


def run_task(plan: EddyPlan, batches: Iterator[Any]) -> Iterator[pa.StructArray]:
    """Run all batches of a task; the body of the iterator Arrow UDF.

    The note of the task travels with the last batch; one batch is read ahead to know which that is.
    """
    began = time.perf_counter()
    streams = [recall(plan, number) for number in range(len(plan.streams))]
    for stream in streams:
        stream.eddy.take_counts()  # discard counts of a task that was given up
        stream.eddy.take_work()
    rows_before, visits_before = _work_of(streams)
    failures: dict[int, str] = {}
    batch = next(batches, None)
    while batch is not None:
        matches = _run_batch(plan, streams, batch)
        failures = matches.failures | failures
        rows = len(batch[0])
        batch = next(batches, None)
        note = None
        if rows and (batch is None or len(batch[0]) == 0):
            rows_now, visits_now = _work_of(streams)
            work = EddyCounts(rows_now - rows_before, visits_now - visits_before, _work(streams))
            counts = {n: c for s in streams for n, c in s.eddy.take_counts().items()}
            note = TaskNote(counts, failures, work, time.perf_counter() - began)
            # An empty batch need not be the last one; another note counts from here.
            began, failures = time.perf_counter(), {}
            rows_before, visits_before = rows_now, visits_now
        yield encode(matches, rows, note)


def _work_of(streams: Sequence[StreamEddy]) -> tuple[int, int]:
    """Return the rows and visits of all eddies so far."""
    return sum(s.eddy.rows for s in streams), sum(s.eddy.visits for s in streams)


def _work(streams: Sequence[StreamEddy]) -> dict[int, dict[str, OperatorWork]]:
    """Return what the operators of each stream did, by the number of the stream."""
    work = {}
    for number, stream in enumerate(streams):
        policy, shares = stream.eddy.policy, {}
        if isinstance(policy, Tickets):
            names = [operator.name for operator in stream.eddy.operators]
            shares = dict(zip(names, policy.shares().round(4).tolist(), strict=True))
        done, learnt = stream.eddy.take_work(), stream.eddy.learnt()
        if done:
            work[number] = {
                name: OperatorWork(visits, round(busy_us / 1e6, 6), shares.get(name), learnt[name])
                for name, (visits, busy_us) in done.items()
            }
    return work


def _run_batch(
    plan: EddyPlan, streams: Sequence[StreamEddy], batch: tuple[pa.Array, ...]
) -> Matches:
    """Route the rows of each stream through its eddy."""
    if len(streams) == 1:
        return streams[0].eddy.run(_to_batch(plan.streams[0], streams[0], list(batch[1:])))
    parts = [
        known.eddy.run(stream_batch).relocated(rows)
        for known, (stream_batch, rows) in zip(
            streams, _split_by_stream(plan, streams, batch), strict=True
        )
    ]
    return Matches.concat(parts).by_row()


def _split_by_stream(
    plan: EddyPlan, streams: Sequence[StreamEddy], batch: tuple[pa.Array, ...]
) -> Iterator[tuple[Batch, IntArray]]:
    """Yield the rows of each stream, with their positions in the batch."""
    source, columns = batch[0], list(batch[1:])
    stream_of_row = source.to_numpy(zero_copy_only=False)
    first = 0
    for number, (stream, known) in enumerate(zip(plan.streams, streams, strict=True)):
        stream_columns = columns[first : first + len(stream.columns)]
        first += len(stream.columns)
        rows = np.flatnonzero(stream_of_row == number)
        taken = [column.take(pa.array(rows)) for column in stream_columns]
        yield _to_batch(stream, known, taken), rows


def run_probe(
    plan: EddyPlan, keys: Collection[tuple[int, str]], batches: Iterator[Any]
) -> Iterator[pa.Array]:
    """Call some functions on every row of their streams; the body of a UDF that looks for faults.

    Errors that a function raises are not what it looks for: a function that ends its process is.

    Parameters
    ----------
    plan
        The plan that has the functions.
    keys
        Stream number and operator key of each function to call.
    batches
        The batches of a task.

    """
    streams = [recall(plan, number) for number in range(len(plan.streams))]
    operators = [(n, make_operator(plan.streams[n].operators[key])) for n, key in keys]
    for batch in batches:
        stream_batches = list(_split_by_stream(plan, streams, batch))
        for number, operator in operators:
            stream_batch, rows = stream_batches[number]
            judge_in_parts(operator, stream_batch, np.arange(len(rows)))
        yield pa.nulls(len(batch[0]), pa.bool_())


def _to_batch(stream: StreamPlan, known: StreamEddy, columns: list[pa.Array]) -> Batch:
    """Return columns as a batch, with the array of native answers split into a column for each."""
    if stream.native is None:
        return Batch(columns, known.readers)
    position, count = stream.native.position, len(stream.native.keys)
    flat = columns[position].flatten()
    answers = [flat[n::count] if count > 1 else flat for n in range(count)]
    readers = [*known.readers, *known.readers[position : position + 1] * count]
    return Batch([*columns, *answers], readers)


def encode(matches: Matches, rows: int, note: TaskNote | None) -> pa.StructArray:
    """Return the matches of a batch as a column: NULL for none, and a note with the last row.

    Examples
    --------
    >>> matches = Matches(np.array([0, 0]), np.array([3, 5]))
    >>> encode(matches, 2, None).to_pylist()
    [{'queries': [3, 5], 'note': None}, None]

    """
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(matches.rows, minlength=rows), out=offsets[1:])
    queries = pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(matches.numbers.astype(np.int32), pa.int32())
    )
    is_null = offsets[1:] == offsets[:-1]
    notes = pa.nulls(rows, pa.binary())
    if note is not None and rows:
        packed = pa.array([pack(note.to_dict())], pa.binary())
        notes = pa.concat_arrays([notes[1:], packed])
        is_null[-1] = False
    return pa.StructArray.from_arrays([queries, notes], ["queries", "note"], mask=pa.array(is_null))
