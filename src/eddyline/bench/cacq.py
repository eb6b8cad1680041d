"""`eddyline bench cacq`: the experiments of the paper on CACQ, and rules on Spark.

The stream is the paper's: five integer attributes a to e, uniform in [0, 100). Random queries have
a predicate on each attribute with a chance of one half: <, <=, > or >= and a random constant.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bench import rules
from eddyline.bench.harness import Bench, ratio
from eddyline.fabric.shared.eddy import Flow
from eddyline.fabric.shared.query import StandingQuery
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.domain import Domain, Floating, Whole
from eddyline.operators.value_set import ValueSet
from eddyline.ordering import POLICIES, AsWritten, Change, Evidence, Policy, Tickets

COLUMNS = ["a", "b", "c", "d", "e"]
PLACES = {name: at for at, name in enumerate(COLUMNS)}
READERS = [ColumnReader(name) for name in COLUMNS]
WHOLE = {name: Whole() for name in COLUMNS}
VALUES = 100
BATCH_ROWS = 4_096

TABLE_3 = [{"a": 90, "b": 70, "c": 50, "d": 30, "e": 10}]
WORKLOADS = {
    1: [{"a": 30}, {"b": 50}, {"c": 10}, {"d": 40}, {"e": 90}],
    2: [dict.fromkeys(COLUMNS[: n + 1], 10) for n in range(5)],
    3: [dict(zip(COLUMNS[: n + 1], (10, 30, 50, 70, 90), strict=False)) for n in range(5)],
}


class RandomOrder(Policy):
    """The paper's random scheme: every batch takes the operators in another order."""

    name = "random"
    on_trial = False
    draws_orders = True

    def learn(self, evidence: Evidence) -> Change | None:
        """Draw the order of the next batch."""
        self.order = tuple(self.rng.permutation(self.filters).tolist())
        return None


def run(bench: Bench) -> None:
    """Run all experiments and note their numbers."""
    bench.run_parts(
        {
            "visits": lambda: _filters_visited(bench),
            "tickets": lambda: _ticket_shares(bench),
            "size": lambda: _tuple_size(bench),
            "shared": lambda: _shared_or_separate(bench),
            "sources": lambda: _sources(bench),
            "cost": lambda: _cost_per_row(bench),
            "memory": lambda: _memory(bench),
            **rules.parts(bench),
        }
    )


# --- rows and queries --------------------------------------------------------------------------


def _rows(rng: np.random.Generator, rows: int, floats: bool = False) -> Batch:
    draw = (lambda: rng.random(rows) * VALUES) if floats else lambda: rng.integers(0, VALUES, rows)
    return Batch([pa.array(draw()) for _ in COLUMNS], READERS)


def _above(bounds: Mapping[str, int]) -> dict[str, Any]:
    return {name: WHOLE[name].compare(">", bound) for name, bound in bounds.items()}


def _random_queries(
    rng: np.random.Generator, count: int, domains: Mapping[str, Domain]
) -> list[StandingQuery]:
    queries = []
    for number in range(count):
        accepts: dict[str, ValueSet] = {}
        while not accepts:
            for name, domain in domains.items():
                if rng.random() < 0.5:
                    whole = isinstance(domain, Whole)
                    constant = int(rng.integers(0, VALUES)) if whole else rng.random() * VALUES
                    sign = ("<", "<=", ">", ">=")[rng.integers(4)]
                    accepts[name] = domain.compare(sign, constant)
        queries.append(StandingQuery(number, accepts, is_stored=False))
    return queries


def _flow(
    queries: Sequence[StandingQuery],
    domains: Mapping[str, Domain] = WHOLE,
    policy: Policy | None = None,
) -> Flow:
    flow = Flow(domains, policy, seed=0)
    flow.add(queries)
    flow.bind(PLACES, {})
    return flow


# --- figure 8 ----------------------------------------------------------------------------------


def _filters_visited(bench: Bench) -> None:
    """How many grouped filters the average row visits, for the queries of Table 3."""
    rows = 200_000 if bench.quick else 1_000_000
    queries = [
        StandingQuery(n, _above(dict(itertools.islice(TABLE_3[0].items(), n + 1))))
        for n in range(5)
    ]
    policies: dict[str, Policy] = {
        "tickets": Tickets(),
        "tickets, every batch drawn": Tickets(lottery_share=1.0),
        "random": RandomOrder(),
        **{
            name: make() for name, make in POLICIES.items() if name not in ("as_written", "tickets")
        },
        "the best order": AsWritten(),
    }
    papers = {"tickets": "1.3", "random": "3.2", "the best order": "1.15"}
    with bench.progress("fig 8: filters visited", len(policies)) as advance:
        for name, policy in policies.items():
            rng = np.random.default_rng(bench.seed)
            flow = _flow(queries, policy=policy)
            if name == "the best order":
                flow.policy.adopt([PLACES[o.name] for o in flow.operators])
            for _ in range(rows // BATCH_ROWS):
                flow.run(_rows(rng, BATCH_ROWS))
            bench.add(
                f"fig 8: filters visited by a row, {name}",
                flow.visits / flow.rows,
                "filters",
                "at most 5",
                papers.get(name),
            )
            advance()


# --- figure 9 ----------------------------------------------------------------------------------


def _ticket_shares(bench: Bench) -> None:
    """How many micro-batches after a new query the shares of tickets are steady."""
    batches, batch_rows = 12, 8 * BATCH_ROWS
    with bench.progress("fig 9: tickets", len(WORKLOADS)) as advance:
        for number, workload in WORKLOADS.items():
            rng = np.random.default_rng(bench.seed)
            flow = Flow(WHOLE, Tickets(), seed=0)
            longest = 0
            for n, bounds in enumerate(workload):
                flow.add([StandingQuery(n, _above(bounds))])
                flow.bind(PLACES, {})
                shares = []
                for _ in range(batches):
                    for _ in range(batch_rows // BATCH_ROWS):
                        flow.run(_rows(rng, BATCH_ROWS))
                    shares.append(_shares(flow))
                steady = np.mean(shares[batches // 2 :], axis=0)
                away = [float(np.abs(own - steady).max()) for own in shares]
                longest = max(
                    longest, 1 + max((at for at, d in enumerate(away) if d > 0.1), default=-1)
                )
            bench.add(
                f"fig 9: workload {number}: micro-batches until tickets are steady, longest",
                longest + 1,
                "micro-batches",
                "all shares within 0.1 of where they stay",
                "4 s",
            )
            advance()


def _shares(flow: Flow) -> np.ndarray:
    assert isinstance(flow.policy, Tickets)
    return flow.policy.shares()


# --- figures 4 and 6 ---------------------------------------------------------------------------


def _tuple_size(bench: Bench) -> None:
    """Five queries, with ever more room for others in every row's bitmap."""
    rng = np.random.default_rng(bench.seed)
    batch = _rows(rng, BATCH_ROWS)
    flows = {}
    for bits in (64, 640, 3_200, 32_000):
        flow = _flow(_random_queries(np.random.default_rng(1), 5, WHOLE))
        fillers = [StandingQuery(10 + n, _above({"a": 50})) for n in range(bits - 5)]
        flow.add(fillers)
        flow.drop([query.number for query in fillers])
        flow.bind(PLACES, {})
        flows[bits] = flow
    seconds = bench.in_turn(
        "fig 4: size of a row's state",
        {str(bits): _repeat(flow, batch, 10) for bits, flow in flows.items()},
    )
    for bits in flows:
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


def _repeat(flow: Flow, batch: Batch, times: int) -> Callable[[], None]:
    def run_flow() -> None:
        for _ in range(times):
            flow.run(batch)

    return run_flow


def _shared_or_separate(bench: Bench) -> None:
    """One flow for all queries against one for each of them."""
    batch = _rows(np.random.default_rng(bench.seed), BATCH_ROWS)
    for count in (1, 5, 20, 50):
        queries = _random_queries(np.random.default_rng(1), count, WHOLE)
        shared, separate = _flow(queries), [_flow([query]) for query in queries]

        def run_separate(flows: list[Flow] = separate) -> None:
            for flow in flows:
                flow.run(batch)

        seconds = bench.in_turn(
            f"fig 6 a: {count} queries",
            {"shared": _repeat(shared, batch, 1), "separate": run_separate},
        )
        bench.add(
            f"fig 6 a: {count} queries: rows a second, one flow for all",
            BATCH_ROWS / statistics.median(seconds["shared"]),
            "rows/s",
            f"a flow for each: {BATCH_ROWS / statistics.median(seconds['separate']):,.0f} rows/s",
        )
        bench.add(
            f"fig 6 a: {count} queries: time, a flow for each / one for all",
            ratio(seconds["separate"], seconds["shared"]),
            "x",
            "one flow",
            "2 at 5 queries" if count == 5 else None,
        )


def _sources(bench: Bench) -> None:
    """Twenty queries with one predicate each, over ever more sources."""
    batch = _rows(np.random.default_rng(bench.seed), BATCH_ROWS)
    flows: dict[str, Callable[[], None]] = {}
    for sources in (1, 5, 20):
        rng = np.random.default_rng(2)
        of = rng.integers(0, sources, 20)
        own = [
            [
                StandingQuery(int(n), _above({"a": int(rng.integers(0, VALUES))}))
                for n in np.flatnonzero(of == source)
            ]
            for source in range(sources)
        ]
        made = [_flow(queries) for queries in own]

        def run_all(made: list[Flow] = made) -> None:
            for flow in made:
                flow.run(batch)

        flows[str(sources)] = run_all
    seconds = bench.in_turn("fig 6 b: sources", flows)
    for sources in (1, 5, 20):
        bench.add(
            f"fig 6 b: 20 queries over {sources} sources: rows a second",
            sources * BATCH_ROWS / statistics.median(seconds[str(sources)]),
            "rows/s",
        )


# --- cost and memory ---------------------------------------------------------------------------


def _cost_per_row(bench: Bench) -> None:
    counts = (1, 1_000, 10_000) if bench.quick else (1, 100, 1_000, 10_000, 100_000)
    limits = {1_000: 2, 10_000: 10, 100_000: 100}
    rng = np.random.default_rng(bench.seed)
    for kind, domains in (
        ("integers", WHOLE),
        ("all constants different", {name: Floating() for name in COLUMNS}),
    ):
        batch = _rows(rng, BATCH_ROWS, floats=kind != "integers")
        for count in counts:
            queries = _random_queries(rng, count, domains)
            began = time.perf_counter()
            flow = _flow(queries, domains)
            built_s = time.perf_counter() - began
            seconds = bench.in_turn(f"{count:,} queries, {kind}", {"flow": _repeat(flow, batch, 1)})
            bench.add(
                f"{count:,} queries, {kind}: cost of a row",
                1e6 * statistics.median(seconds["flow"]) / BATCH_ROWS,
                "us",
                f"limit {limits[count]} us" if count in limits else None,
            )
            bench.add(f"{count:,} queries, {kind}: building the flow", built_s, "s")
            own = StandingQuery(10**9, queries[0].accepts)
            began = time.perf_counter()
            flow.add([own])
            bench.add(
                f"{count:,} queries, {kind}: adding one more to the flow",
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
                queries.append(StandingQuery(number, accepts))
            gc.collect()
            tracemalloc.start()
            flow = Flow(domains, seed=0)
            flow.add(queries)
            gc.collect()
            total += tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            arrays += flow.size_bytes
            words = flow.words
            advance()
    bench.add(
        f"memory of {5 * per_source:,} queries over 5 sources",
        total / 1e6,
        "MB",
        f"all constants different; {arrays / 1e6:.2f} MB of it arrays. The paper's sum leaves out "
        f"its predicates",
        "6.83",
    )
    bench.add("memory of a row that is being worked on", words * 8 / 1e3, "kB", None, "2.5")
