"""Shapes of joins: more streams on one key, and stars, chains, cycles and cliques on several.

Keys are drawn so that every shape has about as many results as a stream has rows in a window. What
differs is how many intermediate results a plan of two-way joins has on the way there.
"""

from __future__ import annotations

import itertools
import math
import pathlib
import tempfile
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.bench.harness import Bench, local_spark
from eddyline.bench.joins_case import JoinCase, Side, Streams
from eddyline.bench.joins_runs import Contest
from eddyline.bench.joins_versus import contend

BATCHES = 5
BATCH_US = 10_000_000
WINDOW_MS = 10_000
START_US = 1_700_000_000_000_000
#: Spark's chain is run beside for up to so many streams; with more it takes minutes.
RIVAL_STREAMS_MAX = 4


@dataclass(frozen=True)
class Shape:
    """Which streams have equal keys.

    Parameters
    ----------
    name
        What it is called in metrics.
    streams
        Number of streams.
    keys
        For each key, the streams that have it: all their values must be equal.
    rows
        Rows of each stream in a micro-batch.

    Examples
    --------
    >>> triangle = Shape("triangle", 3, ((0, 1), (1, 2), (2, 0)), 1000)
    >>> triangle.equalities, triangle.values
    (3, 100)
    >>> triangle.case().equal
    [('s0.k0', 's1.k0'), ('s1.k1', 's2.k1'), ('s2.k2', 's0.k2')]

    """

    name: str
    streams: int
    keys: tuple[tuple[int, ...], ...]
    rows: int

    @property
    def equalities(self) -> int:
        """Independent equalities: each leaves one of `values` combinations."""
        return sum(len(own) - 1 for own in self.keys)

    @property
    def values(self) -> int:
        """Number of values of each key, for about as many results as a stream has rows."""
        return round(math.pow(self.rows, (self.streams - 1) / self.equalities))

    def case(self) -> JoinCase:
        """Return the join."""
        sides = [Side(f"s{n}", f"stream{n}", ("v",), WINDOW_MS) for n in range(self.streams)]
        equal = [
            (f"s{first}.k{number}", f"s{other}.k{number}")
            for number, (first, *others) in enumerate(self.keys)
            for other in others
        ]
        return JoinCase(self.name, sides, equal)

    def write(self, folder: pathlib.Path, seed: int) -> Streams:
        """Write its streams."""
        rng = np.random.default_rng(seed)
        streams = Streams(folder)
        for number in range(self.streams):
            keys = [f"k{key}" for key, own in enumerate(self.keys) if number in own]
            streams.write(f"stream{number}", [self._rows(rng, keys, n) for n in range(BATCHES)])
        return streams

    def _rows(self, rng: np.random.Generator, keys: list[str], batch: int) -> pa.Table:
        times = START_US + batch * BATCH_US + np.sort(rng.integers(0, BATCH_US, self.rows))
        columns = {key: rng.integers(0, self.values, self.rows) for key in keys}
        first = batch * self.rows
        columns["v"] = np.arange(first, first + self.rows)
        return pa.table(columns | {"ts": pa.array(times, pa.timestamp("us", "UTC"))})


def shapes_of(rows: int, rows_cyclic: int) -> list[Shape]:
    """Return all shapes."""
    ring = tuple((n, (n + 1) % 4) for n in range(4))
    return [
        *(Shape(f"{n} streams, one key", n, (tuple(range(n)),), rows) for n in (2, 3, 4, 6, 10)),
        Shape("star of 4", 4, ((0, 1), (0, 2), (0, 3)), rows),
        Shape("chain of 4", 4, ring[:3], rows),
        Shape("cycle of 4", 4, ring, rows_cyclic),
        Shape("clique of 4", 4, tuple(itertools.combinations(range(4), 2)), rows_cyclic),
    ]


def shapes(bench: Bench) -> None:
    """Count what joins of different shapes compare and store; compare the smaller with Spark."""
    spark = local_spark()
    for shape in shapes_of(500, 200) if bench.quick else shapes_of(10_000, 2_000):
        with tempfile.TemporaryDirectory() as folder:
            streams = shape.write(pathlib.Path(folder), bench.seed)
            has_rival = shape.streams <= RIVAL_STREAMS_MAX
            contend(bench, spark, Contest.of(shape.case(), streams, has_rival))
