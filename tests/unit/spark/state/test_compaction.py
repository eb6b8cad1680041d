"""Merged runs have everything that their rows had, and leave out what nobody needs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.run import Run
from eddyline.spark.state.compaction import merge_runs
from eddyline.spark.state.needs import Need

SCHEMA = pa.schema([("v", pa.int64())])


def run_of(values: list[int], sequence: list[int] | None, wanted: list[int]) -> Run:
    lineage = {n: np.array([[word >> n & 1] for word in wanted], dtype=np.uint64) for n in range(2)}
    return Run(
        [],
        np.array(values) * 10,
        lineage,
        pa.record_batch({"v": pa.array(values, pa.int64())}),
        None if sequence is None else np.array(sequence),
        [np.array(values, dtype=np.float64) / 2],
    )


def test_sequence_numbers_and_compared_columns_stay_with_their_rows() -> None:
    runs = [run_of([1, 2], None, [1, 1]), run_of([3, 4, 5], [7, 8, 9], [1, 1, 2])]
    merged = merge_runs(runs, [Need(0, 0), Need(0, 1)], SCHEMA)
    assert merged is not None
    assert merged.payload["v"].to_pylist() == [1, 2, 3, 4, 5]
    assert merged.sequence is not None
    assert merged.sequence.tolist() == [UNCOUNTED, UNCOUNTED, 7, 8, 9]
    assert merged.compared[0].tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]


def test_a_row_is_needed_by_time_and_number_of_each_role() -> None:
    runs = [run_of([1, 2, 3, 4], [6, 7, 8, 9], [1, 1, 2, 3])]
    by_number = merge_runs(runs, [Need(0, 0, since_row=7)], SCHEMA)
    assert by_number is not None
    assert by_number.payload["v"].to_pylist() == [2, 4]
    other_role = merge_runs(runs, [Need(0, 1, since_row=9), Need(0, 0, since_us=11)], SCHEMA)
    assert other_role is not None
    assert other_role.payload["v"].to_pylist() == [2, 4]
    both = merge_runs(runs, [Need(0, 0, since_us=11, since_row=8)], SCHEMA)
    assert both is not None
    assert both.payload["v"].to_pylist() == [4]
    assert merge_runs(runs, [Need(0, 0, since_us=50)], SCHEMA) is None
