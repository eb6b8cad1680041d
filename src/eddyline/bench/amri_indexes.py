"""One partition: memory of its indexes, and time to build them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from eddyline.bench.harness import Bench, mean_of, ratio
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.index import Index, Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.rivals import HashIndices

#: All access patterns of three columns.
PATTERNS: list[Pattern] = [p for size in (1, 2, 3) for p in itertools.combinations(range(3), size)]


def make_columns(rng: np.random.Generator, rows: int, columns: int = 3) -> Columns:
    """Return join columns with about as many values as rows."""
    values = rng.integers(0, rows, (columns, rows)).astype(np.uint64)
    return Columns([*(values * np.uint64(0x9E37_79B9_7F4A_7C15))], [None] * columns)


def even(rows: int, columns: int = 3) -> Configuration:
    """Return the configuration that a state has before it was searched."""
    bits = rows.bit_length() - 1
    return Configuration(
        tuple(bits // columns + (column < bits % columns) for column in range(columns))
    )


def memory(bench: Bench) -> None:
    """Count index bytes of a stored tuple beyond the tuple."""
    for rows in (2_500, 100_000):
        columns = make_columns(np.random.default_rng(bench.seed), rows)
        own = BitAddress(columns, KeyMap.of(even(rows), columns)).bytes
        hashes = HashIndices(columns, PATTERNS).bytes
        label = f"{rows:,} rows, 3 join columns"
        bench.add(f"{label}: AMRI index bytes a tuple", own / rows, "bytes", "target at most 8")
        bench.add(
            f"{label}: index bytes, 7 hash indices / AMRI",
            hashes / own,
            "x",
            f"7 hash indices: {hashes / rows:.0f} bytes a tuple; target at least 7",
        )


def build(bench: Bench) -> None:
    """Time a sorted hash for each pattern that is probed, against one bit-address index."""
    rows = 10_000 if bench.quick else 100_000
    columns = make_columns(np.random.default_rng(bench.seed), rows)

    def bit_address() -> Index:
        return BitAddress(columns, KeyMap.of(even(rows), columns))

    variants: dict[str, Callable[[], object]] = {
        "bit address": bit_address,
        "bit address again": bit_address,
        "3": lambda: HashIndices(columns, PATTERNS[:3]),
        "7": lambda: HashIndices(columns, PATTERNS),
    }
    seconds = bench.in_turn("build", variants)
    own = mean_of(seconds["bit address"], seconds["bit address again"])
    control = ratio(seconds["bit address"], seconds["bit address again"])
    for count in ("3", "7"):
        bench.add(
            f"{rows:,} rows: build time, {count} sorted hashes / one bit-address index",
            ratio(seconds[count], own),
            "x",
            f"control {control:.2f}; target at least 1.5",
        )
