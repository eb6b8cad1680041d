"""The Arrow plane's side of a `where`: what runs inside Spark's Python workers.

A worker process lives longer than a task. Its router is kept from task to task and from micro-batch
to micro-batch, but only as a cache: the process may die at any time, and a new one starts from what
the driver knew when the plan was built.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from eddyline.fabric import Router
from eddyline.spark.common.convert import SparkColumnReader
from eddyline.spark.common.operator_plans import make_operator
from eddyline.spark.common.worker_cache import WorkerCache
from eddyline.spark.common.worker_output import end_quietly_when_unread
from eddyline.spark.where.note import WorkerNote
from eddyline.spark.where.plan import RouterPlan
from eddyline.spark.where.verdict import encode

ROUTERS_MAX = 32

_routers: WorkerCache[tuple[str, int], Router] = WorkerCache(ROUTERS_MAX)
_process = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def make_router(plan: RouterPlan, process: str | None = None) -> Router:
    """Return a new router for a plan, with what was known when the plan was built.

    Its journal names the process; by default this worker.
    """
    router = Router(
        [make_operator(operator) for operator in plan.operators],
        [
            SparkColumnReader(name, spark_type, plan.timezone, plan.binary_as_bytes)
            for name, spark_type in plan.columns
        ],
        plan.policy,
        plan.pinned,
        plan.options,
        process=process or f"worker {os.getpid()}",
        attributes=plan.attributes,
        shared=plan.shared,
    )
    if plan.knowledge:
        router.restore(plan.knowledge)
    return router


def recall_router(plan: RouterPlan) -> Router:
    """Return this process's router for the plan, as the last task left it."""
    key = (plan.where_id, plan.build)
    router = _routers.get(key)
    if router is None:
        _warm_up()
        router = make_router(plan)
        earlier = [known for (where_id, _), known in _routers if where_id == plan.where_id]
        if earlier and not plan.knowledge:
            router.restore(earlier[-1].snapshot())
        _routers.put(key, router)
    return router


def _warm_up() -> None:
    """Let PyArrow load pandas now: the first conversion does, and would be booked as its cost."""
    pa.array([True], type=pa.bool_()).to_pylist()


def run_task(plan: RouterPlan, batches: Iterator[Any]) -> Iterator[pa.Array]:
    """Route all batches of a task; the body of the iterator Arrow UDF.

    A note is sent with the batches 1, 2, 4, 8, ... and with the last, so that what is collected on
    the driver grows with the number of tasks and not with the number of rows. To know which batch
    is the last, one batch is read ahead.
    """
    end_quietly_when_unread()
    router = recall_router(plan)
    number, next_note = 0, 1
    try:
        batch = next(batches, None)
        while batch is not None:
            columns = batch if isinstance(batch, tuple) else (batch,)
            verdict = router.route(columns, _row_count(batch))
            batch = next(batches, None)
            number += 1
            note = None
            is_last = batch is None or _row_count(batch) == 0
            if len(verdict) and (number >= next_note or is_last):
                next_note *= 2
                note = WorkerNote.take(router, _process, is_last or number == 1)
            yield encode(verdict, note)
    finally:
        router.close()


def _row_count(batch: Any) -> int:
    return len(batch[0]) if isinstance(batch, tuple) else len(batch)
