"""Does AMRI follow access patterns that change? Rows compared, beside the best configurations.

One state is searched, in phases: in each, one access pattern has most of the searches. AMRI is
compared with the best configuration of each phase, known beforehand, and with the single
configuration that is best for all phases together, known beforehand too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import Codes
from eddyline.bench.amri_data import spread
from eddyline.bench.harness import Bench
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, dependent_cost
from eddyline.index.index import Pattern
from eddyline.index.partition import Partition
from eddyline.index.selection import select
from eddyline.index.tuner import Demand, Tuner, TuningOptions

#: Rows of a partition, of the window, and of a batch; searches of a batch.
PARTITION_ROWS, WINDOW_ROWS, BATCH_ROWS, BATCH_SEARCHES = 2_500, 10_000, 500, 2_000
#: Windows that a phase lasts.
PHASE_WINDOWS = 8
#: Patterns beside the main one of a phase.
OTHER_PATTERNS = 6


@dataclass(frozen=True)
class Phase:
    """Searches of a stretch of time: share of each access pattern."""

    frequencies: Mapping[Pattern, float]


def make_phases(rng: np.random.Generator, columns: int, share: float, count: int) -> list[Phase]:
    """Return phases with one pattern that has a share of the searches, another in each phase."""
    phases: list[Phase] = []
    main: Pattern = ()
    for _ in range(count):
        patterns: list[Pattern] = []
        while len(patterns) < OTHER_PATTERNS + 1:
            pattern = tuple(np.flatnonzero(rng.random(columns) < 0.5).tolist())
            if pattern and pattern not in patterns and (patterns or pattern != main):
                patterns.append(pattern)
        main, *rest = patterns
        phases.append(Phase({main: share} | dict.fromkeys(rest, (1 - share) / len(rest))))
    return phases


@dataclass(frozen=True)
class Batch:
    """Rows that arrive, and the searches after them: codes for each pattern."""

    phase: int
    rows: list[Codes]
    searches: dict[Pattern, list[Codes]]


def make_batches(
    rng: np.random.Generator, columns: int, phases: Sequence[Phase], phase_rows: int
) -> Iterator[Batch]:
    """Yield batches; searches are for the values of rows that arrived last."""
    for number, phase in enumerate(phases):
        patterns, shares = list(phase.frequencies), list(phase.frequencies.values())
        for _ in range(phase_rows // BATCH_ROWS):
            values = rng.integers(0, WINDOW_ROWS, (columns, BATCH_ROWS))
            rows = [spread(column, salt) for salt, column in enumerate(values)]
            counts = rng.multinomial(BATCH_SEARCHES, shares)
            searches = {}
            for pattern, count in zip(patterns, counts, strict=True):
                chosen = rng.integers(0, BATCH_ROWS, count)
                if count:
                    searches[pattern] = [rows[column][chosen] for column in pattern]
            yield Batch(number, rows, searches)


class State:
    """Partitions over a window, with a configuration for the rows to come.

    Parameters
    ----------
    columns
        Number of join columns.

    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.partitions: list[Partition] = []
        self.compared = 0

    def add(self, rows: list[Codes], configuration: Configuration) -> None:
        """Add rows to the newest partition, or begin one with a configuration."""
        newest = self.partitions[-1] if self.partitions else None
        if newest is not None and len(newest) < PARTITION_ROWS:
            pairs = zip(newest.columns.codes, rows, strict=True)
            rows = [np.concatenate(pair) for pair in pairs]
            configuration = newest.configuration
            self.partitions.pop()
        self.partitions.append(Partition(Columns(rows, [None] * self.columns), configuration))
        del self.partitions[: -WINDOW_ROWS // PARTITION_ROWS - 1]

    def reconfigure(self, configuration: Configuration) -> None:
        """Index all rows with a configuration."""
        for partition in self.partitions:
            partition.reconfigure(configuration)

    def search(self, searches: Mapping[Pattern, list[Codes]]) -> None:
        """Count the rows that searches compare."""
        for pattern, codes in searches.items():
            for partition in self.partitions:
                counts = partition.bit_address.ranges(pattern, codes).counts
                self.compared += int(counts.sum())


def best_configuration(columns: int, frequencies: Mapping[Pattern, float]) -> Configuration:
    """Return the configuration that costs least for searches of a known mix."""
    demand = Demand(frequencies, BATCH_SEARCHES / BATCH_ROWS * WINDOW_ROWS)
    bits = PARTITION_ROWS.bit_length() - 1
    return select(columns, bits, demand.on(PARTITION_ROWS), DEFAULT_COSTS, None, dependent_cost)


@dataclass(frozen=True)
class Compared:
    """Rows compared in a run by AMRI, by the best configurations, and by the best single one."""

    amri: int
    best: int
    static: int
    reconfigured: int


def track(
    columns: int,
    share: float,
    seed: int,
    phase_count: int,
    phase_windows: float = PHASE_WINDOWS,
    options: TuningOptions | None = None,
) -> Compared:
    """Run all three over the same rows and searches."""
    rng = np.random.default_rng(seed)
    phases = make_phases(rng, columns, share, phase_count)
    mean: dict[Pattern, float] = {}
    for phase in phases:
        for pattern, frequency in phase.frequencies.items():
            mean[pattern] = mean.get(pattern, 0.0) + frequency / len(phases)
    single = best_configuration(columns, mean)
    bests = [best_configuration(columns, phase.frequencies) for phase in phases]
    bits = PARTITION_ROWS.bit_length() - 1
    tuner = Tuner(dataclasses.replace(options or TuningOptions(), bits=bits), DEFAULT_COSTS)
    tuner.begin_with("A", Demand(phases[0].frequencies, BATCH_SEARCHES / BATCH_ROWS * WINDOW_ROWS))
    amri, best, static = State(columns), State(columns), State(columns)
    reconfigured = 0
    for batch in make_batches(rng, columns, phases, int(phase_windows * WINDOW_ROWS)):
        configuration = tuner.configuration("A", Columns(batch.rows, [None] * columns))
        amri.add(batch.rows, configuration)
        tuner.arrived("A", BATCH_ROWS)
        best.add(batch.rows, bests[batch.phase])
        best.reconfigure(bests[batch.phase])
        static.add(batch.rows, single)
        # The engine knows the searches of a batch before it serves them.
        for pattern, codes in batch.searches.items():
            tuner.record("A", pattern, len(codes[0]))
        events = tuner.tune({"A": amri.partitions})
        reconfigured += len(events) > 1
        for state in (amri, best, static):
            state.search(batch.searches)
    return Compared(amri.compared, best.compared, static.compared, reconfigured)


def tracking(bench: Bench) -> None:
    """Count rows compared while the main access pattern changes."""
    phase_count = 2 if bench.quick else 5
    phase_windows = 1 if bench.quick else PHASE_WINDOWS
    cases = [(columns, share) for columns in (3, 8) for share in (0.6, 0.8, 0.95)]
    with bench.progress("tracking", len(cases)) as advance:
        for columns, share in cases:
            compared = track(columns, share, bench.seed, phase_count, phase_windows)
            advance()
            setting = (
                f"{phase_count} phases of {phase_windows} windows, "
                f"{BATCH_SEARCHES // BATCH_ROWS} searches a row; "
            )
            label = f"tracking, {columns} columns, one pattern has {share:.0%}: rows compared, "
            bench.add(
                label + "AMRI / best configuration of each phase, known beforehand",
                compared.amri / compared.best,
                "x",
                setting + "target at most 1.2",
            )
            bench.add(
                label + "best single configuration, known beforehand / AMRI",
                compared.static / compared.amri,
                "x",
                setting + "target at least 1.0",
            )
