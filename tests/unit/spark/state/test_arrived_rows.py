"""Rows that arrive at a join task: which queries want them, and which are late."""

from __future__ import annotations

import pathlib

import pyarrow as pa

from eddyline.spark.state.arrived_rows import Arrivals, ArrivedRows
from eddyline.spark.state.join_note import HeavyKey
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, StemLayout
from eddyline.spark.state.join_worker import _to_runs

PARTS = {
    -1: JoinPart(0, 0, 10, stem=0),
    -2: JoinPart(1, 1, 20, stem=0),
    -3: JoinPart(65, 0, 10, stem=0),
    -4: JoinPart(2, 0, 15, stem=1),
}
TIMES = pa.array([5, 10, 20, None, 30], pa.int64())
WANTED = [[-1], [-1, -2], [-2, -3], [-1], [-1]]


def lineage(
    parts: pa.Array, bits: dict[int, tuple[int, ...]], stem: int = 0
) -> tuple[dict, list[bool]]:
    folder = pathlib.Path()
    stems = (StemLayout("a", (), (), 2, pa.schema([]), 0, "ts"),) * 2
    plan = JoinPlan(0, 1, folder, folder, (), {}, PARTS, {}, stems, {}, {}, {}, bits=bits)
    rows = ArrivedRows(pa.array([{"k0": 1}] * len(parts)), TIMES[: len(parts)], parts)
    bitmaps, is_late, _ = rows.lineage(plan, stem, words=2)
    return {n: own.tolist() for n, own in bitmaps.items()}, is_late.tolist()


def test_a_row_is_late_if_it_is_too_old_for_every_query_that_wants_it() -> None:
    bitmaps, is_late = lineage(pa.array(WANTED, pa.list_(pa.int32())), {})
    assert bitmaps == {
        0: [[0, 0], [1, 0], [0, 2], [0, 0], [1, 0]],
        1: [[0, 0], [0, 0], [2, 0], [0, 0], [0, 0]],
    }
    assert is_late == [True, False, False, True, False]


def test_a_row_that_several_stems_receive_is_late_in_the_first_of_them() -> None:
    wanted = pa.array([[-1, -4], [-4], [-1, -4]], pa.list_(pa.int32()))  # times 5, 10, 20
    _, in_first = lineage(wanted, {}, stem=0)
    bitmaps, in_second = lineage(wanted, {}, stem=1)
    assert (in_first, in_second) == ([True, False, False], [False, True, False])
    assert bitmaps == {0: [[0, 0], [0, 0], [4, 0]]}


def test_bitmaps_mean_the_same_as_lists() -> None:
    numbers = (-3, -1, -2)
    bits = [sum(1 << numbers.index(part) for part in wanted) for wanted in WANTED]
    listed = lineage(pa.array(WANTED, pa.list_(pa.int32())), {})
    assert lineage(pa.array(bits, pa.int64()), {0: numbers}) == listed


def test_a_large_task_names_the_key_that_most_rows_have() -> None:
    keys = ["hall"] * 7_000 + ["attic"] * 4_000
    own = ArrivedRows(pa.array([{"k0": key} for key in keys]), TIMES, pa.array([]))
    few = ArrivedRows(pa.array([{"k0": 1}]), TIMES, pa.array([]))
    stems = (StemLayout("light/room", (), (), 1, pa.schema([]), 0, "ts"),) * 2
    folder = pathlib.Path()
    plan = JoinPlan(0, 1, folder, folder, (), {}, {}, {}, stems, {}, {}, {})
    large = Arrivals(3, 11_001, {0: own, 1: few})
    assert large.heavy_key(plan) == {3: HeavyKey("light/room", "hall", 7_000)}
    assert Arrivals(3, 9_999, {0: own}).heavy_key(plan) == {}
    unkeyed = ArrivedRows(pa.array([{"row": 1}] * 11_000), TIMES, pa.array([]))
    assert Arrivals(3, 11_000, {0: unkeyed}).heavy_key(plan) == {}


def test_a_row_with_copies_counts_once_and_is_late_once() -> None:
    folder = pathlib.Path()
    stem = StemLayout("a/*2", (), (), 1, pa.schema([]), 0, "ts", first_tasks=frozenset([0, 2]))
    parts = {-1: JoinPart(0, 0, 10, stem=0)}
    plan = JoinPlan(0, 4, folder, folder, (), {}, parts, {}, (stem,), {}, {}, {})
    wanted = pa.array([[-1]], pa.list_(pa.int32()))
    rows = ArrivedRows(pa.array([{"k0": 1}]), pa.array([5], pa.int64()), wanted)
    found = [_to_runs(plan, Arrivals(task, 1, {0: rows}), 1)[1:] for task in range(4)]
    assert [bool(late) for late, _ in found] == [True, False, True, False]
    assert [originals for _, originals in found] == [1, 0, 1, 0]


def test_a_query_without_windows_of_time_has_no_late_rows() -> None:
    folder = pathlib.Path()
    stem = StemLayout("a/k", (), (), 1, pa.schema([]), 0, None)
    parts = {-1: JoinPart(0, 0, None, stem=0)}
    plan = JoinPlan(0, 1, folder, folder, (), {}, parts, {}, (stem,), {}, {}, {})
    wanted = pa.array([[-1], [-1]], pa.list_(pa.int32()))
    rows = ArrivedRows(pa.array([{"k0": 1}] * 2), pa.array([None, 5], pa.int64()), wanted)
    bitmaps, is_late, _ = rows.lineage(plan, 0, words=1)
    assert bitmaps[0].ravel().tolist() == [1, 1]
    assert not is_late.any()
