"""Rows that arrive at a join task: which queries want them, and which are late."""

from __future__ import annotations

import pathlib

import pyarrow as pa

from eddyline.spark.state.join_plan import JoinPart, JoinPlan
from eddyline.spark.state.join_worker import ArrivedRows

PARTS = {-1: JoinPart(0, 0, 10), -2: JoinPart(1, 1, 20), -3: JoinPart(65, 0, 10)}
TIMES = pa.array([5, 10, 20, None, 30], pa.int64())
WANTED = [[-1], [-1, -2], [-2, -3], [-1], []]


def lineage(parts: pa.Array, bits: dict[int, tuple[int, ...]]) -> tuple[dict, list[bool]]:
    folder = pathlib.Path()
    plan = JoinPlan(0, 1, folder, folder, (), {}, PARTS, {}, (), {}, {}, {}, bits=bits)
    rows = ArrivedRows(pa.array([{"k0": 1}] * 5), TIMES, parts)
    bitmaps, is_late = rows.lineage(plan, 0, words=2)
    return {n: own.tolist() for n, own in bitmaps.items()}, is_late.tolist()


def test_a_row_is_late_if_it_is_too_old_for_every_query_that_wants_it() -> None:
    bitmaps, is_late = lineage(pa.array(WANTED, pa.list_(pa.int32())), {})
    assert bitmaps == {
        0: [[0, 0], [1, 0], [0, 2], [0, 0], [0, 0]],
        1: [[0, 0], [0, 0], [2, 0], [0, 0], [0, 0]],
    }
    assert is_late == [True, False, False, True, False]


def test_bitmaps_mean_the_same_as_lists() -> None:
    numbers = (-3, -1, -2)
    bits = [sum(1 << numbers.index(part) for part in wanted) for wanted in WANTED]
    listed = lineage(pa.array(WANTED, pa.list_(pa.int32())), {})
    assert lineage(pa.array(bits, pa.int64()), {0: numbers}) == listed
