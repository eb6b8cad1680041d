"""Eight join columns and windows of a million rows: counted work of AMRI and hash indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from eddyline.arrays import Codes
from eddyline.bench.amri_indexes import make_columns
from eddyline.bench.amri_tracking import make_phases
from eddyline.bench.harness import Bench
from eddyline.index.index import Pattern
from eddyline.index.partition import Partition
from eddyline.index.rivals import HashIndices, most_frequent
from eddyline.index.tuner import Tuner

COLUMNS = 8
PROBES = 10_000


def wide(bench: Bench) -> None:
    """Count rows compared, ranges looked up and bytes, after tuning on 8 join columns."""
    rows = 20_000 if bench.quick else 1_000_000
    rng = np.random.default_rng(bench.seed)
    columns = make_columns(rng, rows, COLUMNS)
    for share in (0.6, 0.95):
        (phase,) = make_phases(rng, COLUMNS, share, 1)
        tuner = Tuner()
        partition = Partition(columns, tuner.configuration("A", columns))
        before = _counts(bench, partition, phase.frequencies)
        tuner.arrived("A", rows)
        for pattern, frequency in phase.frequencies.items():
            tuner.record("A", pattern, int(frequency * 10 * PROBES))
        tuner.tune({"A": [partition]})
        compared, ranges = _counts(bench, partition, phase.frequencies)
        matched = _matches(bench, partition, phase.frequencies)
        label = f"8 join columns, {rows:,} rows, one of 7 patterns has {share:.0%}"
        bench.add(
            f"{label}: rows compared, spread evenly / tuned",
            before[0] / compared,
            "x",
            f"tuned: {compared:,.0f} compared and {ranges:,.0f} ranges a search, "
            f"{matched:,.1f} matches; bits {partition.configuration.bits}",
        )
        hashes = HashIndices(columns, most_frequent(phase.frequencies, 7))
        bench.add(
            f"{label}: index bytes, 7 hash indices / AMRI",
            hashes.bytes / partition.bit_address.bytes,
            "x",
            f"AMRI: {partition.bit_address.bytes / rows:.1f} bytes a row",
        )


def _probes(
    bench: Bench, partition: Partition, frequencies: Mapping[Pattern, float]
) -> Iterator[tuple[Pattern, float, list[Codes]]]:
    """Yield each pattern with its frequency and the codes of some searches."""
    rng = np.random.default_rng(bench.seed + 1)
    for pattern, frequency in frequencies.items():
        count = max(int(frequency * PROBES / 10), 1)
        chosen = rng.integers(0, len(partition), count)
        yield pattern, frequency, [partition.columns.codes[c][chosen] for c in pattern]


def _counts(
    bench: Bench, partition: Partition, frequencies: Mapping[Pattern, float]
) -> tuple[float, float]:
    """Return rows compared and ranges looked up by a search, on average."""
    index, compared, ranges = partition.bit_address, 0.0, 0.0
    for pattern, frequency, codes in _probes(bench, partition, frequencies):
        found = index.ranges(pattern, codes)
        compared += frequency * found.counts.sum() / len(codes[0])
        ranges += frequency * index.ranges_per_probe(pattern)
    return float(compared), ranges


def _matches(bench: Bench, partition: Partition, frequencies: Mapping[Pattern, float]) -> float:
    """Return the matches of a search, on average."""
    hashes = HashIndices(partition.columns, list(frequencies))
    return float(
        sum(
            frequency * hashes.ranges(pattern, codes).counts.sum() / len(codes[0])
            for pattern, frequency, codes in _probes(bench, partition, frequencies)
        )
    )
