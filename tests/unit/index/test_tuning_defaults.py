"""The default tuning follows a change of patterns at once, whatever sizes partitions have."""

from __future__ import annotations

import numpy as np

from eddyline.index.columns import Columns
from eddyline.index.partition import Partition
from eddyline.index.tuner import Tuner

ROWS = 2_500


def test_one_batch_of_new_patterns_is_enough_and_a_rare_pattern_has_bits() -> None:
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 1 << 64, ROWS, dtype=np.uint64) for _ in range(3)]
    columns, tuner = Columns(codes, [None] * 3), Tuner()
    for main in (0, 1, 2):
        rare = (main + 1) % 3
        partition = Partition(columns, tuner.configuration("A", columns))
        tuner.arrived("A", ROWS)
        tuner.record("A", (main,), 1_940)
        tuner.record("A", (rare,), 60)
        tuner.tune({"A": [partition]})
        bits = tuner.configuration("A", columns).bits
        # 3 % of the searches would compare all 2,500 rows without bits of their own.
        assert bits[main] > bits[rare] > 0
        assert bits[(main + 2) % 3] == 0


def test_a_small_new_partition_does_not_decide_for_large_ones() -> None:
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 1 << 64, 40_000, dtype=np.uint64) for _ in range(2)]
    tuner = Tuner()
    partitions = [
        Partition(columns, tuner.configuration("A", columns))
        for columns in (Columns([c[:rows] for c in codes], [None] * 2) for rows in (40_000, 100))
    ]
    tuner.arrived("A", 40_100)
    tuner.record("A", (1,), 10_000_000)
    tuner.tune({"A": partitions})
    assert [partition.configuration.bits for partition in partitions] == [(0, 15), (0, 6)]
