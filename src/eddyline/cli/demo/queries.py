"""Part three: a thousand alert rules over one stream, and queries that come and go."""

from __future__ import annotations

import pathlib
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from eddyline import Engine
from eddyline.report.document import Column, Table
from eddyline.report.text import plain, render_block

RULES = 1_000
ARRIVALS = 5
ADDED = {
    2: ("hot", "SELECT sensor, celsius FROM readings WHERE celsius > 39.9"),
    3: (
        "attic",
        "SELECT room, lux FROM readings r, rooms s WHERE r.sensor = s.sensor AND lux > 990",
    ),
}
DROPPED = {5: "hot"}
RESULTS_SHOWN = 3


def share_queries(console: Console, spark: Any, folder: pathlib.Path, rows: int, seed: int) -> None:
    """Run all rules as one Spark query; add and drop queries while it runs."""
    console.print(
        f"\n[bold]{RULES:,} alert rules over one stream of sensor readings.[/bold]\n"
        f"Each row is read once for all queries; queries are added and dropped meanwhile."
    )
    rng = np.random.default_rng(seed)
    source = folder / "readings"
    source.mkdir()
    with Engine(spark, folder / "engine", seed=seed) as engine:
        schema = "sensor int, lux int, celsius double"
        engine.stream("readings", spark.readStream.schema(schema).parquet(str(source)))
        engine.table("rooms", spark.createDataFrame([(7, "attic")], "sensor int, room string"))
        with console.status(f"adding {RULES:,} queries ..."):
            engine.add(_make_rules(rng), sink="count")
            _arrive(rng, source, rows // 10)
            run = engine.start("100 milliseconds")
            run.process_all_available()
        for number in range(1, ARRIVALS + 1):
            if number in ADDED:
                name, sql = ADDED[number]
                began = time.perf_counter()
                engine.query(name, sql)
                took_ms = 1e3 * (time.perf_counter() - began)
                console.print(plain(f"+ query {name}, added in {took_ms:.0f} ms: {sql}"))
            if number in DROPPED:
                engine.drop(DROPPED[number])
                console.print(plain(f"- query {DROPPED[number]}"))
            _arrive(rng, source, rows)
            run.process_all_available()
            console.print(plain(str(run.batches()[-1]) + _matched(engine)))
        _show_results(console, run.results("attic").limit(RESULTS_SHOWN).collect())
        last = run.batches()[-1]
        console.print(
            f"\n[bold]{len(engine.queries()):,} queries, {1e6 * last.seconds / last.rows:.1f} µs "
            f"a row[/bold]; a row visits {run.report().visits_per_row:.1f} shared operators."
        )


def _make_rules(rng: np.random.Generator) -> dict[str, str]:
    return {
        f"rule{number}": f"SELECT * FROM readings WHERE sensor = {rng.integers(0, 500)} "
        f"AND lux > {rng.integers(0, 1_000)} AND celsius < {rng.integers(10, 35)}"
        for number in range(RULES)
    }


def _arrive(rng: np.random.Generator, folder: pathlib.Path, rows: int) -> None:
    """Write readings aside, then rename: the stream never sees half a file."""
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


def _matched(engine: Engine) -> str:
    names = [name for name, _ in ADDED.values()]
    matched = [f"{each.name} {each.matched:,}" for each in engine.queries() if each.name in names]
    return f"; {', '.join(matched)}" if matched else ""


def _show_results(console: Console, rows: list[Any]) -> None:
    columns = (Column("room"), Column("lux", "right"))
    table = Table(columns, [[row["room"], str(row["lux"])] for row in rows], "results of attic")
    console.print()
    console.print(render_block(table))
