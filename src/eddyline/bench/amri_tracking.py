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
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, dependent_cost
from eddyline.index.demand import Demand
from eddyline.index.index import Pattern
from eddyline.index.partition import Partition
from eddyline.index.selection import select
from eddyline.index.tuner import Tuner
from eddyline.index.tuning_options import TuningOptions

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
        columns = Columns(rows, [None] * self.columns)
        self.partitions.append(Partition(columns, configuration, only=BitAddress.name))
        del self.partitions[: -WINDOW_ROWS // PARTITION_ROWS - 1]

    def reconfigure(self, configuration: Configuration) -> None:
        """Index all rows with a configuration."""
        for partition in self.partitions:
            partition.reconfigure(configuration)

    def search(self, searches: Mapping[Pattern, list[Codes]]) -> None:
        """Count the rows that searches compare."""
        for pattern, codes in searches.items():
            self.prepare(pattern, len(codes[0]))
            for partition in self.partitions:
                counts = partition.bit_address.ranges(pattern, codes).counts
                self.compared += int(counts.sum())

    def prepare(self, pattern: Pattern, probes: int) -> None:
        """Take note of searches that are about to be served."""


def best_configuration(columns: int, frequencies: Mapping[Pattern, float]) -> Configuration:
    """Return the configuration that costs least for searches of a known mix."""
    demand = Demand(frequencies, BATCH_SEARCHES / BATCH_ROWS * WINDOW_ROWS)
    bits = PARTITION_ROWS.bit_length() - 1
    return select(columns, bits, demand.on(PARTITION_ROWS), DEFAULT_COSTS, None, dependent_cost)


class Amri(State):
    """A state with a tuner.

    Parameters
    ----------
    columns
        Number of join columns.
    options
        Of the tuner.
    phase
        What the state begins with.

    """

    def __init__(self, columns: int, options: TuningOptions, phase: Phase) -> None:
        super().__init__(columns)
        bits = PARTITION_ROWS.bit_length() - 1
        own = dataclasses.replace(options, bits=bits, only=BitAddress.name)
        self._tuner = Tuner(own)
        searches = BATCH_SEARCHES / BATCH_ROWS * WINDOW_ROWS
        self._tuner.begin_with("A", Demand(phase.frequencies, searches))

    def next_configuration(self, rows: list[Codes]) -> Configuration:
        """Return the configuration of new rows."""
        self._tuner.arrived("A", len(rows[0]))
        return self._tuner.configuration("A", Columns(rows, [None] * self.columns))

    def prepare(self, pattern: Pattern, probes: int) -> None:
        """Let the tuner count the searches, and select a configuration at once if that pays."""
        self._tuner.record("A", pattern, probes)
        self._tuner.prepare("A", pattern, probes, self.partitions)

    def tune(self) -> None:
        """Select a configuration if it is time."""
        self._tuner.tune({"A": self.partitions})


@dataclass(frozen=True)
class Compared:
    """Rows compared in a run.

    Parameters
    ----------
    amri, later
        By AMRI, which may select a configuration before it serves searches, and by AMRI that
        selects after each batch alone.
    best, static
        By the best configuration of each phase, and by the best single one.

    """

    amri: int
    later: int
    best: int
    static: int


def track(
    columns: int,
    share: float,
    seed: int,
    phase_count: int,
    phase_windows: float = PHASE_WINDOWS,
    options: TuningOptions | None = None,
) -> Compared:
    """Run all over the same rows and searches."""
    rng = np.random.default_rng(seed)
    phases = make_phases(rng, columns, share, phase_count)
    mean: dict[Pattern, float] = {}
    for phase in phases:
        for pattern, frequency in phase.frequencies.items():
            mean[pattern] = mean.get(pattern, 0.0) + frequency / len(phases)
    single = best_configuration(columns, mean)
    bests = [best_configuration(columns, phase.frequencies) for phase in phases]
    options = options or TuningOptions()
    amri = Amri(columns, options, phases[0])
    later = Amri(columns, dataclasses.replace(options, at_once=False), phases[0])
    best, static = State(columns), State(columns)
    for batch in make_batches(rng, columns, phases, int(phase_windows * WINDOW_ROWS)):
        for each in (amri, later):
            each.add(batch.rows, each.next_configuration(batch.rows))
        best.add(batch.rows, bests[batch.phase])
        best.reconfigure(bests[batch.phase])
        static.add(batch.rows, single)
        for state in (amri, later, best, static):
            state.search(batch.searches)
        amri.tune()
        later.tune()
    return Compared(amri.compared, later.compared, best.compared, static.compared)


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
                f"{BATCH_SEARCHES // BATCH_ROWS} searches a row in batches of {BATCH_SEARCHES:,}; "
            )
            label = f"tracking, {columns} columns, one pattern has {share:.0%}: rows compared, "
            bench.add(
                label + "AMRI / best configuration of each phase, known beforehand",
                compared.amri / compared.best,
                "x",
                setting + "target at most 1.2",
            )
            bench.add(
                label + "the same, selecting after each batch alone",
                compared.later / compared.best,
                "x",
                setting + "a batch with new patterns is served with the old configuration",
            )
            bench.add(
                label + "best single configuration, known beforehand / AMRI",
                compared.static / compared.amri,
                "x",
                setting + "target at least 1.0",
            )
