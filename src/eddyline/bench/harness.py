"""What all benchmarks share: variants run in turn, a control, an environment, a JSON file.

Timings on a shared machine are noisy. Variants are therefore run in turn (A, B, A, B, ...) and
compared round by round; reported is the median of the ratios, beside that of a variant to itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

PACKAGES = ("eddyline", "pyspark", "pyarrow", "numpy", "pandas")


@dataclass(frozen=True)
class Result:
    """One measured number.

    Parameters
    ----------
    metric
        What was measured, in words.
    value, unit
        The number. Ratios of times have the unit "x".
    baseline
        What it was compared with, as a person would say it; or the baseline's own number.
    paper
        The figure that the paper reports for the same quantity, if it does.

    """

    metric: str
    value: float
    unit: str
    baseline: str | float | None = None
    paper: str | float | None = None


@dataclass
class Bench:
    """A benchmark's name, its results so far, and its progress bar."""

    name: str
    seed: int
    quick: bool = False
    console: Console = field(default_factory=lambda: Console(stderr=True))
    results: list[Result] = field(default_factory=list)

    def add(
        self,
        metric: str,
        value: float,
        unit: str,
        baseline: str | float | None = None,
        paper: str | float | None = None,
    ) -> None:
        """Note one result."""
        self.results.append(Result(metric, round(float(value), 6), unit, baseline, paper))

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a progress bar; yield the function that moves it on by one."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)

    def in_turn(
        self, what: str, variants: Mapping[str, Callable[[], object]], rounds: int
    ) -> dict[str, list[float]]:
        """Run the variants in turn, after one round that does not count; return their seconds.

        Each round begins with another variant: what one leaves behind hits all of them alike.
        """
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        names = list(variants)
        with self.progress(what, (rounds + 1) * len(variants)) as advance:
            for round_ in range(rounds + 1):
                first = round_ % len(names)
                for name in names[first:] + names[:first]:
                    began = time.perf_counter()
                    variants[name]()
                    if round_ > 0:
                        seconds[name].append(time.perf_counter() - began)
                    advance()
        return seconds

    def show(self) -> None:
        """Print the results as a table."""
        table = Table(title=f"eddyline bench {self.name}", title_justify="left")
        for heading in ("metric", "value", "unit", "baseline", "paper"):
            table.add_column(heading, justify="right" if heading == "value" else "left")
        for result in self.results:
            table.add_row(
                result.metric,
                f"{result.value:,.3f}" if abs(result.value) < 1000 else f"{result.value:,.0f}",
                result.unit,
                "" if result.baseline is None else str(result.baseline),
                "" if result.paper is None else str(result.paper),
            )
        Console(width=max(150, Console().width)).print(table)

    def write(self, path: pathlib.Path) -> None:
        """Write the results as JSON."""
        document = {
            "bench": self.name,
            "environment": environment(self.seed),
            "results": [asdict(result) for result in self.results],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n")


def ratio(numerator: list[float], denominator: list[float]) -> float:
    """Return the median of the ratios, round by round.

    Examples
    --------
    >>> ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0])
    2.0

    """
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def environment(seed: int) -> dict[str, Any]:
    """Return what the numbers depend on: versions, cores, memory."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "versions": versions,
        "seed": seed,
    }


def to_noop(make: Callable[[], Any]) -> Callable[[], None]:
    """Return a run of a DataFrame that is made anew each time: evaluated in full, kept nowhere."""

    def write() -> None:
        make().write.format("noop").mode("overwrite").save()

    return write


def local_spark(memory: str = "4g") -> Any:
    """Return a local Spark session for a benchmark or the demo, quiet and small."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark's remark on functions whose annotations it cannot use; nothing depends on them here.
    warnings.filterwarnings("ignore", message="Cannot infer the eval type")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("eddyline")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", memory)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
