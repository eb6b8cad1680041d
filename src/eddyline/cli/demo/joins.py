"""Part four: a join of three streams, and what it keeps, beside Spark's own chain of joins."""

from __future__ import annotations

import pathlib
from typing import Any

from rich.console import Console

from eddyline.bench.joins_spark import STORES, WINDOW, run_chain, run_engine, write_batches
from eddyline.report.document import Column, Table
from eddyline.report.text import render_block

STREAMS = 3
BATCHES = 4


def join_streams(console: Console, spark: Any, folder: pathlib.Path, rows: int) -> None:
    """Join three streams on one key, with an engine and with Spark, and compare their state."""
    console.print(
        f"\n[bold]A join of {STREAMS} streams, within {WINDOW.lower()}.[/bold]\n"
        f"An engine keeps each row once, for all queries. Spark also keeps the results\n"
        f"of every join but the last."
    )
    source = folder / "streams"
    with console.status(f"joining {STREAMS} streams ...") as status:
        write_batches(spark, str(source), STREAMS, BATCHES, rows)
        engine = run_engine(spark, str(source), STREAMS, [""])
        status.update("the same with Spark's own joins ...")
        chain = run_chain(spark, str(source), STREAMS, STORES["default"])
    names = {"engine": engine, "Spark's chain": chain}
    table = Table(
        (
            Column(""),
            Column("results", "right"),
            Column("rows in state", "right"),
            Column("MB", "right"),
            Column("s a micro-batch", "right"),
        ),
        [
            [
                name,
                f"{own.results:,}",
                f"{own.state_rows:,}",
                f"{own.state_bytes / 1e6:.1f}",
                f"{own.seconds:.1f}",
            ]
            for name, own in names.items()
        ],
    )
    console.print()
    console.print(render_block(table))
