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
from rich.table import Table

from eddyline.errors import EddylineError

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
    part: str | None = None


@dataclass
class Bench:
    """What a benchmark was asked for, its results so far, and its progress bar.

    Parameters
    ----------
    name
        Of the benchmark.
    seed
        For everything random.
    quick
        Less data: shows that it works, the numbers are rough.
    rounds
        Of each timed comparison.
    data
        Folder with real data.
    only
        The one part to run; the numbers of other parts in the file are kept.
    json
        The file that gets the numbers, each as soon as it is measured.

    """

    name: str
    seed: int = 0
    quick: bool = False
    rounds: int = 5
    data: pathlib.Path | None = None
    only: str | None = None
    json: pathlib.Path | None = None
    console: Console = field(default_factory=lambda: Console(stderr=True))
    results: list[Result] = field(default_factory=list)
    _part: str | None = None
    _kept: list[Result] = field(default_factory=list)

    def run_parts(self, parts: Mapping[str, Callable[[], None]]) -> None:
        """Run all parts of the benchmark, or the one that was asked for."""
        if self.only is not None and self.only not in parts:
            raise EddylineError(
                f"bench {self.name} has no part {self.only!r}; there are {', '.join(parts)}"
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
        """Note one result."""
        value = round(float(value), 6)
        self.results.append(Result(metric, value, unit, baseline, paper, self._part))
        if self.json is not None:
            self._write(self.json)

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
        self,
        what: str,
        variants: Mapping[str, Callable[[], object]],
        rounds: int | None = None,
        is_warm: bool = False,
        times: Mapping[str, int] | None = None,
    ) -> dict[str, list[float]]:
        """Run the variants in turn; return their seconds.

        Each round has another order, so that what one leaves behind hits all of them alike. The
        first round does not count, unless everything has been run before. A variant that takes
        much less time than others can be run several `times` a round.
        """
        rounds = rounds or self.rounds
        rounds_ahead = 0 if is_warm else 1
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        names = [name for name in variants for _ in range((times or {}).get(name, 1))]
        rng = random.Random(self.seed)
        with self.progress(what, (rounds_ahead + rounds) * len(names)) as advance:
            for round_ in range(rounds_ahead + rounds):
                for name in rng.sample(names, len(names)):
                    began = time.perf_counter()
                    variants[name]()
                    if round_ >= rounds_ahead:
                        seconds[name].append(time.perf_counter() - began)
                    advance()
        return seconds

    def step_by_step(
        self, what: str, variants: Mapping[str, Callable[[], Iterator[object]]]
    ) -> dict[str, list[float]]:
        """Run the variants a step at a time, in turn; return the seconds of each round.

        A neighbour on the machine who comes and goes within seconds then slows down all alike. Each
        step has another order, and the first round does not count.
        """
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        rng = random.Random(self.seed)
        with self.progress(what, self.rounds + 1) as advance:
            for round_ in range(self.rounds + 1):
                spent = dict.fromkeys(variants, 0.0)
                left = {name: begin() for name, begin in variants.items()}
                while left:
                    for name in rng.sample(list(left), len(left)):
                        began = time.perf_counter()
                        if next(left[name], self) is self:
                            del left[name]
                        spent[name] += time.perf_counter() - began
                for name, own in spent.items():
                    if round_ > 0:
                        seconds[name].append(own)
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

    def _write(self, path: pathlib.Path) -> None:
        """Write the results as JSON: a run that is stopped leaves what it has measured."""
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
    """Return the mean of several runs of the same thing, round by round: less noisy than one.

    Examples
    --------
    >>> mean_of([1.0, 3.0], [2.0, 3.0])
    [1.5, 3.0]

    """
    return [statistics.mean(each) for each in zip(*runs, strict=True)]


def by_round(seconds: list[float], times: int) -> list[float]:
    """Return the mean of each round of a variant that was run several times a round.

    Examples
    --------
    >>> by_round([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], times=3)
    [2.0, 5.0]

    """
    return mean_of(*(seconds[first::times] for first in range(times)))


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
    """Return a run of a DataFrame that is made anew each time."""
    return lambda: run_to_noop(make())


def run_to_noop(df: Any) -> None:
    """Evaluate a DataFrame in full, and keep nothing of it."""
    df.write.format("noop").mode("overwrite").save()


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
