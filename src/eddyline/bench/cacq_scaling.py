"""How the shared eddy scales: size of a row's state, sharing, sources, cost and memory.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.2.4 to
3.2.8: figures 4 and 6, table 2.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from eddyline.bench import driver_memory
from eddyline.bench.cacq_workload import (
    BATCH_ROWS,
    COLUMNS,
    INTEGERS,
    POSITIONS,
    VALUES,
    above,
    make_eddy,
    make_rows,
    random_queries,
)
from eddyline.bench.harness import Bench, ratio
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import Batch
from eddyline.operators.domain import Floating
from eddyline.testing.memory import array_bytes

SOURCES = (1, 5, 20)
SOURCE_QUERIES = 20


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiments by name."""
    return {
        "size": lambda: _tuple_size(bench),
        "shared": lambda: _shared_or_separate(bench),
        "sources": lambda: _sources(bench),
        "cost": lambda: _cost_per_row(bench),
        "memory": lambda: _memory(bench),
    }


# --- figures 4 and 6 ---------------------------------------------------------------------------


def _tuple_size(bench: Bench) -> None:
    """Five queries, with ever more room for others in every row's bitmap."""
    rng = np.random.default_rng(bench.seed)
    batch = make_rows(rng, BATCH_ROWS)
    eddies = {}
    for bits in (64, 640, 3_200, 32_000):
        eddy = make_eddy(random_queries(np.random.default_rng(1), 5, INTEGERS))
        fillers = {slot: SharedQuery(slot, above({"a": 50})) for slot in range(5, bits)}
        eddy.add(fillers)
        eddy.drop(fillers)
        eddy.bind(POSITIONS, {})
        eddies[bits] = eddy
    seconds = bench.in_turn(
        "fig 4: size of a row's state",
        {str(bits): _repeat(eddy, batch, 10) for bits, eddy in eddies.items()},
    )
    for bits in eddies:
        bench.add(
            f"fig 4: rows a second with 5 queries and {bits:,} bits a row",
            10 * BATCH_ROWS / statistics.median(seconds[str(bits)]),
            "rows/s",
        )
    bench.add(
        "fig 4: time, 3,200 bits / 64 bits a row",
        ratio(seconds["3200"], seconds["64"]),
        "x",
        "64 bits",
        "more than 5, from 15 to 3,000 bits",
    )


def _repeat(eddy: SharedEddy, batch: Batch, times: int) -> Callable[[], None]:
    def run_eddy() -> None:
        for _ in range(times):
            eddy.run(batch)

    return run_eddy


def _shared_or_separate(bench: Bench) -> None:
    """One eddy for all queries against one for each of them."""
    batch = make_rows(np.random.default_rng(bench.seed), BATCH_ROWS)
    for count in (1, 5, 20, 50):
        queries = random_queries(np.random.default_rng(1), count, INTEGERS)
        shared, separate = make_eddy(queries), [make_eddy([query]) for query in queries]

        def run_separate(eddies: list[SharedEddy] = separate) -> None:
            for eddy in eddies:
                eddy.run(batch)

        seconds = bench.in_turn(
            f"fig 6 a: {count} queries",
            {"shared": _repeat(shared, batch, 1), "separate": run_separate},
        )
        bench.add(
            f"fig 6 a: {count} queries: rows a second, one eddy for all",
            BATCH_ROWS / statistics.median(seconds["shared"]),
            "rows/s",
            f"an eddy for each: {BATCH_ROWS / statistics.median(seconds['separate']):,.0f} rows/s",
        )
        bench.add(
            f"fig 6 a: {count} queries: time, an eddy for each / one for all",
            ratio(seconds["separate"], seconds["shared"]),
            "x",
            "one eddy",
            "2 at 5 queries" if count == 5 else None,
        )


def _sources(bench: Bench) -> None:
    """Twenty queries with one predicate each, over ever more sources; each has queries.

    As in the paper, what counts are rows that come out: a row that three queries match is three.
    """
    batch = make_rows(np.random.default_rng(bench.seed), BATCH_ROWS)
    runs: dict[str, Callable[[], None]] = {}
    matches: dict[str, int] = {}
    for sources in SOURCES:
        eddies = [make_eddy(queries) for queries in queries_by_source(sources)]
        for eddy in eddies:
            eddy.run(batch)
        matches[str(sources)] = sum(sum(eddy.take_counts().values()) for eddy in eddies)

        def run_all(eddies: list[SharedEddy] = eddies) -> None:
            for eddy in eddies:
                eddy.run(batch)

        runs[str(sources)] = run_all
    seconds = bench.in_turn("fig 6 b: sources", runs)
    for sources in SOURCES:
        bench.add(
            f"fig 6 b: 20 queries over {sources} sources: rows a second that come out",
            matches[str(sources)] / statistics.median(seconds[str(sources)]),
            "rows/s",
            f"{matches[str(sources)] / (sources * BATCH_ROWS):.1f} for each row that comes in",
            "falls" if sources > 1 else None,
        )


def queries_by_source(sources: int) -> list[list[SharedQuery]]:
    """Return twenty queries over column a, at random over the sources, none without a query."""
    rng = np.random.default_rng(2)
    source_of = np.append(np.arange(sources), rng.integers(0, sources, SOURCE_QUERIES - sources))
    bounds = rng.integers(0, VALUES, SOURCE_QUERIES)
    return [
        [
            SharedQuery(int(n), above({"a": int(bounds[n])}), is_stored=False)
            for n in np.flatnonzero(source_of == source)
        ]
        for source in range(sources)
    ]


# --- cost and memory ---------------------------------------------------------------------------


def _cost_per_row(bench: Bench) -> None:
    counts = (1, 1_000, 10_000) if bench.quick else (1, 100, 1_000, 10_000, 100_000)
    limits = {1_000: 2, 10_000: 10, 100_000: 100}
    rng = np.random.default_rng(bench.seed)
    for kind, domains in (
        ("integers", INTEGERS),
        ("all constants different", {name: Floating() for name in COLUMNS}),
    ):
        batch = make_rows(rng, BATCH_ROWS, floats=kind != "integers")
        for count in counts:
            queries = random_queries(rng, count, domains)
            began = time.perf_counter()
            eddy = make_eddy(queries, domains)
            built_s = time.perf_counter() - began
            seconds = bench.in_turn(f"{count:,} queries, {kind}", {"eddy": _repeat(eddy, batch, 1)})
            bench.add(
                f"{count:,} queries, {kind}: cost of a row",
                1e6 * statistics.median(seconds["eddy"]) / BATCH_ROWS,
                "us",
                f"limit {limits[count]} us" if count in limits else None,
            )
            bench.add(f"{count:,} queries, {kind}: building the eddy", built_s, "s")
            own = SharedQuery(10**9, queries[0].accepts)
            began = time.perf_counter()
            eddy.add({count: own})
            bench.add(
                f"{count:,} queries, {kind}: adding one more to the eddy",
                1e3 * (time.perf_counter() - began),
                "ms",
            )


def _memory(bench: Bench) -> None:
    """Table 2's scenario: 5 sources of 3 attributes, 20,000 queries each, 1.5 filters a query."""
    per_source = 2_000 if bench.quick else 20_000
    rng = np.random.default_rng(bench.seed)
    names = COLUMNS[:3]
    domains = {name: Floating() for name in names}
    total = arrays = words = 0
    with bench.progress("memory", 5) as advance:
        for _ in range(5):
            queries = []
            for number in range(per_source):
                some = rng.choice(names, 1 + int(rng.random() < 0.5), replace=False)
                accepts = {
                    str(name): domains[str(name)].compare(
                        ("<", "<=", ">", ">=")[rng.integers(4)], float(rng.random() * VALUES)
                    )
                    for name in some
                }
                queries.append(SharedQuery(number, accepts))
            gc.collect()
            tracemalloc.start()
            eddy = SharedEddy(domains, seed=0)
            eddy.add(dict(enumerate(queries)))
            gc.collect()
            total += tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            arrays += array_bytes(eddy)
            words = eddy.words
            advance()
    bench.add(
        f"memory of {5 * per_source:,} queries over 5 sources, in a worker",
        total / 1e6,
        "MB",
        f"all constants different; {arrays / 1e6:.2f} MB of it arrays. The paper's sum leaves out "
        f"its predicates",
        "6.83",
    )
    bench.add("memory of a row that is being worked on", words * 8 / 1e3, "kB", None, "2.5")
    for kind in driver_memory.KINDS:
        count = 2_000 if bench.quick else driver_memory.COUNT
        bench.add(
            f"memory of a query on the driver, beside its text: {kind}",
            driver_memory.driver_bytes(count, kind),
            "bytes",
            f"{count:,} queries: name, catalogue entry, compiled form and bit, and as they are "
            "shipped to workers, with all mappings by number; not in the paper's sum",
        )
