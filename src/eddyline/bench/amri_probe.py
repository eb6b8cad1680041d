"""Time of a batch of probes: the index that a partition chooses, and the joins of libraries."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from eddyline.arrays import Codes, IntArray
from eddyline.bench.amri_indexes import even, make_columns
from eddyline.bench.harness import Bench, mean_of, ratio
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.partition import Partition
from eddyline.index.rivals import BatchJoin
from eddyline.index.tuner import Tuner

#: Seconds that a timed run should take at least: a batch is repeated.
RUN_S = 0.005


def search(index: Index, pattern: Pattern, codes: list[Codes]) -> tuple[IntArray, IntArray]:
    """Return the probes and rows that match."""
    probes, positions = index.ranges(pattern, codes).expand()
    rows, is_equal = index.confirm(pattern, positions, [column[probes] for column in codes])
    return probes[is_equal], rows[is_equal]


def probe(bench: Bench) -> None:
    """Time batches of probes: the index that a partition chooses, against each of the others."""
    rows = 10_000 if bench.quick else 100_000
    rng = np.random.default_rng(bench.seed)
    columns = make_columns(rng, rows)
    sizes = (1, 100, 1_000) if bench.quick else (1, 100, 1_000, 10_000, 100_000)
    for pattern, count in itertools.product([(0,), (0, 2)], sizes):
        chosen = rng.integers(0, rows, count)
        codes = [columns.codes[column][chosen] for column in pattern]
        _steady(bench, columns, pattern, codes)
        _first(bench, columns, pattern, codes)
        if count == 1_000:
            _elsewhere(bench, columns, pattern, codes)


def _label(columns: Columns, pattern: Pattern, codes: list[Codes]) -> str:
    return f"probe, {len(columns):,} rows, {len(codes[0]):,} probes by {len(pattern)} columns"


def _tuned(
    columns: Columns, pattern: Pattern, probes: int
) -> tuple[Partition, dict[Pattern, float]]:
    """Return a partition that has served many such batches, and the searches it expects."""
    tuner = Tuner()
    partition = Partition(columns, tuner.configuration("A", columns))
    tuner.arrived("A", len(columns))
    tuner.record("A", pattern, max(100 * probes, 10 * len(columns)))
    tuner.tune({"A": [partition]})
    return partition, dict(tuner.expected("A"))


def _steady(bench: Bench, columns: Columns, pattern: Pattern, codes: list[Codes]) -> None:
    """Time batches when all indexes exist that are wanted."""
    count = len(codes[0])
    partition, demand = _tuned(columns, pattern, count)

    def engine() -> object:
        return search(partition.choose(pattern, count, demand), pattern, codes)

    for _ in range(3):
        engine()
    rivals: dict[str, Index] = {
        "bit address": BitAddress(columns, KeyMap.of(partition.configuration, columns)),
        "sorted hash": LazyHash(columns),
        "batch join": BatchJoin(columns),
    }
    _time_all(
        bench,
        "in steady state",
        columns,
        pattern,
        codes,
        engine,
        {name: functools.partial(search, index, pattern, codes) for name, index in rivals.items()},
    )


def _first(bench: Bench, columns: Columns, pattern: Pattern, codes: list[Codes]) -> None:
    """Time the only batch that a partition serves: indexes are built for it."""
    configuration, count = even(len(columns)), len(codes[0])

    def engine() -> object:
        partition = Partition(columns, configuration)
        return search(partition.choose(pattern, count), pattern, codes)

    def built(make: Callable[[Columns], Index]) -> Callable[[], object]:
        return lambda: search(make(columns), pattern, codes)

    _time_all(
        bench,
        "the first batch",
        columns,
        pattern,
        codes,
        engine,
        {
            "bit address": built(lambda c: BitAddress(c, KeyMap.of(configuration, c))),
            "sorted hash": built(LazyHash),
            "batch join": built(BatchJoin),
        },
    )


def _time_all(
    bench: Bench,
    when: str,
    columns: Columns,
    pattern: Pattern,
    codes: list[Codes],
    engine: Callable[[], object],
    rivals: dict[str, Callable[[], object]],
) -> None:
    began = time.perf_counter()
    engine()
    times = max(1, int(RUN_S / (time.perf_counter() - began)))
    variants = {"engine": engine, "engine again": engine, **rivals}
    repeated = {name: functools.partial(_repeat, run, times) for name, run in variants.items()}
    label = f"{_label(columns, pattern, codes)}, {when}"
    seconds = bench.in_turn(label, repeated)
    own = mean_of(seconds["engine"], seconds["engine again"])
    ratios = {name: ratio(seconds[name], own) for name in rivals}
    fastest = min(ratios, key=lambda name: ratios[name])
    control = ratio(seconds["engine"], seconds["engine again"])
    bench.add(
        f"{label}: time, fastest index / engine's choice",
        ratios[fastest],
        "x",
        ", ".join(f"{name} {each:.2f}" for name, each in ratios.items())
        + f"; control {control:.2f}; target at least 0.95",
    )


def _repeat(run: Callable[[], object], times: int) -> None:
    for _ in range(times):
        run()


def _elsewhere(bench: Bench, columns: Columns, pattern: Pattern, codes: list[Codes]) -> None:
    """Time the joins of pyarrow, pandas, and polars if it is here, on the same keys."""
    polars: Any = None
    with contextlib.suppress(ImportError):
        polars = importlib.import_module("polars")
    count = len(codes[0])
    partition, demand = _tuned(columns, pattern, count)
    names = [f"k{column}" for column in pattern]
    stored = {name: columns.codes[column] for name, column in zip(names, pattern, strict=True)}
    stored["row"] = np.arange(len(columns)).astype(np.uint64)
    probes = dict(zip(names, codes, strict=True)) | {"probe": np.arange(count)}
    tables = pa.table(stored), pa.table(probes)
    frames = pd.DataFrame(stored), pd.DataFrame(probes)

    def engine() -> object:
        return search(partition.choose(pattern, count, demand), pattern, codes)

    for _ in range(3):
        engine()
    variants: dict[str, Callable[[], object]] = {
        "engine": engine,
        "pyarrow": lambda: tables[1].join(tables[0], names, join_type="inner"),
        "pandas": lambda: frames[1].merge(frames[0], on=names),
    }
    if polars is not None:
        left, right = polars.DataFrame(probes), polars.DataFrame(stored)
        variants["polars"] = lambda: left.join(right, on=names)
    label = _label(columns, pattern, codes)
    seconds = bench.in_turn(label, variants)
    for name in variants:
        if name != "engine":
            bench.add(
                f"{label}: time, {name} / engine's choice",
                ratio(seconds[name], seconds["engine"]),
                "x",
                "target at least 3",
            )
