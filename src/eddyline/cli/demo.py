"""`eddyline demo`: a drifting stream, rows of several kinds, and a thousand queries at once."""

from __future__ import annotations

import logging
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eddyline.bench.harness import local_spark
from eddyline.errors import EddylineError
from eddyline.spark.common.predicates import udf
from eddyline.spark.engine.engine import Engine
from eddyline.spark.where.where import where
from eddyline.testing.synthetic import draw_answers
from eddyline.testing.texts import (
    TextPredicate,
    generate_texts,
    three_kinds,
    word_predicate,
    write_parquet,
)

PREDICATES = 4
PHASES = 3
MICRO_BATCHES = 12
RULES = 1_000
READINGS = 200_000
FREE_BYTES_MIN = 500_000_000


def run(rows: int, seed: int, html: pathlib.Path | None) -> None:
    """Generate data, run both, and show what happened."""
    console = Console()
    if shutil.disk_usage(tempfile.gettempdir()).free < FREE_BYTES_MIN:
        raise EddylineError(
            f"less than {FREE_BYTES_MIN // 10**6} MB free in {tempfile.gettempdir()}; free some "
            f"space there, or set TMPDIR to another folder"
        )
    console.print(
        f"[bold]One stream of {rows:,} texts, {PREDICATES} Python predicates, "
        f"{MICRO_BATCHES} micro-batches.[/bold]\n"
        f"After each third of the rows another predicate becomes the selective one."
    )
    with tempfile.TemporaryDirectory(prefix="eddyline-demo-") as folder:
        with console.status("generating texts ..."):
            predicates, source, best = _make_data(pathlib.Path(folder), rows, seed)
        with console.status("starting an embedded Spark ..."):
            spark = local_spark("2g")
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        try:
            _compare(console, spark, pathlib.Path(folder), source, predicates, best, html, seed)
            _find_classes(console, spark, pathlib.Path(folder), rows // 2, seed)
            _share_queries(console, spark, pathlib.Path(folder), seed)
        finally:
            spark.stop()


def _make_data(
    folder: pathlib.Path, rows: int, seed: int
) -> tuple[list[TextPredicate], str, list[str]]:
    rng = np.random.default_rng(seed)
    predicates = [word_predicate(number, extra_scans=2) for number in range(PREDICATES)]
    selective = [PREDICATES - 1, 1, 2]
    answers = []
    for phase in range(PHASES):
        selectivities = [0.85] * PREDICATES
        selectivities[selective[phase]] = 0.03
        answers.append(draw_answers(rng, rows // PHASES, selectivities, correlation=1))
    texts = generate_texts(rng, np.concatenate(answers))
    source = write_parquet(texts, folder / "texts", files=MICRO_BATCHES)
    return predicates, source, [predicates[s].__name__ for s in selective]


def _compare(
    console: Console,
    spark: Any,
    folder: pathlib.Path,
    source: str,
    predicates: list[TextPredicate],
    selective: list[str],
    html: pathlib.Path | None,
    seed: int,
) -> None:
    from pyspark.sql import functions as F

    def plain(df: Any) -> Any:
        condition = None
        for predicate in predicates:
            each = F.udf(predicate, "boolean")("text")
            condition = each if condition is None else condition & each
        return df.filter(condition)

    f = where(*[udf(predicate, "text") for predicate in predicates], name="demo", seed=seed)
    with console.status("warming both up ..."):
        first = spark.read.parquet(f"{source}/part-0.parquet").limit(2_000)
        for warm in (plain, where(*[udf(p, "text") for p in predicates])):
            first.transform(warm).count()
    results: dict[str, list[tuple[int, float]]] = {"Spark's filter": [], "Eddyline": []}
    with Live(console=console, refresh_per_second=8) as live:
        for name, how in (("Spark's filter", plain), ("Eddyline", f)):
            _stream(spark, folder, source, how, name, results, live)
    report = f.report()
    spark_s = sum(seconds for _, seconds in results["Spark's filter"])
    own_s = sum(seconds for _, seconds in results["Eddyline"])
    spark_rows = sum(kept for kept, _ in results["Spark's filter"])
    own_rows = sum(kept for kept, _ in results["Eddyline"])
    console.print(report)
    evaluations = report.evaluations_by_spark / max(report.evaluations, 1)
    console.print(
        f"\n[bold]The same {own_rows:,} rows, {evaluations:.1f} times fewer evaluations, "
        f"{spark_s / own_s:.1f} times faster[/bold] ({own_s:.1f} s instead of {spark_s:.1f} s).\n"
        f"The selective predicate was {', then '.join(selective)}: the order followed, see above."
    )
    if own_rows != spark_rows:
        raise EddylineError(f"Spark kept {spark_rows:,} rows and Eddyline {own_rows:,}")
    if html is not None:
        console.print(f"Report written to {report.to_html(html)}")


def _find_classes(console: Console, spark: Any, folder: pathlib.Path, rows: int, seed: int) -> None:
    """Rows of three kinds, each best served by another order: one order, then one for each."""
    console.print(
        f"\n[bold]{rows:,} texts of three kinds, 6 Python predicates.[/bold]\n"
        f"Each kind is dropped by other predicates, so that no single order suits all of them."
    )
    with console.status("generating texts ..."):
        path, passed = three_kinds(np.random.default_rng(seed), rows, folder / "kinds")
    texts = spark.read.parquet(path)
    given = [udf(word_predicate(number, extra_scans=2), "text") for number in range(6)]
    one_order = where(*given, policy="agreedy", name="one order", seed=seed)
    classes = where(*given, name="classes", seed=seed)
    seconds = {}
    with console.status("filtering with one order, then with classes ..."):
        for f in (one_order, classes):
            began = time.perf_counter()
            kept = texts.transform(f).count()
            seconds[f.name] = time.perf_counter() - began
            if kept != int(passed.all(axis=1).sum()):
                raise EddylineError(f"{f.name} kept {kept:,} rows; the texts say otherwise")
    console.print(classes.report())
    fewer = one_order.report().evaluations / max(classes.report().evaluations, 1)
    console.print(
        f"\n[bold]An order for each kind: {fewer:.1f} times fewer evaluations than one adaptive "
        f"order[/bold] ({seconds['classes']:.1f} s instead of {seconds['one order']:.1f} s). "
        f"Nobody said that the column kind matters."
    )


def _share_queries(console: Console, spark: Any, folder: pathlib.Path, seed: int) -> None:
    """A thousand alert rules over one stream, and queries that are added while it runs."""
    console.print(
        f"\n[bold]{RULES:,} alert rules over one stream of sensor readings.[/bold]\n"
        f"Every row is read once, however many queries there are; queries come and go meanwhile."
    )
    rng = np.random.default_rng(seed)
    source = folder / "readings"
    source.mkdir()
    with Engine(spark, folder / "engine", seed=seed) as engine:
        schema = "sensor int, lux int, celsius double"
        engine.stream("readings", spark.readStream.schema(schema).parquet(str(source)))
        engine.table("rooms", spark.createDataFrame([(7, "attic")], "sensor int, room string"))
        rules = {
            f"rule{n}": f"SELECT * FROM readings WHERE sensor = {rng.integers(0, 500)} "
            f"AND lux > {rng.integers(0, 1_000)} AND celsius < {rng.integers(10, 35)}"
            for n in range(RULES)
        }
        with console.status(f"adding {RULES:,} queries ..."):
            engine.add(rules, sink="count")
            _arrive(rng, source, READINGS // 10)
            run = engine.start("100 milliseconds")
            run.process_all_available()
        changes = {
            2: ("hot", "SELECT sensor, celsius FROM readings WHERE celsius > 39.9"),
            3: (
                "attic",
                "SELECT room, lux FROM readings r, rooms s WHERE r.sensor = s.sensor AND lux > 990",
            ),
        }
        for number in range(1, 6):
            if number in changes:
                name, sql = changes[number]
                began = time.perf_counter()
                engine.query(name, sql)
                took_ms = 1e3 * (time.perf_counter() - began)
                console.print(f"  + query {name}, in {took_ms:.0f} ms: {sql}", highlight=False)
            if number == 5:
                engine.drop("hot")
                console.print("  - query hot")
            _arrive(rng, source, READINGS)
            run.process_all_available()
            batch = run.batches()[-1]
            matched = {s.name: s.matched for s in engine.queries() if s.name in ("hot", "attic")}
            console.print(f"{batch}, {matched or ''}", highlight=False)
        row_us = 1e6 * batch.seconds / batch.rows
        console.print(run.results("attic").limit(3).toPandas().to_string(index=False))
        console.print(
            f"\n[bold]{len(engine.queries()):,} queries, {row_us:.1f} us a row[/bold], "
            f"{run.report().visits_per_row:.1f} shared operators visited by a row."
        )


def _arrive(rng: np.random.Generator, folder: pathlib.Path, rows: int) -> None:
    table = pa.table(
        {
            "sensor": pa.array(rng.integers(0, 500, rows), pa.int32()),
            "lux": pa.array(rng.integers(0, 1_000, rows), pa.int32()),
            "celsius": rng.uniform(10, 40, rows),
        }
    )
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
        path = pathlib.Path(partial) / "part.parquet"
        pq.write_table(table, path)
        path.rename(folder / f"{time.time_ns()}.parquet")


def _stream(
    spark: Any,
    folder: pathlib.Path,
    source: str,
    how: Callable[[Any], Any],
    name: str,
    results: dict[str, list[tuple[int, float]]],
    live: Live,
) -> None:
    """Run a stream with one file a micro-batch; show each as it is done."""
    stream = spark.readStream.schema("id long, text string").option("maxFilesPerTrigger", 1)
    query = (
        stream.parquet(source)
        .transform(how)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / f"checkpoint-{len(name)}"))
        .trigger(availableNow=True)
        .start()
    )
    is_active = True
    while is_active:
        is_active = query.isActive
        results[name] = [
            (progress.sink.numOutputRows, progress.durationMs["addBatch"] / 1e3)
            for progress in query.recentProgress
            if "addBatch" in progress.durationMs
        ]
        live.update(_table(results))
        time.sleep(0.2)
    query.awaitTermination()


def _table(results: dict[str, list[tuple[int, float]]]) -> Table:
    table = Table(title="seconds of each micro-batch", title_justify="left")
    table.add_column("")
    for number in range(MICRO_BATCHES):
        table.add_column(str(number + 1), justify="right")
    table.add_column("all", justify="right", style="bold")
    for name, batches in results.items():
        cells = [f"{seconds:.2f}" for _, seconds in batches]
        cells += [""] * (MICRO_BATCHES - len(cells))
        table.add_row(Text(name), *cells, f"{sum(s for _, s in batches):.1f}")
    return table
