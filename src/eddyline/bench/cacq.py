"""`eddyline bench cacq`: the experiments of the paper on CACQ, and rules on Spark.

The stream is the paper's: five integer attributes a to e, uniform in [0, 100). Random queries have a
predicate on each attribute with a chance of one half, one of <, <=, >, >= with a random constant.
"""

from __future__ import annotations

import itertools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.bench.harness import Bench, local_spark, ratio
from eddyline.fabric.flow import Flow
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.domain import Domain, Floating, Whole
from eddyline.ordering import Policy, make_policy
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.tickets import Tickets
from eddyline.sql import StandingQuery

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

    def learn(self, evidence: Evidence) -> Change | None:
        """Draw the order of the next batch."""
        self.order = tuple(self.rng.permutation(self.filters).tolist())
        return None


def run(bench: Bench, rounds: int) -> None:
    """Run all experiments and note their numbers."""
    _filters_visited(bench)
    _ticket_shares(bench)
    _tuple_size(bench, rounds)
    _shared_or_separate(bench, rounds)
    _sources(bench, rounds)
    _cost_per_row(bench, rounds)
    _memory(bench)
    spark = local_spark()
    try:
        with tempfile.TemporaryDirectory(prefix="eddyline-cacq-") as folder:
            _on_spark(bench, spark, pathlib.Path(folder), min(rounds, 3))
    finally:
        spark.stop()


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
        accepts = {}
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
        **{name: make_policy(name) for name in ("agreedy", "independent", "lottery")},
        "the best order": make_policy("as_written"),
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


def _tuple_size(bench: Bench, rounds: int) -> None:
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
        rounds,
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


def _shared_or_separate(bench: Bench, rounds: int) -> None:
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
            rounds,
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


def _sources(bench: Bench, rounds: int) -> None:
    """Twenty queries with one predicate each, over ever more sources."""
    batch = _rows(np.random.default_rng(bench.seed), BATCH_ROWS)
    flows: dict[str, Callable[[], None]] = {}
    for sources in (1, 5, 20):
        rng = np.random.default_rng(2)
        of = rng.integers(0, sources, 20)
        own = [
            [
                StandingQuery(n, _above({"a": int(rng.integers(0, VALUES))}))
                for n in np.flatnonzero(of == source)
            ]
            for source in range(sources)
        ]
        made = [_flow(queries) for queries in own]

        def run_all(made: list[Flow] = made) -> None:
            for flow in made:
                flow.run(batch)

        flows[str(sources)] = run_all
    seconds = bench.in_turn("fig 6 b: sources", flows, rounds)
    for sources in (1, 5, 20):
        bench.add(
            f"fig 6 b: 20 queries over {sources} sources: rows a second",
            sources * BATCH_ROWS / statistics.median(seconds[str(sources)]),
            "rows/s",
        )


# --- cost and memory ---------------------------------------------------------------------------


def _cost_per_row(bench: Bench, rounds: int) -> None:
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
            seconds = bench.in_turn(
                f"{count:,} queries, {kind}", {"flow": _repeat(flow, batch, 1)}, rounds
            )
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
    total, words = 0, 0
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
            flow = Flow(domains, seed=0)
            flow.add(queries)
            total += flow.size_bytes
            words = flow.words
            advance()
    bench.add(
        f"memory of {5 * per_source:,} queries over 5 sources",
        total / 1e6,
        "MB",
        "all constants different; the paper's sum leaves out its predicates",
        "6.83",
    )
    bench.add("memory of a row that is being worked on", words * 8 / 1e3, "kB", None, "2.5")


# --- on Spark ----------------------------------------------------------------------------------


def _rules(rng: np.random.Generator, count: int, widest: int) -> list[dict[str, tuple[int, int]]]:
    """Rules: for some attributes, the range that a value must be in."""
    rules = []
    for _ in range(count):
        rule: dict[str, tuple[int, int]] = {}
        while not rule:
            for name in COLUMNS:
                if rng.random() < 0.5:
                    low = int(rng.integers(0, 1_000))
                    rule[name] = (low, low + int(rng.integers(1, widest)))
        rules.append(rule)
    return rules


def _sql(rule: Mapping[str, tuple[int, int]]) -> str:
    ranges = [f"{name} BETWEEN {low} AND {high}" for name, (low, high) in rule.items()]
    return f"SELECT id FROM s WHERE {' AND '.join(ranges)}"


class _Events:
    """Rows in Parquet, for Spark to read as a table and as a stream."""

    def __init__(self, spark: Any, folder: pathlib.Path, rows: int, seed: int) -> None:
        self.spark, self.rows = spark, rows
        self.folder = folder / f"events-{rows}"
        self.folder.mkdir()
        self._runs = itertools.count()
        rng = np.random.default_rng(seed)
        for part in range(2):
            table = pa.table(
                {
                    "id": pa.array(np.arange(rows // 2) + part * (rows // 2)),
                    **{n: pa.array(rng.integers(0, 1_000, rows // 2), pa.int32()) for n in COLUMNS},
                }
            )
            pq.write_table(table, self.folder / f"{part}.parquet")

    @property
    def frame(self) -> Any:
        """The rows as a table."""
        return self.spark.read.parquet(str(self.folder))

    def engine(self, rules: Mapping[str, str]) -> Any:
        """Return an engine that has the rules, not started."""
        from eddyline.spark.engine import Engine

        engine = Engine(self.spark, self.folder.parent / f"engine-{self.rows}-{next(self._runs)}")
        schema = "id long, " + ", ".join(f"{name} int" for name in COLUMNS)
        engine.stream("s", self.spark.readStream.schema(schema).parquet(str(self.folder)))
        engine.add(rules, sink="count")
        return engine

    def run_engine(self, engines: list[Any]) -> Callable[[], None]:
        """Return a run of the next engine: all rows, matches of each rule counted."""

        def run() -> None:
            with engines.pop() as engine:
                engine.start("available now").process_all_available()

        return run

    def range_join(self, rules: list[dict[str, tuple[int, int]]]) -> Callable[[], None]:
        """Return a run of the rules as a table, joined by their ranges, matches counted."""
        from pyspark.sql import functions as F

        table = [
            (n, *[bound for name in COLUMNS for bound in rule.get(name, (-(2**31), 2**31 - 1))])
            for n, rule in enumerate(rules)
        ]
        schema = "rule int, " + ", ".join(f"{n}_low int, {n}_high int" for n in COLUMNS)
        rule_frame = F.broadcast(self.spark.createDataFrame(table, schema))
        condition = " AND ".join(f"{n} BETWEEN {n}_low AND {n}_high" for n in COLUMNS)

        def run() -> None:
            self.frame.join(rule_frame, F.expr(condition)).groupBy("rule").count().collect()

        return run


def _on_spark(bench: Bench, spark: Any, folder: pathlib.Path, rounds: int) -> None:
    rng = np.random.default_rng(bench.seed)
    sizes = (
        ((200, 40_000), (1_000, 20_000)) if bench.quick else ((1_000, 800_000), (10_000, 200_000))
    )
    targets = {1_000: "at least 8", 10_000: "at least 25"}
    for count, rows in sizes:
        rules = _rules(rng, count, widest=400)
        events = _Events(spark, folder, rows, bench.seed)
        texts = {f"r{n}": _sql(rule) for n, rule in enumerate(rules)}
        engines = [events.engine(texts) for _ in range(2 * (rounds + 1))]
        seconds = bench.in_turn(
            f"{count:,} rules on Spark",
            {
                "engine": events.run_engine(engines),
                "range join": events.range_join(rules),
                "engine again": events.run_engine(engines),
            },
            rounds,
        )
        bench.add(
            f"Spark: {count:,} rules: time, broadcast range join / engine",
            ratio(seconds["range join"], seconds["engine"]),
            "x",
            f"{targets.get(count, '')} {rows:,} rows, matches counted".strip(),
        )
        bench.add(
            f"Spark: {count:,} rules: cost of a row",
            1e6 * statistics.median(seconds["engine"]) / rows,
            "us",
            f"range join {1e6 * statistics.median(seconds['range join']) / rows:.1f} us",
        )
        bench.add(
            f"Spark: {count:,} rules: engine / engine (control)",
            ratio(seconds["engine again"], seconds["engine"]),
            "x",
            "the same again",
        )
    _one_or_many(bench, spark, folder, rounds)
    _ways_of_a_user(bench, spark, folder, rounds)
    _time_to_effect(bench, spark, folder)


def _one_or_many(bench: Bench, spark: Any, folder: pathlib.Path, rounds: int) -> None:
    """A thousand queries of which few match, against one."""
    rng = np.random.default_rng(bench.seed + 1)
    events = _Events(spark, folder, 100_000 if bench.quick else 2_000_000, bench.seed)
    rules = _rules(rng, 1_000, widest=20)
    many = {f"r{n}": _sql(rule) for n, rule in enumerate(rules)}
    one = {"r0": many["r0"]}
    engines = {
        name: [events.engine(texts) for _ in range(rounds + 1)]
        for name, texts in (("one", one), ("many", many), ("one again", one))
    }
    seconds = bench.in_turn(
        "1,000 queries or one",
        {name: events.run_engine(own) for name, own in engines.items()},
        rounds,
    )
    bench.add(
        "Spark: time of 1,000 queries / of one, few matches",
        ratio(seconds["many"], seconds["one"]),
        "x",
        f"at most 3; {events.rows:,} rows",
    )
    bench.add(
        "Spark: one query / one query (control)",
        ratio(seconds["one again"], seconds["one"]),
        "x",
        "the same again",
    )


def _ways_of_a_user(bench: Bench, spark: Any, folder: pathlib.Path, rounds: int) -> None:
    """What else a user could do with a hundred rules."""
    from pyspark.sql import functions as F

    count = 100
    rng = np.random.default_rng(bench.seed + 2)
    events = _Events(spark, folder, 60_000 if bench.quick else 400_000, bench.seed)
    rules = _rules(rng, count, widest=400)
    texts = {f"r{n}": _sql(rule) for n, rule in enumerate(rules)}
    conditions = [text.split(" WHERE ")[1] for text in texts.values()]
    engines = [events.engine(texts) for _ in range(rounds + 1)]

    def query_for_each() -> None:
        for condition in conditions:
            events.frame.filter(condition).count()

    def one_select() -> None:
        events.frame.select(
            *[F.count_if(F.expr(c)).alias(f"r{n}") for n, c in enumerate(conditions)]
        ).collect()

    variants = {
        "engine": events.run_engine(engines),
        "range join": events.range_join(rules),
        "a query for each": query_for_each,
        "one SELECT": one_select,
    }
    seconds = bench.in_turn(f"{count} rules, four ways", variants, rounds)
    for name in list(variants)[1:]:
        bench.add(
            f"Spark: {count} rules: time, {name} / engine",
            ratio(seconds[name], seconds["engine"]),
            "x",
            f"{events.rows:,} rows",
        )


def _time_to_effect(bench: Bench, spark: Any, folder: pathlib.Path) -> None:
    """Adding one query to many that run."""
    count = 1_000 if bench.quick else 10_000
    rng = np.random.default_rng(bench.seed + 3)
    source = folder / "arriving"
    source.mkdir()
    events = _Events(spark, folder, 20_000, bench.seed)
    from eddyline.spark.engine import Engine

    schema = "id long, " + ", ".join(f"{name} int" for name in COLUMNS)
    with Engine(spark, folder / "effect") as engine:
        engine.stream("s", spark.readStream.schema(schema).parquet(str(source)))
        rules = {f"r{n}": _sql(rule) for n, rule in enumerate(_rules(rng, count, widest=400))}
        began = time.perf_counter()
        engine.add(rules, sink="count")
        bench.add(f"adding {count:,} queries at once", time.perf_counter() - began, "s")
        run = engine.start("50 milliseconds")
        events.frame.write.mode("append").parquet(str(source))
        run.process_all_available()
        took_ms, batches = [], []
        with bench.progress("adding one query", 10) as advance:
            for n in range(10):
                before = max(batch.batch for batch in run.batches())
                began = time.perf_counter()
                engine.query(f"new{n}", "SELECT id FROM s WHERE a >= 0", sink="count")
                took_ms.append(1e3 * (time.perf_counter() - began))
                while engine.queries()[f"new{n}"].matched == 0:
                    events.frame.limit(100).write.mode("append").parquet(str(source))
                    run.process_all_available()
                batches.append(max(batch.batch for batch in run.batches()) - before)
                advance()
        bench.add(
            f"adding one query to {count:,}: until it is in the catalogue",
            statistics.median(took_ms),
            "ms",
            "at most 50",
        )
        bench.add(
            f"adding one query to {count:,}: micro-batches until it has results",
            statistics.median(batches),
            "micro-batches",
            "1: the next one",
        )
