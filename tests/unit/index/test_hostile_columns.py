"""Columns that hash badly: every index still finds what a scan finds, and takes little memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eddyline.arrays import BoolArray, Codes
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.index import Pattern
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.partition import HASH_BYTES_MAX, Partition
from eddyline.index.rivals import Scan
from eddyline.index.tuner import Tuner
from eddyline.index.tuning_options import TuningOptions

ROWS = 600


def good(rng: np.random.Generator, rows: int = ROWS) -> Codes:
    values = rng.integers(0, 50, rows).astype(np.uint64)
    return values * np.uint64(0x9E37_79B9_7F4A_7C15)


def _columns(*codes: Codes, valid: BoolArray | None = None) -> Columns:
    return Columns(list(codes), [valid, *[None] * (len(codes) - 1)])


def hostile(kind: str) -> Columns:
    rng = np.random.default_rng(len(kind))
    if kind == "constant":
        return _columns(np.full(ROWS, 7, dtype=np.uint64), good(rng))
    if kind == "all NULL":
        return _columns(good(rng), good(rng), valid=np.zeros(ROWS, dtype=bool))
    if kind == "same high bits":  # all in one bucket, if the high bits of codes were taken
        return _columns(rng.integers(0, 90, ROWS).astype(np.uint64), good(rng))
    if kind == "one value has most rows":
        return _columns(np.where(rng.random(ROWS) < 0.95, np.uint64(9), good(rng)), good(rng))
    if kind == "more columns than bits":
        return _columns(*[good(rng, 6) for _ in range(8)])
    return _columns(good(rng, 1), good(rng, 1))


KINDS = (
    "constant",
    "all NULL",
    "same high bits",
    "one value has most rows",
    "more columns than bits",
    "one row",
)


def matches(
    columns: Columns, pattern: Pattern, codes: list[Codes], partition: Partition | None = None
) -> set[tuple[int, int]]:
    """Return probes and rows that are equal: found by an index, or by comparing all."""
    index = Scan(columns) if partition is None else partition.choose(pattern, len(codes[0]))
    probes, positions = index.ranges(pattern, codes).expand()
    rows, is_equal = index.confirm(pattern, positions, [column[probes] for column in codes])
    return set(zip(probes[is_equal].tolist(), rows[is_equal].tolist(), strict=True))


@pytest.mark.parametrize(("values", "bits"), [(1, 0), (10, 4), (1_000, 10), (40_000, 16)])
def test_bits_that_the_values_of_many_rows_fill_are_those_of_a_sample(
    values: int, bits: int
) -> None:
    numbers = np.arange(40_000, dtype=np.uint64) * np.uint64(7_919) % np.uint64(values)
    columns = _columns(numbers * np.uint64(0x9E37_79B9_7F4A_7C15))
    assert columns.bits_filled(0) == bits


@pytest.mark.parametrize("only", [None, BitAddress.name, LazyHash.name])
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_columns_are_searched_as_by_a_scan(kind: str, only: str | None) -> None:
    columns = hostile(kind)
    count = len(columns.codes)
    tuner = Tuner(TuningOptions(only=only))
    partition = Partition(columns, tuner.configuration("S", columns), only=only)
    tuner.arrived("S", len(columns))
    patterns = [p for size in (1, 2) for p in itertools.combinations(range(count), size)]
    for pattern in patterns[:12]:  # each of them is new to the state
        codes = [columns.codes[column][:40] for column in pattern]
        tuner.record("S", pattern, 3_000)
        tuner.prepare("S", pattern, 3_000, [partition])
        assert matches(columns, pattern, codes, partition) == matches(columns, pattern, codes)
        tuner.tune({"S": [partition]})
        assert matches(columns, pattern, codes, partition) == matches(columns, pattern, codes)
    # Of few rows, one sorted hash alone may exceed the limit.
    assert partition.bytes <= max((HASH_BYTES_MAX + 8) * len(columns), 4_096)


def test_a_configuration_without_bits_compares_all_rows() -> None:
    columns = hostile("constant")
    partition = Partition(columns, Configuration((0, 0)), only=BitAddress.name)
    codes = [columns.codes[1][:5]]
    assert partition.bit_address.ranges((1,), codes).counts.tolist() == [ROWS] * 5
    assert matches(columns, (1,), codes, partition) == matches(columns, (1,), codes)


def test_values_with_the_same_high_bits_are_spread_over_buckets() -> None:
    columns = hostile("same high bits")
    configuration = Tuner().configuration("S", columns)
    index = Partition(columns, configuration, only=BitAddress.name).bit_address
    counts = index.ranges((0,), [columns.codes[0][:50]]).counts
    assert counts.max() < ROWS / 4
