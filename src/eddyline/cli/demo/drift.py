"""Part one: the same drifting stream through Spark's own filter and through Eddyline."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.live import Live

from eddyline import udf, where
from eddyline.errors import EddylineError
from eddyline.report.document import Column, Items, Table
from eddyline.report.text import plain, render_block
from eddyline.testing import (
    TextPredicate,
    draw_answers,
    generate_texts,
    word_predicate,
    write_parquet,
)

if TYPE_CHECKING:
    from eddyline import Where

PREDICATES = 4
SELECTIVE = (3, 1, 2)  # the predicate that drops most rows, phase by phase
MICRO_BATCHES = 4  # a phase


@dataclass
class Phase:
    """What was measured in one phase; None until it is over."""

    rows: int
    spark_s: float | None = None
    eddyline_s: float | None = None
    evaluations: int | None = None
    order: str = ""
    decision: str = ""


def follow_drift(
    console: Console,
    spark: Any,
    folder: pathlib.Path,
    rows: int,
    seed: int,
    html: pathlib.Path | None,
) -> None:
    """Run both, show the phases side by side, and check that both keep the same number of rows."""
    phases = [Phase(rows // len(SELECTIVE)) for _ in SELECTIVE]
    console.print(
        f"[bold]A stream of {rows:,} texts, {PREDICATES} Python predicates.[/bold]\n"
        f"In each of {len(phases)} phases another predicate is the selective one: "
        f"{', '.join(f'mark{number}' for number in SELECTIVE)}."
    )
    predicates = [word_predicate(number, extra_scans=2) for number in range(PREDICATES)]
    with console.status("generating texts ..."):
        sources = _write_phases(folder, phases, seed)
    f = where(*[udf(predicate, "text") for predicate in predicates], name="demo", seed=seed)
    plain_filter = _spark_filter(predicates)
    with console.status("warming both up ..."):
        first = spark.read.parquet(str(sources[0])).limit(2_000)
        for warm_up in (plain_filter, where(*[udf(each, "text") for each in predicates])):
            first.transform(warm_up).count()
    console.print()
    spark_kept = kept = 0
    with Live(console=console, refresh_per_second=4) as live:
        live.update(render_block(_phase_table(phases)))
        stream = _run_stream(spark, folder / "spark", sources, plain_filter)
        for phase, (phase_kept, seconds) in zip(phases, stream, strict=True):
            phase.spark_s = seconds
            spark_kept += phase_kept
            live.update(render_block(_phase_table(phases)))
        stream = _run_stream(spark, folder / "eddyline", sources, f)
        for phase, (phase_kept, seconds) in zip(phases, stream, strict=True):
            phase.eddyline_s = seconds
            kept += phase_kept
            _note_decisions(f, phases, phase)
            live.update(render_block(_phase_table(phases)))
    if kept != spark_kept:
        raise EddylineError(f"Spark kept {spark_kept:,} rows and Eddyline {kept:,}")
    _conclude(console, f, phases, kept)
    if html is not None:
        console.print(plain(f"Report written to {f.report().to_html(html)}"))


def _write_phases(folder: pathlib.Path, phases: list[Phase], seed: int) -> list[pathlib.Path]:
    """Write the texts of each phase into a folder of its own, one file for each micro-batch."""
    rng = np.random.default_rng(seed)
    sources = []
    for number, phase in enumerate(phases):
        selectivities = [0.85] * PREDICATES
        selectivities[SELECTIVE[number]] = 0.03
        answers = draw_answers(rng, phase.rows, selectivities, correlation=1)
        sources.append(folder / f"phase-{number}")
        write_parquet(generate_texts(rng, answers), sources[-1], files=MICRO_BATCHES)
    return sources


def _spark_filter(predicates: list[TextPredicate]) -> Callable[[Any], Any]:
    from pyspark.sql import functions as F

    def transform(df: Any) -> Any:
        first, *others = [F.udf(predicate, "boolean")("text") for predicate in predicates]
        for other in others:
            first = first & other
        return df.filter(first)

    return transform


def _run_stream(
    spark: Any, folder: pathlib.Path, sources: list[pathlib.Path], transform: Callable[[Any], Any]
) -> Iterator[tuple[int, float]]:
    """Let the phases arrive one after the other; yield rows kept and seconds of each."""
    arrived = folder / "arrived"
    arrived.mkdir(parents=True)
    query = (
        spark.readStream.schema("id long, text string")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(arrived))
        .transform(transform)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    reported = 0
    try:
        for source in sources:
            for path in sorted(source.iterdir()):
                # Spark ignores names that begin with an underscore, and a file is renamed at once.
                partial = shutil.copy2(path, arrived / f"_{source.name}-{path.name}")
                pathlib.Path(partial).rename(arrived / f"{source.name}-{path.name}")
            query.processAllAvailable()
            batches = [each for each in query.recentProgress if "addBatch" in each.durationMs]
            new, reported = batches[reported:], len(batches)
            yield (
                sum(each.sink.numOutputRows for each in new),
                sum(each.durationMs["addBatch"] for each in new) / 1e3,
            )
    finally:
        query.stop()


def _note_decisions(f: Where, phases: list[Phase], phase: Phase) -> None:
    """Book the evaluations since the last phase, the order in use and the newest decision."""
    report = f.report()
    phase.evaluations = report.evaluations - sum(each.evaluations or 0 for each in phases)
    phase.order = " → ".join(report.orders[0][0]) if report.orders else ""
    phase.decision = report.changes[-1].event.sentence() if report.changes else ""


def _phase_table(phases: list[Phase]) -> Table:
    columns = (
        Column("phase", "right"),
        Column("rows", "right"),
        Column("evaluations", "right"),
        Column("seconds", "right"),
        Column("order in use", fit="shorten"),
    )
    rows = [
        [
            str(number),
            f"{phase.rows:,}",
            f"{PREDICATES * phase.rows:,} → "
            + ("?" if phase.evaluations is None else f"{phase.evaluations:,}"),
            f"{_seconds(phase.spark_s)} → {_seconds(phase.eddyline_s)}",
            phase.order,
        ]
        for number, phase in enumerate(phases, start=1)
    ]
    return Table(columns, rows, title="Spark's own filter → Eddyline")


def _seconds(measured_s: float | None) -> str:
    return "?" if measured_s is None else f"{measured_s:.1f}"


def _conclude(console: Console, f: Where, phases: list[Phase], kept: int) -> None:
    decisions = list(dict.fromkeys(phase.decision for phase in phases if phase.decision))
    if decisions:
        console.print()
        console.print(render_block(Items("the last decision in each phase", decisions)))
    report = f.report()
    spark_s = sum(phase.spark_s or 0.0 for phase in phases)
    eddyline_s = sum(phase.eddyline_s or 0.0 for phase in phases)
    fewer = report.evaluations_by_spark / max(report.evaluations, 1)
    console.print(
        f"\n[bold]The same {kept:,} rows, {fewer:.1f} times fewer evaluations, "
        f"{spark_s / eddyline_s:.1f} times faster[/bold]\n"
        f"({eddyline_s:.1f} s instead of {spark_s:.1f} s)."
    )
