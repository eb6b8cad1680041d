"""What all benchmarks share: interleaved variants, a control, the environment, a JSON file.

Timings on a shared machine are noisy. Variants are therefore interleaved (A, B, A, B, ...) and
compared round by round. The median of the ratios is reported, beside a control: the ratio of a
variant to itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import platform
import random
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

from eddyline.errors import EddylineError
from eddyline.report.document import Column, Table
from eddyline.report.text import render_block

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
        What it was compared with, in words, or the number of the baseline.
    paper
        The number that the paper reports for the same quantity, if any.
    part
        The part of the benchmark that measured it.

    """

    metric: str
    value: float
    unit: str
    baseline: str | float | None = None
    paper: str | float | None = None
    part: str | None = None


@dataclass
class Bench:
    """Options of a benchmark, its results so far, and its progress bar.

    Parameters
    ----------
    name
        Name of the benchmark.
    seed
        Seed of everything random.
    quick
        Whether to use less data: shows that it works, the numbers are rough.
    rounds
        Rounds of each timed comparison.
    data
        Folder with real data.
    only
        The only part to run; the file keeps the numbers of the other parts.
    json
        File for the numbers; each is written as soon as it is measured.
    flink
        An interpreter that has PyFlink.
    console, results
        Where progress is shown, and the numbers measured so far.

    """

    name: str
    seed: int = 0
    quick: bool = False
    rounds: int = 5
    data: pathlib.Path | None = None
    only: str | None = None
    json: pathlib.Path | None = None
    flink: pathlib.Path | None = None
    console: Console = field(default_factory=lambda: Console(stderr=True))
    results: list[Result] = field(default_factory=list)
    _part: str | None = None
    _kept: list[Result] = field(default_factory=list)

    def run_parts(self, parts: Mapping[str, Callable[[], None]]) -> None:
        """Run all parts of the benchmark, or only the part in `only`."""
        if self.only is not None and self.only not in parts:
            raise EddylineError(
                f"bench {self.name} has no part {self.only!r}; its parts are {', '.join(parts)}"
                + (" (and perhaps more with --data)" if self.data is None else "")
            )
        if self.only is not None and self.json is not None and self.json.exists():
            earlier = [Result(**each) for each in json.loads(self.json.read_text())["results"]]
            self._kept = [result for result in earlier if result.part != self.only]
        for name, run in parts.items():
            if self.only in (None, name):
                self._part = name
                run()

    def add(
        self,
        metric: str,
        value: float,
        unit: str,
        baseline: str | float | None = None,
        paper: str | float | None = None,
    ) -> None:
        """Add one result, and write the file."""
        value = round(float(value), 6)
        self.results.append(Result(metric, value, unit, baseline, paper, self._part))
        if self.json is not None:
            self._write(self.json)

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a progress bar; yield the function that advances it by one."""
        label = TextColumn("{task.description}", markup=False)
        columns = (label, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)

    def in_turn(
        self,
        what: str,
        variants: Mapping[str, Callable[[], object]],
        rounds: int | None = None,
        is_warm: bool = False,
        times: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> dict[str, list[float]]:
        """Run the variants in turn; return the seconds of each run, by a clock.

        Each round has a random order, so that the after-effects of one variant (garbage, caches)
        hit all others alike. The first round is not counted, unless `is_warm`. `times` has the runs
        a round of variants that take much less time than the others.
        """
        rounds = rounds or self.rounds
        warm_up_rounds = 0 if is_warm else 1
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        names = [name for name in variants for _ in range((times or {}).get(name, 1))]
        rng = random.Random(self.seed)
        with self.progress(what, (warm_up_rounds + rounds) * len(names)) as advance:
            for round_ in range(warm_up_rounds + rounds):
                for name in rng.sample(names, len(names)):
                    began = clock()
                    variants[name]()
                    if round_ >= warm_up_rounds:
                        seconds[name].append(clock() - began)
                    advance()
        return seconds

    def step_by_step(
        self, what: str, variants: Mapping[str, Callable[[], Iterator[object]]]
    ) -> dict[str, list[float]]:
        """Run the variants one step at a time, in turn; return the seconds of each round.

        Load from other processes that lasts a few seconds then slows down all variants alike. Each
        step has a random order, and the first round is not counted.
        """
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        rng = random.Random(self.seed)
        with self.progress(what, self.rounds + 1) as advance:
            for round_ in range(self.rounds + 1):
                spent = dict.fromkeys(variants, 0.0)
                unfinished = {name: begin() for name, begin in variants.items()}
                while unfinished:
                    for name in rng.sample(list(unfinished), len(unfinished)):
                        began = time.perf_counter()
                        if next(unfinished[name], self) is self:
                            del unfinished[name]
                        spent[name] += time.perf_counter() - began
                for name, variant_s in spent.items():
                    if round_ > 0:
                        seconds[name].append(variant_s)
                advance()
        return seconds

    def show(self) -> None:
        """Print the results as a table."""
        columns = [Column("metric", fit="wrap"), Column("value", "right"), Column("unit")]
        columns += [Column("baseline", fit="wrap"), Column("paper", fit="wrap")]
        rows = [
            [
                result.metric,
                f"{result.value:,.3f}" if abs(result.value) < 1000 else f"{result.value:,.0f}",
                result.unit,
                *("" if each is None else str(each) for each in (result.baseline, result.paper)),
            ]
            for result in self.results
        ]
        Console().print(render_block(Table(columns, rows, f"eddyline bench {self.name}")))

    def _write(self, path: pathlib.Path) -> None:
        """Write the results as JSON, so that a run that is stopped loses nothing."""
        document = {
            "bench": self.name,
            "environment": environment(self.seed),
            "results": [asdict(result) for result in self._kept + self.results],
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


def mean_of(*runs: list[float]) -> list[float]:
    """Return the mean of several variants that do the same, round by round.

    Examples
    --------
    >>> mean_of([1.0, 3.0], [2.0, 3.0])
    [1.5, 3.0]

    """
    return [statistics.mean(each) for each in zip(*runs, strict=True)]


def by_round(seconds: list[float], times: int) -> list[float]:
    """Return the mean of each round, for a variant with several runs a round.

    Examples
    --------
    >>> by_round([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], times=3)
    [2.0, 5.0]

    """
    return mean_of(*(seconds[first::times] for first in range(times)))


def environment(seed: int) -> dict[str, Any]:
    """Return the environment that the numbers depend on: versions, cores, memory, seed."""
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
    """Return a function that makes a DataFrame and evaluates it."""
    return lambda: run_to_noop(make())


def run_to_noop(df: Any) -> None:
    """Evaluate a DataFrame in full and discard its rows."""
    df.write.format("noop").mode("overwrite").save()


def local_spark(memory: str = "4g") -> Any:
    """Return a local Spark session for a benchmark or the demo, quiet and small."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark warns of functions whose annotations it cannot use; nothing here depends on them.
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
