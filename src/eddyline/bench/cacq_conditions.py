"""What OR, NOT and nested AND and OR cost in a worker, against the same comparisons with AND.

Measured is the CPU time of what a worker does with a task: from the Arrow arrays that Spark sends
to those that it gets back. Matches are only counted: how many there are depends on the condition.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

import functools
import operator
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.bench.cacq_workload import (
    BATCH_ROWS,
    COLUMNS,
    INTEGERS,
    VALUES,
    make_rows,
)
from eddyline.bench.harness import Bench, ratio
from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.domain import Text, Whole
from eddyline.operators.value_set import ValueSet
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

COUNTS = (800, 2_000, 5_000, 10_000)
SEEDS = 3
TIMES_MAX = 3
#: Values of a column where hardly two constants are equal.
MANY_VALUES = 10**8
#: Kinds of conditions; those with as many comparisons have the same ones.
CONDITIONS = {
    "AND": "{0} AND {1} AND {2} AND {3}",
    "OR": "{0} AND {1} AND ({2} OR {3})",
    "NOT": "{0} AND {1} AND NOT ({2} AND {3})",
    "OR of AND": "({0} AND {1}) OR ({2} AND {3})",
    "AND of OR": "({0} OR {1}) AND ({2} OR {3})",
    "nested": "{0} AND ({1} OR ({2} AND {3}))",
    "nested with NOT": "({0} AND ({1} OR {2})) OR NOT {3}",
}
_SIX = " OR ".join(f"({{{n}}} AND {{{n + 1}}})" for n in range(0, 12, 2))
_MANY_CONSTANTS = "many constants"
#: The same with more comparisons, so that columns repeat, and with lists and texts.
MORE_CONDITIONS = {
    "three alternatives of two": "({0} AND {1}) OR ({2} AND {3}) OR ({4} AND {5})",
    "three clauses of two": "({0} OR {1}) AND ({2} OR {3}) AND ({4} OR {5})",
    "NOT over nested": "{0} AND NOT (({1} AND ({2} OR NOT {3})) OR ({4} AND {5}))",
    "six alternatives of two": _SIX,
    f"six alternatives of two, {_MANY_CONSTANTS}": _SIX,
    "IN and text": "({0} AND {1}) OR ({2} AND NOT {3})",
}
#: Queries of all kinds with four comparisons, each of a random one.
MIXED = "mixed"
_IN_AND_TEXT = "IN and text"
_TEXTS = ["t", "u"]
_TEXT_VALUES = [f"word {n:03}" for n in range(1_000)]
_LIST_LENGTH = 4
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WHOLE = Whole()
_TEXT = Text()
_POSITIVE = _WHOLE.compare(">", 0)


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiment by name."""
    return {"conditions": lambda: _conditions(bench)}


def _conditions(bench: Bench) -> None:
    counts = (200, 800) if bench.quick else COUNTS
    for count in counts:
        _compare_kinds(
            bench, count, "AND", [kind for kind in CONDITIONS if kind != "AND"] + [MIXED]
        )
        for kind in MORE_CONDITIONS:
            _compare_kinds(bench, count, f"AND, {kind}", [kind])


def _compare_kinds(bench: Bench, count: int, joined: str, kinds: Sequence[str]) -> None:
    """Compare queries of some kinds with those that join the same comparisons by AND."""
    seeds = range(bench.seed, bench.seed + (1 if bench.quick else SEEDS))
    ratios: dict[str, list[float]] = {}
    cost_us = []
    for seed in seeds:
        tasks = {
            kind: make_task(condition_queries(kind, count, seed), f"{kind} {count} {seed}")
            for kind in (joined, *kinds)
        }
        control = condition_queries(joined, count, seed)
        tasks["control"] = make_task(control, f"control {joined} {count} {seed}")
        columns = _columns(np.random.default_rng(seed), _values(joined))
        runs = {kind: _bind(task, columns) for kind, task in tasks.items()}
        what = f"{count:,} queries, {', '.join(kinds)}, seed {seed}"
        seconds = bench.in_turn(what, runs, clock=time.process_time)
        cost_us.append(1e6 * statistics.median(seconds[joined]) / BATCH_ROWS)
        for kind in tasks:
            ratios.setdefault(kind, []).append(ratio(seconds[kind], seconds[joined]))
    controls = ratios["control"]
    bench.add(f"{count:,} queries, {joined}: CPU of a row", statistics.median(cost_us), "us")
    for kind in kinds:
        written = (CONDITIONS | MORE_CONDITIONS).get(kind, "each query of a random kind")
        bench.add(
            f"{count:,} queries, {kind}: CPU of a row, times that with AND",
            max(ratios[kind]),
            "x",
            f"at most {TIMES_MAX}; the highest of {len(seeds)} seeds, lowest "
            f"{min(ratios[kind]):.2f}; AND against itself {min(controls):.2f} to "
            f"{max(controls):.2f}; {written}",
        )


def _values(kind: str) -> int:
    """Return how many values, and constants, columns of integers have."""
    return MANY_VALUES if kind.endswith(_MANY_CONSTANTS) else VALUES


def _columns(rng: np.random.Generator, values: int) -> list[pa.Array]:
    """Return the columns of a batch: integers, and texts."""
    texts = [
        pa.array(np.array(_TEXT_VALUES)[rng.integers(0, len(_TEXT_VALUES), BATCH_ROWS)])
        for _ in _TEXTS
    ]
    return [*make_rows(rng, BATCH_ROWS, values=values).columns, *texts]


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
    from pyspark.sql.types import LongType, StringType

    from eddyline.ordering.tickets import Tickets
    from eddyline.spark.engine.plans import EddyPlan, StreamPlan
    from eddyline.spark.engine.stream_history import StreamHistory
    from eddyline.spark.engine.worker import run_task

    history = StreamHistory[SharedQuery]().advance(1, {query.number: query for query in queries})
    types = tuple(
        [(name, LongType()) for name in COLUMNS] + [(name, StringType()) for name in _TEXTS]
    )
    domains = {**INTEGERS, **dict.fromkeys(_TEXTS, _TEXT)}
    positions = {name: position for position, (name, _) in enumerate(types)}
    stream = StreamPlan(domains, history, types, positions, {})
    plan = EddyPlan(run_id, 1, (stream,), Tickets(), "UTC", True, seed=0)

    def run(columns: Sequence[pa.Array]) -> None:
        source = pa.array(np.zeros(len(columns[0]), dtype=np.int32))
        for _ in run_task(plan, iter([(source, *columns)])):
            pass

    return run


def condition_queries(kind: str, count: int, seed: int) -> list[SharedQuery]:
    """Return random queries with the condition that is asked for, or mixed ones.

    Those with as many comparisons have the same ones. A kind is compiled once, and others put in
    place of its comparisons: that is much faster.

    Parameters
    ----------
    kind
        Of `CONDITIONS` or `MORE_CONDITIONS`, or `MIXED`. "AND, " and a kind: its comparisons,
        joined by AND.
    count
        Number of queries.
    seed
        Of what is random.

    """
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(seed).choice(list(CONDITIONS), count).tolist()
    comparing = _comparing_texts if kind.endswith(_IN_AND_TEXT) else _comparing
    queries = []
    for number in range(count):
        compiled, places = _compiled(kinds[number] if kind == MIXED else kind)
        comparisons = comparing(rng, places, _values(kind))
        accepts = _replaced(compiled.accepts, comparisons, operator.and_)
        clauses = []
        for clause in compiled.clauses:
            alternatives = _replaced(clause.accepts, comparisons, operator.or_)
            terms = [_replaced(term, comparisons, operator.and_) for term in clause.terms]
            for term in terms:  # those that are on one column now
                if len(term) == 1:
                    _merge(alternatives, *term.popitem(), operator.or_)
            joint = tuple(term for term in terms if term)
            if len(alternatives) == 1 and not joint:
                _merge(accepts, *alternatives.popitem(), operator.and_)
            else:
                clauses.append(Clause(alternatives, terms=joint))
        queries.append(SharedQuery(number, accepts, clauses=tuple(clauses), is_stored=False))
    return queries


def _comparing(rng: np.random.Generator, places: int, values: int) -> list[tuple[str, ValueSet]]:
    """Return random comparisons; a column repeats only when all others were compared too."""
    drawn = [rng.permutation(COLUMNS).tolist() for _ in range(-(-places // len(COLUMNS)))]
    names = [name for each in drawn for name in each][:places]
    signs = rng.choice(list(_OPPOSITE), places).tolist()
    constants = rng.integers(0, values, places).tolist()
    return [
        (name, _WHOLE.compare(sign, constant))
        for name, sign, constant in zip(names, signs, constants, strict=True)
    ]


def _comparing_texts(
    rng: np.random.Generator, places: int, values: int
) -> list[tuple[str, ValueSet]]:
    """Return random comparisons: a text, a list of integers, a list of texts and an integer."""
    words = rng.choice(_TEXT_VALUES, _LIST_LENGTH + 1).tolist()
    integers = rng.permutation(COLUMNS).tolist()
    texts = rng.permutation(_TEXTS).tolist()
    return [
        (texts[0], _TEXT.compare("=", words[0])),
        (integers[0], _WHOLE.equal_to_any(rng.integers(0, values, _LIST_LENGTH).tolist())),
        (texts[1], _TEXT.equal_to_any(words[1:])),
        (integers[1], _WHOLE.compare(">", int(rng.integers(0, values)))),
    ][:places]


@functools.cache
def _compiled(kind: str) -> tuple[SharedQuery, int]:
    """Return a query of a kind whose comparisons are `p0 > 0`, `p1 > 0` ..., and their number."""
    base = kind.removeprefix("AND, ")
    condition = (CONDITIONS | MORE_CONDITIONS)[base]
    places = len(set(re.findall(r"{\d+}", condition)))
    if base != kind:
        condition = " AND ".join(f"{{{n}}}" for n in range(places))
    schemas = Schemas({"s": {f"p{n}": "int" for n in range(places)}})
    written = condition.format(*[f"p{n} > 0" for n in range(places)])
    query = parse(f"SELECT p0 FROM s WHERE {written}", schemas)
    return query.shared(0, is_stored=False), places


def _replaced(
    accepts: Mapping[str, ValueSet],
    comparisons: Sequence[tuple[str, ValueSet]],
    combine: Callable[[ValueSet, ValueSet], ValueSet],
) -> dict[str, ValueSet]:
    """Return other comparisons in the places of the compiled ones."""
    replaced: dict[str, ValueSet] = {}
    for place, values in accepts.items():
        name, own = comparisons[int(place[1:])]
        _merge(replaced, name, own if values == _POSITIVE else ~own, combine)
    return replaced


def _merge(
    accepts: dict[str, ValueSet],
    name: str,
    values: ValueSet,
    combine: Callable[[ValueSet, ValueSet], ValueSet],
) -> None:
    accepts[name] = combine(accepts[name], values) if name in accepts else values
