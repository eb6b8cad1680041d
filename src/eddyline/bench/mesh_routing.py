"""Routers of the experiments on Query Mesh, and what rows cost in them, counted.

An evaluation is one visit of one row to one operator, those for learning included. Evaluations do
not depend on the machine, nor on how much a router of ours takes to call an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.arrays import FloatArray
from eddyline.bench.eddy import TupleEddy
from eddyline.bench.mesh_data import Data
from eddyline.content import ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.operators import ColumnReader
from eddyline.ordering.static import best_ordering
from eddyline.testing.synthetic import SyntheticFilter

BATCH_ROWS = 4_096
EDDY_ROWS = 100  # of a batch that an eddy routes together
ARROW_ROWS = 10_000  # of a batch that Spark hands over
SAMPLE_ROWS = 1_000


class Step(NamedTuple):
    """Counts so far; `learning` are those of the evaluations that only served to learn."""

    rows: int
    evaluations: int
    results: int
    learning: int = 0


def make_router(
    data: Data,
    policy: RoutingPolicy,
    probes: Sequence[int] | int = 0,
    batch_rows: int = BATCH_ROWS,
    written: Sequence[int] | None = None,
    costs_us: Sequence[float] | FloatArray | None = None,
) -> Router:
    """Return a router of filters that answer as the data says.

    Parameters
    ----------
    data
        The rows.
    policy
        Of the router.
    probes
        What an evaluation costs, for all filters or for each.
    batch_rows
        Rows that are routed together.
    written
        The order in which the filters are given.
    costs_us
        Costs to assume; None: measured.

    """
    operators = data.passed.shape[1]
    each = [probes] * operators if isinstance(probes, int) else list(probes)
    filters = [SyntheticFilter(f"Op{n + 1}", n, each[n]) for n in written or range(operators)]
    names = [f"answer_{n}" for n in range(operators)] + list(data.attributes)
    return Router(
        filters,
        [ColumnReader(name) for name in names],
        policy,
        options=RouterOptions(
            seed=0, chunk_rows=batch_rows, costs_us=None if costs_us is None else tuple(costs_us)
        ),
        attributes={name: operators + n for n, name in enumerate(data.attributes)},
    )


def feed(router: Router, data: Data) -> Iterator[Router]:
    """Send all rows through a router, one Arrow batch at a time."""
    columns = data.columns
    for begin in range(0, len(data.passed), ARROW_ROWS):
        part = [column.slice(begin, ARROW_ROWS) for column in columns]
        router.route(part, len(part[0]))
        yield router


def learn_mesh(data: Data, probes: int = 0, policy: RoutingPolicy = "mesh") -> Sequence[Knowledge]:
    """Return what a mesh learns from a sample of the rows before the first is run."""
    operators = data.passed.shape[1]
    costs_us = None if probes else (1.0,) * operators
    router = make_router(data, policy, probes, costs_us=costs_us)
    rows = min(SAMPLE_ROWS, len(data.passed))
    sample = np.sort(np.random.default_rng(1).choice(len(data.passed), rows, replace=False))
    router.train([column.take(pa.array(sample)) for column in data.columns], rows)
    return router.snapshot()


def count_routed(data: Data, router: Router) -> Iterator[Step]:
    """Send all rows through a router; yield the counts after each Arrow batch."""
    totals = router.totals
    for _ in feed(router, data):
        learning = int(totals.profiled.sum())
        yield Step(totals.rows, int(totals.seen.sum()) + learning, totals.kept, learning)


def count_row_by_row(data: Data) -> Iterator[Step]:
    """Send all rows through an eddy that takes one at a time; yield the counts as they grow."""
    evaluations = kept = 0

    def predicate(answers: list[bool]) -> Callable[[int], bool]:
        def judge(row: int) -> bool:
            nonlocal evaluations
            evaluations += 1
            return answers[row]

        return judge

    operators = data.passed.shape[1]
    predicates = [predicate(data.passed[:, n].tolist()) for n in range(operators)]
    eddy = TupleEddy(predicates, [1.0] * operators, len(data.attributes))
    for begin in range(0, len(data.passed), ARROW_ROWS):
        part = [column.slice(begin, ARROW_ROWS) for column in data.attributes.values()]
        kept += len(eddy.run(begin, part))
        yield Step(min(begin + ARROW_ROWS, len(data.passed)), evaluations, kept)


def counted_variants(data: Data) -> Mapping[str, Iterator[Step]]:
    """Return the systems of the paper and Eddyline's `auto` over the same rows, to be counted."""
    operators = data.passed.shape[1]
    best = best_ordering(~data.passed[:100_000], np.ones(operators))

    def router(policy: RoutingPolicy, **more: object) -> Router:
        return make_router(data, policy, costs_us=(1.0,) * operators, **more)  # type: ignore[arg-type]

    return {
        "mesh": count_mesh(data, "mesh"),
        "single plan": count_routed(data, router("as_written", written=best)),
        "eddy, row by row": count_row_by_row(data),
        "eddy, batches of 100": count_routed(
            data, router(ContentOptions.paper(), batch_rows=EDDY_ROWS)
        ),
        "auto": count_routed(data, router("auto")),
    }


def count_mesh(data: Data, policy: RoutingPolicy) -> Iterator[Step]:
    """Send all rows through a mesh that was learnt from a sample of them; yield the counts."""
    router = make_router(data, policy, costs_us=(1.0,) * data.passed.shape[1])
    router.restore(learn_mesh(data, policy=policy))
    return count_routed(data, router)


def evaluations_a_row(steps: Iterator[Step]) -> float:
    """Return the evaluations that a row took, over all rows."""
    *_, last = steps
    return last.evaluations / last.rows
