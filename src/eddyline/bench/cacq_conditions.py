"""What OR, NOT and nested AND and OR cost in a worker, against the same comparisons with AND.

Measured is the CPU time of what a worker does with a task: from the Arrow arrays that Spark sends
to those that it gets back. Matches are only counted: how many there are depends on the condition.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.bench.cacq_workload import (
    BATCH_ROWS,
    COLUMNS,
    INTEGERS,
    POSITIONS,
    VALUES,
    make_rows,
)
from eddyline.bench.harness import Bench, ratio
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.domain import Whole
from eddyline.operators.value_set import ValueSet
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

COUNTS = (800, 2_000, 5_000, 10_000)
SEEDS = 3
TIMES_MAX = 3
#: Kinds of conditions over the same four comparisons.
CONDITIONS = {
    "AND": "{0} AND {1} AND {2} AND {3}",
    "OR": "{0} AND {1} AND ({2} OR {3})",
    "NOT": "{0} AND {1} AND NOT ({2} AND {3})",
    "OR of AND": "({0} AND {1}) OR ({2} AND {3})",
    "AND of OR": "({0} OR {1}) AND ({2} OR {3})",
    "nested": "{0} AND ({1} OR ({2} AND {3}))",
    "nested with NOT": "({0} AND ({1} OR {2})) OR NOT {3}",
}
#: Queries of all kinds above, each of a random one.
MIXED = "mixed"
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WHOLE = Whole()
_POSITIVE = _WHOLE.compare(">", 0)


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiment by name."""
    return {"conditions": lambda: _conditions(bench)}


def _conditions(bench: Bench) -> None:
    counts = (200, 800) if bench.quick else COUNTS
    seeds = range(bench.seed, bench.seed + (1 if bench.quick else SEEDS))
    kinds = [kind for kind in (*CONDITIONS, MIXED) if kind != "AND"]
    for count in counts:
        ratios: dict[str, list[float]] = {}
        cost_us = []
        for seed in seeds:
            tasks = {
                kind: make_task(condition_queries(kind, count, seed), f"{kind} {count} {seed}")
                for kind in ("AND", *kinds)
            }
            control = condition_queries("AND", count, seed)
            tasks["AND, control"] = make_task(control, f"control {count} {seed}")
            columns = make_rows(np.random.default_rng(seed), BATCH_ROWS).columns
            runs = {kind: _bind(task, columns) for kind, task in tasks.items()}
            what = f"{count:,} queries with AND, OR, NOT, seed {seed}"
            seconds = bench.in_turn(what, runs, clock=time.process_time)
            cost_us.append(1e6 * statistics.median(seconds["AND"]) / BATCH_ROWS)
            for kind in tasks:
                ratios.setdefault(kind, []).append(ratio(seconds[kind], seconds["AND"]))
        controls = ratios["AND, control"]
        bench.add(f"{count:,} queries, AND: CPU of a row", statistics.median(cost_us), "us")
        for kind in kinds:
            bench.add(
                f"{count:,} queries, {kind}: CPU of a row, times that with AND",
                max(ratios[kind]),
                "x",
                f"at most {TIMES_MAX}; the highest of {len(seeds)} seeds, lowest "
                f"{min(ratios[kind]):.2f}; AND against itself {min(controls):.2f} to "
                f"{max(controls):.2f}; {CONDITIONS.get(kind, 'each query of a random kind')}",
            )


def _bind(
    task: Callable[[Sequence[pa.Array]], None], columns: Sequence[pa.Array]
) -> Callable[[], None]:
    return lambda: task(columns)


def make_task(queries: Sequence[SharedQuery], run_id: str) -> Callable[[Sequence[pa.Array]], None]:
    """Return a function that runs the task of a worker on the columns of a batch.

    Parameters
    ----------
    queries
        The queries.
    run_id
        Keeps the eddies of different tasks apart; a worker has room for 16.

    """
    from pyspark.sql.types import LongType

    from eddyline.ordering.tickets import Tickets
    from eddyline.spark.engine.plans import EddyPlan, StreamPlan
    from eddyline.spark.engine.stream_history import StreamHistory
    from eddyline.spark.engine.worker import run_task

    history = StreamHistory[SharedQuery]().advance(1, {query.number: query for query in queries})
    types = tuple((name, LongType()) for name in COLUMNS)
    stream = StreamPlan(INTEGERS, history, types, POSITIONS, {})
    plan = EddyPlan(run_id, 1, (stream,), Tickets(), "UTC", True, seed=0)

    def run(columns: Sequence[pa.Array]) -> None:
        source = pa.array(np.zeros(len(columns[0]), dtype=np.int32))
        for _ in run_task(plan, iter([(source, *columns)])):
            pass

    return run


def condition_queries(kind: str, count: int, seed: int) -> list[SharedQuery]:
    """Return random queries with the condition of `CONDITIONS` that is asked for, or mixed ones.

    Those of all kinds have the same comparisons. A kind is compiled once, and others put in place
    of its comparisons: that is much faster.
    """
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(seed).choice(list(CONDITIONS), count).tolist()
    queries = []
    for number in range(count):
        names = rng.permutation(COLUMNS)[:4].tolist()
        signs = rng.choice(list(_OPPOSITE), 4).tolist()
        constants = rng.integers(0, VALUES, 4).tolist()
        comparisons = list(zip(names, signs, constants, strict=True))
        compiled = _compiled(kinds[number] if kind == MIXED else kind)
        clauses = tuple(
            Clause(
                _replaced(clause.accepts, comparisons),
                terms=tuple(_replaced(term, comparisons) for term in clause.terms),
            )
            for clause in compiled.clauses
        )
        accepts = _replaced(compiled.accepts, comparisons)
        queries.append(SharedQuery(number, accepts, clauses=clauses, is_stored=False))
    return queries


@functools.cache
def _compiled(kind: str) -> SharedQuery:
    """Return a query of a kind whose comparisons are `p0 > 0` to `p3 > 0`."""
    schemas = Schemas({"s": {f"p{n}": "int" for n in range(4)}})
    condition = CONDITIONS[kind].format(*[f"p{n} > 0" for n in range(4)])
    return parse(f"SELECT p0 FROM s WHERE {condition}", schemas).shared(0, is_stored=False)


def _replaced(
    accepts: Mapping[str, ValueSet], comparisons: Sequence[tuple[str, str, int]]
) -> dict[str, ValueSet]:
    replaced = {}
    for place, values in accepts.items():
        name, sign, constant = comparisons[int(place[1:])]
        is_negated = values != _POSITIVE
        replaced[name] = _WHOLE.compare(_OPPOSITE[sign] if is_negated else sign, constant)
    return replaced
