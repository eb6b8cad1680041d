"""The Arrow plane's side of a `where`: what runs inside Spark's Python workers.

A worker process lives longer than a task. What its router has learnt is kept from task to task and
from micro-batch to micro-batch, but only as a cache: the process may die at any time, and a new one
starts from what the driver knew when the plan was built.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType

from eddyline.fabric import Router, RouterOptions, Totals
from eddyline.fabric.strategy import RoutingPolicy
from eddyline.spark.common.convert import SparkColumnReader
from eddyline.spark.common.notes import encode
from eddyline.spark.common.operator_plans import OperatorPlan, make_operator
from eddyline.spark.common.worker_cache import WorkerCache

ROUTERS_MAX = 32
RECORDS_PER_NOTE_MAX = 40


@dataclass
class RouterPlan:
    """Everything a worker needs to make the router of a `where`. Pickled into the UDF.

    Parameters
    ----------
    where_id, build
        Which `where` this is, and the how-manieth DataFrame it was applied to. A worker goes on
        with its router for the same build, and hands over what it learnt to a later one.
    operators, pinned, policy, options
        As for `Router`.
    columns
        Names and types of the columns that cross into Python.
    timezone, binary_as_bytes
        Session settings that matter for converting values.
    knowledge
        What was known when the plan was built; empty at the first.
    attributes
        Columns that may tell classes of rows apart: names, and positions among `columns`.

    """

    where_id: str
    build: int
    operators: list[OperatorPlan]
    pinned: tuple[int, ...]
    policy: RoutingPolicy
    options: RouterOptions
    columns: list[tuple[str, DataType]]
    timezone: str
    binary_as_bytes: bool
    knowledge: list[dict[str, Any]] = field(default_factory=list)
    attributes: dict[str, int] = field(default_factory=dict)

    def make(self) -> Router:
        """Return a new router."""
        readers = [
            SparkColumnReader(name, spark_type, self.timezone, self.binary_as_bytes)
            for name, spark_type in self.columns
        ]
        router = Router(
            [make_operator(operator) for operator in self.operators],
            readers,
            self.policy,
            self.pinned,
            self.options,
            where=f"worker {os.getpid()}",
            attributes=self.attributes,
        )
        if self.knowledge:
            router.resume(self.knowledge)
        return router


_routers: WorkerCache[tuple[str, int], Router] = WorkerCache(ROUTERS_MAX)
_process = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def recall(plan: RouterPlan) -> Router:
    """Return this process's router for the plan, as it was left by the task before."""
    key = (plan.where_id, plan.build)
    router = _routers.get(key)
    if router is None:
        _warm_up()
        router = plan.make()
        before = [known for (where_id, _), known in _routers if where_id == plan.where_id]
        if before and not plan.knowledge:
            router.resume(before[-1].knowledge())
        _routers.put(key, router)
    return router


def _warm_up() -> None:
    """Let PyArrow load pandas now: the first conversion does, and would look very expensive."""
    pa.array([True], type=pa.bool_()).to_pylist()


def run_task(plan: RouterPlan, batches: Iterator[Any]) -> Iterator[pa.Array]:
    """Route all batches of a task; the body of the iterator Arrow UDF.

    A note is sent with the batches 1, 2, 4, 8, ... and with the last, so that what is collected on
    the driver grows with the number of tasks and not with the number of rows. To know which batch
    is the last, one batch is read ahead.
    """
    router = recall(plan)
    number, next_note = 0, 1
    try:
        batch = next(batches, None)
        while batch is not None:
            columns = batch if isinstance(batch, tuple) else (batch,)
            verdict = router.route(columns, _rows_in(batch))
            batch = next(batches, None)
            number += 1
            note = None
            is_last = batch is None or _rows_in(batch) == 0
            if len(verdict) and (number >= next_note or is_last):
                next_note *= 2
                note = take_note(router, with_knowledge=is_last or number == 1)
            yield encode(verdict, note)
    finally:
        router.close()


def _rows_in(batch: Any) -> int:
    return len(batch[0]) if isinstance(batch, tuple) else len(batch)


def take_note(router: Router, with_knowledge: bool = True) -> dict[str, Any]:
    """Return what the router did since the last note, and what it knows now."""
    records = list(router.journal)
    note = {
        "worker": _process,
        "totals": router.totals.to_dict(),
        "knowledge": router.knowledge() if with_knowledge else [],
        "records": [record.to_dict() for record in records[-RECORDS_PER_NOTE_MAX:]],
        "records_left_out": max(0, len(records) - RECORDS_PER_NOTE_MAX),
    }
    router.totals = Totals(len(router.operators))
    router.journal.clear()
    return note
