"""Joins of streams: SteMs against other indexes, orders and plans, and the engine against Spark.

Most parts count: candidates compared, rows stored. They do not depend on the machine. Those on
Spark are in `joins_spark.py`, those over files in `joins_state.py`; queries of NEXMark, flights and
shapes of joins run by `joins_versus.py`, Flink in `joins_flink.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray
from eddyline.bench import joins_agreedy
from eddyline.bench.harness import Bench, ratio
from eddyline.bench.joins_batches import much_state, nothing_to_output
from eddyline.bench.joins_cacq import functions, plans
from eddyline.bench.joins_cascade import cascade
from eddyline.bench.joins_classes import classes
from eddyline.bench.joins_flights import flights
from eddyline.bench.joins_flink import against_flink, is_asked_for
from eddyline.bench.joins_mesh import output_rate, produced
from eddyline.bench.joins_nexmark import nexmark
from eddyline.bench.joins_shapes import shapes
from eddyline.bench.joins_spark import against_spark, many_queries
from eddyline.bench.joins_state import growth, memory, written
from eddyline.bench.joins_tuning import tuning
from eddyline.bench.joins_workload import WINDOW_US, Fixed, discard, run_of, star
from eddyline.joins.combinations import Combinations
from eddyline.joins.join import Join
from eddyline.joins.keys import KeyColumn, key_column
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.ordering import Policy


def run(bench: Bench) -> None:
    """Run all parts, or one of them."""
    parts: dict[str, Callable[[], None]] = {}
    if (data := bench.data) is not None:
        parts["flights"] = lambda: flights(bench, data)
    if is_asked_for(bench):
        parts["flink"] = lambda: against_flink(bench)
    bench.run_parts(
        {
            "probe": lambda: _probe(bench),
            "order": lambda: _order(bench),
            "triangle": lambda: _triangle(bench),
            "sharing": lambda: _sharing(bench),
            "written": lambda: written(bench),
            "growth": lambda: growth(bench),
            "memory": lambda: memory(bench),
            "spark": lambda: against_spark(bench),
            "queries": lambda: many_queries(bench),
            "nothing": lambda: nothing_to_output(bench),
            "state": lambda: much_state(bench),
            "nexmark": lambda: nexmark(bench),
            "shapes": lambda: shapes(bench),
            "tuning": lambda: tuning(bench),
            "classes": lambda: classes(bench),
            "functions": lambda: functions(bench),
            "plans": lambda: plans(bench),
            "cascade": lambda: cascade(bench),
            **joins_agreedy.parts(bench),
            "mesh": lambda: output_rate(bench),
            "produced": lambda: produced(bench),
            **parts,
        }
    )


# --- counted, without Spark ----------------------------------------------------------------------


def _probe(bench: Bench) -> None:
    """Time probes of 10,000 rows, against a kept sorted NumPy index, and polars if it is here."""
    polars: Any = None
    with contextlib.suppress(ImportError):
        polars = importlib.import_module("polars")
    rng = np.random.default_rng(bench.seed)
    for stored in (100_000, 1_000_000):
        keys, probes = rng.integers(0, stored, stored), rng.integers(0, stored, 10_000)
        stem = SteM([run_of(keys)])
        searched = [key_column(pa.array(probes))]
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        variants: dict[str, Callable[[], object]] = {
            "SteM": functools.partial(_probe_stem, stem, searched),
            "sorted": functools.partial(_probe_sorted, order, ordered, probes),
        }
        if polars is not None:
            table = polars.DataFrame({"k": keys, "row": np.arange(stored)})
            frame = polars.DataFrame({"k": probes})
            variants["polars"] = functools.partial(frame.join, table, on="k")
        variants["again"] = variants["SteM"]
        seconds = bench.in_turn(f"probe {stored:,} rows", variants, rounds=4 * bench.rounds)
        rows = f"probe of 10,000 rows into {stored:,}"
        bench.add(
            f"{rows}: SteM / kept sorted NumPy index",
            ratio(seconds["SteM"], seconds["sorted"]),
            "x",
            f"control {ratio(seconds['again'], seconds['SteM']):.3f}",
        )
        if polars is not None:
            bench.add(
                f"{rows}: SteM / polars' join, which builds its table each time",
                ratio(seconds["SteM"], seconds["polars"]),
                "x",
                f"control {ratio(seconds['again'], seconds['SteM']):.3f}",
            )


def _probe_stem(stem: SteM, searched: Sequence[KeyColumn]) -> list[tuple[IntArray, IntArray]]:
    return list(stem.probe((0,), searched, with_new=True))


def _probe_sorted(
    order: IntArray, ordered: IntArray, probes: IntArray
) -> tuple[IntArray, IntArray]:
    begins = np.searchsorted(ordered, probes, side="left")
    counts = np.searchsorted(ordered, probes, side="right") - begins
    before = np.cumsum(counts) - counts
    rows = order[np.repeat(begins - before, counts) + np.arange(counts.sum())]
    return np.repeat(np.arange(len(probes)), counts), rows


def _candidates(
    queries: Sequence[JoinQuery], batches: Sequence[dict[int, Run]], policy: Policy | None = None
) -> int:
    """Return the number of stored rows that were compared with probes."""
    join = Join(queries, policy=policy, seed=0)
    for new in batches:
        join.run(new, discard)
    return sum(stem.counts.candidates for stem in join.stems.values())


def _order(bench: Bench) -> None:
    """Count candidates of a star join in which another SteM drops most every 5,000 rows."""
    rng = np.random.default_rng(bench.seed)
    rows, query = 120_000, star(3)
    keys = [rng.integers(0, 1000, rows) for _ in range(3)]
    for column, key in enumerate(keys):
        has_partner = np.where(np.arange(rows) // 5_000 % 3 == column, 0.1, 0.9)
        key[rng.random(rows) >= has_partner] += 10**6
    batches = [{n: run_of(np.arange(1000)) for n in range(3)}, {3: run_of(*keys)}]
    singles = [_candidates([query], batches, Fixed(o)) for o in itertools.permutations(range(3))]
    bench.add(
        "best order rotates every 5,000 rows: candidates, adaptive / best single order",
        _candidates([query], batches) / min(singles),
        "x",
        f"{min(singles):,} candidates",
    )


def _triangle(bench: Bench) -> None:
    """Count candidates of a triangle of streams, with a fixed spanning tree and without."""
    a, b, c = Role(0), Role(1), Role(2)
    ab, bc, ca = (
        frozenset([KeyRef(one, 0), KeyRef(other, 1)]) for one, other in ((a, b), (b, c), (c, a))
    )
    windows = dict.fromkeys([a, b, c], WINDOW_US)
    triangle = JoinQuery(0, (a, b, c), (ab, bc, ca), windows)
    tree = JoinQuery(0, (a, b, c), (ab, bc), windows)
    rows = 2_000 if bench.quick else 6_000
    for name, exponent in (("Zipf 0.8", 0.8), ("uniform", 0.0)):
        rng = np.random.default_rng(bench.seed)
        weights = np.arange(1, rows // 4 + 1) ** -exponent
        weights /= weights.sum()
        batches = [
            {n: run_of(*(rng.choice(len(weights), rows, p=weights) for _ in range(2)))}
            for n in range(3)
        ]
        own = _candidates([triangle], batches)
        bench.add(
            f"triangle of streams, {name}: candidates, fixed tree / per-row choice",
            _candidates([tree], batches) / own,
            "x",
            f"{own:,} candidates",
        )


def _sharing(bench: Bench) -> None:
    """Count the rows that 15 SteMs hold for all 455 three-way joins of their streams."""
    roles = [Role(stream) for stream in range(15)]
    queries = [
        JoinQuery(
            slot,
            chosen,
            (frozenset(KeyRef(role, 0) for role in chosen),),
            dict.fromkeys(chosen, WINDOW_US),
        )
        for slot, chosen in enumerate(itertools.combinations(roles, 3))
    ]
    rng = np.random.default_rng(bench.seed)
    rows = 200
    new = {role.stream: run_of(rng.integers(0, 400, rows), words=8) for role in roles}
    join = Join(queries)
    results = 0

    def count(found: Combinations) -> None:
        nonlocal results
        results += int(np.bitwise_count(found.bitmaps()).sum())

    join.run(new, count)
    stored = sum(map(len, join.stems.values()))
    bench.add(
        "15 streams, all 455 three-way queries: stored rows / rows that arrived",
        stored / (rows * len(roles)),
        "x",
        f"{results:,} results",
        "6.9 MB against 101 MB",
    )
