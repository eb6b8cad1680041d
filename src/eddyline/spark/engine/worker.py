"""The Arrow plane's side of an engine: what runs inside Spark's Python workers.

A worker keeps its flows from task to task and from micro-batch to micro-batch. If the queries have
changed since, it takes in the changes; a worker that is new, or was asleep for too long, builds
its flows from the plan, which has everything in it.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.fabric.shared.eddy import Flow, Matched
from eddyline.fabric.shared.query import StandingQuery
from eddyline.operators import Batch
from eddyline.operators.domain import Domain
from eddyline.ordering.tickets import Tickets
from eddyline.spark.common.convert import SparkColumnReader
from eddyline.spark.common.operator_plans import OperatorPlan, make_operator
from eddyline.spark.common.worker_cache import WorkerCache

FLOWS_MAX = 16


@dataclass
class Changes:
    """What changed in the queries over one stream when the catalogue got a version."""

    version: int
    added: list[StandingQuery]
    dropped: list[int]


@dataclass
class StreamPlan:
    """Everything a worker needs for the queries over one stream.

    Parameters
    ----------
    domains
        For each column that is compared with constants, what it holds.
    base, base_version
        Queries at some version, pickled: most workers have them already.
    changes
        What changed since.
    columns
        Names and types of the columns that cross into Python, in their order.
    values
        Where among them the columns are that are compared with constants.
    operators
        For each shared predicate, by its key, how to make it.
    native
        Where the answers of Spark's own predicates are, and which they answer; None if none.

    """

    domains: dict[str, Domain]
    base: bytes
    base_version: int
    changes: list[Changes]
    columns: list[tuple[str, Any]] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    operators: dict[str, OperatorPlan] = field(default_factory=dict)
    native: tuple[int, list[str]] | None = None


@dataclass
class FlowPlan:
    """The plan of one version of the catalogue. Pickled into the UDF."""

    run_id: str
    version: int
    streams: list[StreamPlan]
    timezone: str
    binary_as_bytes: bool
    seed: int | None = None


@dataclass
class _StreamFlow:
    """A flow, and what is needed to feed it."""

    flow: Flow
    version: int
    readers: list[SparkColumnReader] = field(default_factory=list)


_flows: WorkerCache[tuple[str, int], _StreamFlow] = WorkerCache(FLOWS_MAX)


def recall(plan: FlowPlan, number: int) -> _StreamFlow:
    """Return this process's flow for a stream, with the queries of the plan's version."""
    stream, key = plan.streams[number], (plan.run_id, number)
    known = _flows.get(key)
    if known is None or not stream.base_version <= known.version <= plan.version:
        known = _StreamFlow(Flow(stream.domains, seed=plan.seed), stream.base_version)
        known.flow.add(pickle.loads(stream.base))
        known.readers = []
    if known.version != plan.version or not known.readers:
        for change in stream.changes:
            if change.version > known.version:
                known.flow.drop(change.dropped)
                known.flow.add(change.added)
        known.version = plan.version
        known.readers = [
            SparkColumnReader(name, kind, plan.timezone, plan.binary_as_bytes)
            for name, kind in stream.columns
        ]
        operators = {key: make_operator(plan) for key, plan in stream.operators.items()}
        known.flow.bind(stream.values, operators)
    _flows.put(key, known)
    return known


def run_task(plan: FlowPlan, batches: Iterator[Any]) -> Iterator[pa.StructArray]:
    """Run all batches of a task; the body of the iterator Arrow UDF.

    What was counted goes back with the last batch; one batch is read ahead to know which it is.
    """
    began = time.perf_counter()
    flows = [recall(plan, number) for number in range(len(plan.streams))]
    for known in flows:
        known.flow.take_counts()  # of a task that was given up
    before = [(known.flow.rows, known.flow.visits) for known in flows]
    failures: dict[int, str] = {}
    batch = next(batches, None)
    while batch is not None:
        matched = _run_batch(plan, flows, batch)
        for number, error in matched.failures.items():
            failures.setdefault(number, error)
        rows = len(batch[0])
        batch = next(batches, None)
        note = None
        if rows and (batch is None or len(batch[0]) == 0):
            note = {
                "counts": {n: c for known in flows for n, c in known.flow.take_counts().items()},
                "failures": failures,
                "flows": [
                    _about(known.flow, *then) for known, then in zip(flows, before, strict=True)
                ],
                "busy_s": time.perf_counter() - began,
            }
            failures = {}
        yield encode(matched, rows, note)


def _run_batch(plan: FlowPlan, flows: list[_StreamFlow], batch: tuple[pa.Array, ...]) -> Matched:
    source, columns = batch[0], list(batch[1:])
    if len(flows) == 1:
        return flows[0].flow.run(_to_batch(plan.streams[0], flows[0], columns))
    of = source.to_numpy(zero_copy_only=False)
    parts, first = [], 0
    for number, (stream, known) in enumerate(zip(plan.streams, flows, strict=True)):
        own = columns[first : first + len(stream.columns)]
        first += len(stream.columns)
        rows = np.flatnonzero(of == number)
        taken = [column.take(pa.array(rows)) for column in own]
        matched = known.flow.run(_to_batch(stream, known, taken))
        parts.append(Matched(rows[matched.rows], matched.numbers, matched.failures))
    whole = Matched.of(parts)
    order = np.argsort(whole.rows, kind="stable")
    whole.rows, whole.numbers = whole.rows[order], whole.numbers[order]
    return whole


def _to_batch(stream: StreamPlan, known: _StreamFlow, columns: list[pa.Array]) -> Batch:
    if stream.native is None:
        return Batch(columns, known.readers)
    at, keys = stream.native
    answers = columns[at].flatten()
    apart = [answers[n :: len(keys)] if len(keys) > 1 else answers for n in range(len(keys))]
    readers = [*known.readers, *known.readers[at : at + 1] * len(keys)]
    return Batch([*columns, *apart], readers)


def encode(matched: Matched, rows: int, note: Mapping[str, Any] | None) -> pa.StructArray:
    """Return the matches of a batch as a column: NULL for none, and a note with the last row.

    Examples
    --------
    >>> matched = Matched(np.array([0, 0]), np.array([3, 5]))
    >>> encode(matched, 2, None).to_pylist()
    [{'queries': [3, 5], 'note': None}, None]

    """
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(matched.rows, minlength=rows), out=offsets[1:])
    lists = pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(matched.numbers.astype(np.int32), pa.int32())
    )
    absent = offsets[1:] == offsets[:-1]
    notes = pa.nulls(rows, pa.binary())
    if note is not None and rows:
        text = json.dumps(note, separators=(",", ":")).encode()
        notes = pa.concat_arrays([notes[1:], pa.array([text], pa.binary())])
        absent[-1] = False
    return pa.StructArray.from_arrays([lists, notes], ["queries", "note"], mask=pa.array(absent))


def _about(flow: Flow, rows: int, visits: int) -> dict[str, Any]:
    policy = flow.policy
    shares = policy.shares().round(4).tolist() if isinstance(policy, Tickets) else []
    return {
        "rows": flow.rows - rows,
        "visits": flow.visits - visits,
        "operators": [operator.name for operator in flow.operators],
        "tickets": shares,
    }
