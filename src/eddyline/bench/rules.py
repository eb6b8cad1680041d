"""Rules over a stream on Spark: an engine against what else a user could do.

Rows have five integer attributes, uniform in [0, 1000); a rule asks that some of them are in a
range. What is compared counts the matches of every rule: the engine, a table of rules that is
broadcast and joined by range conditions, a query for each rule, and one SELECT with all of them.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.bench.harness import Bench, local_spark, ratio

COLUMNS = ["a", "b", "c", "d", "e"]
VALUES = 1_000
SCHEMA = "id long, " + ", ".join(f"{name} int" for name in COLUMNS)

Rule = dict[str, tuple[int, int]]


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the comparisons on Spark by name."""
    measures = {
        "rules": _against_range_join,
        "many": _one_or_many,
        "ways": _ways_of_a_user,
        "effect": _time_to_effect,
    }
    return {name: _on_spark(bench, measure) for name, measure in measures.items()}


def _on_spark(
    bench: Bench, measure: Callable[[Bench, Any, pathlib.Path], None]
) -> Callable[[], None]:
    def run() -> None:
        with tempfile.TemporaryDirectory(prefix="eddyline-cacq-") as folder:
            measure(bench, local_spark(), pathlib.Path(folder))

    return run


def _rules(rng: np.random.Generator, count: int, widest: int) -> list[Rule]:
    """Rules: for some attributes, the range that a value must be in."""
    rules = []
    for _ in range(count):
        rule: Rule = {}
        while not rule:
            for name in COLUMNS:
                if rng.random() < 0.5:
                    low = int(rng.integers(0, VALUES))
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
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="events-", dir=folder))
        self._numbers = itertools.count()
        self._sources: dict[pathlib.Path, pathlib.Path] = {}
        rng = np.random.default_rng(seed)
        for part in range(2):
            table = pa.table(
                {
                    "id": pa.array(np.arange(rows // 2) + part * (rows // 2)),
                    **{
                        n: pa.array(rng.integers(0, VALUES, rows // 2), pa.int32()) for n in COLUMNS
                    },
                }
            )
            pq.write_table(table, self.folder / f"{part}.parquet")

    @property
    def frame(self) -> Any:
        """The rows as a table."""
        return self.spark.read.parquet(str(self.folder))

    def engine(self, rules: Mapping[str, str]) -> Any:
        """Return an engine that counts the matches of each rule, not started."""
        from eddyline.spark.engine.engine import Engine

        number = next(self._numbers)
        source = pathlib.Path(f"{self.folder}-source-{number}")
        source.mkdir()
        engine = Engine(self.spark, f"{self.folder}-engine-{number}")
        engine.stream("s", self.spark.readStream.schema(SCHEMA).parquet(str(source)))
        engine.add(rules, sink="count")
        self._sources[engine.path] = source
        return engine

    def arrive(self, engine: Any) -> None:
        """Let all rows arrive, once more."""
        for part in self.folder.glob("*.parquet"):
            path = self._sources[engine.path] / f"{next(self._numbers)}.parquet"
            os.link(part, path)
            os.utime(path)

    def go_on(self, engine: Any) -> Callable[[], None]:
        """Return a run of an engine over all rows, once more; the engine keeps what it has."""

        def run() -> None:
            self.arrive(engine)
            engine.start("available now").process_all_available()

        return run

    def range_join(self, rules: list[Rule]) -> Callable[[], None]:
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


def _against_range_join(bench: Bench, spark: Any, folder: pathlib.Path) -> None:
    rng = np.random.default_rng(bench.seed)
    sizes = ((1_000, 2_400_000), (10_000, 800_000))
    if bench.quick:
        sizes = ((200, 40_000), (1_000, 20_000))
    targets = {1_000: "at least 8; ", 10_000: "at least 25; "}
    for count, rows in sizes:
        rules = _rules(rng, count, widest=400)
        events = _Events(spark, folder, rows, bench.seed)
        with events.engine({f"r{n}": _sql(rule) for n, rule in enumerate(rules)}) as engine:
            seconds = bench.in_turn(
                f"{count:,} rules on Spark",
                {
                    "engine": events.go_on(engine),
                    "range join": events.range_join(rules),
                    "engine again": events.go_on(engine),
                },
            )
        bench.add(
            f"Spark: {count:,} rules: time, broadcast range join / engine",
            ratio(seconds["range join"], seconds["engine"]),
            "x",
            f"{targets.get(count, '')}{rows:,} rows, matches counted",
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


def _one_or_many(bench: Bench, spark: Any, folder: pathlib.Path) -> None:
    """A thousand queries of which few match, against one."""
    rng = np.random.default_rng(bench.seed + 1)
    events = _Events(spark, folder, 100_000 if bench.quick else 2_000_000, bench.seed)
    rules = _rules(rng, 1_000, widest=20)
    many = {f"r{n}": _sql(rule) for n, rule in enumerate(rules)}
    one = {"r0": many["r0"]}
    with events.engine(one) as alone, events.engine(many) as crowded:
        seconds = bench.in_turn(
            "1,000 queries or one",
            {
                "one": events.go_on(alone),
                "many": events.go_on(crowded),
                "one again": events.go_on(alone),
            },
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


def _ways_of_a_user(bench: Bench, spark: Any, folder: pathlib.Path) -> None:
    """What else a user could do with a hundred rules."""
    from pyspark.sql import functions as F

    count = 100
    rng = np.random.default_rng(bench.seed + 2)
    events = _Events(spark, folder, 60_000 if bench.quick else 400_000, bench.seed)
    rules = _rules(rng, count, widest=400)
    texts = {f"r{n}": _sql(rule) for n, rule in enumerate(rules)}
    conditions = [text.split(" WHERE ")[1] for text in texts.values()]

    def query_for_each() -> None:
        for condition in conditions:
            events.frame.filter(condition).count()

    def one_select() -> None:
        events.frame.select(
            *[F.count_if(F.expr(c)).alias(f"r{n}") for n, c in enumerate(conditions)]
        ).collect()

    with events.engine(texts) as engine:
        variants = {
            "engine": events.go_on(engine),
            "range join": events.range_join(rules),
            "a query for each": query_for_each,
            "one SELECT": one_select,
        }
        seconds = bench.in_turn(f"{count} rules, four ways", variants)
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
    events = _Events(spark, folder, 2_000, bench.seed)
    rules = {f"r{n}": _sql(rule) for n, rule in enumerate(_rules(rng, count, widest=400))}
    began = time.perf_counter()
    with events.engine(rules) as engine:
        bench.add(f"adding {count:,} queries at once", time.perf_counter() - began, "s")
        run = engine.start("50 milliseconds")
        events.arrive(engine)
        run.process_all_available()
        took_ms, batches = [], []
        with bench.progress("adding one query", 10) as advance:
            for n in range(10):
                before = max(batch.batch for batch in run.batches())
                began = time.perf_counter()
                engine.query(f"new{n}", "SELECT id FROM s WHERE a >= 0", sink="count")
                took_ms.append(1e3 * (time.perf_counter() - began))
                while engine.queries()[f"new{n}"].matched == 0:
                    events.arrive(engine)
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
