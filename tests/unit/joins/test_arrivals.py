"""Rows that have left their window of rows are dropped when they are probed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.joins.arrivals import UNCOUNTED, ArrivalClock
from eddyline.joins.keys import key_column
from eddyline.joins.match_lists import FOREVER_US, Probe, RowSet
from eddyline.joins.plan import KeyRef, Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM

EVERYONE = np.ones(1, dtype=np.uint64)


def run_of(sequence: list[int] | None, count: int) -> Run:
    keys = [key_column(pa.array([7] * count))]
    lineage = {0: np.ones((count, 1), dtype=np.uint64)}
    payload = pa.record_batch({"v": pa.array(range(count))})
    times = np.zeros(count, dtype=np.int64)
    numbers = None if sequence is None else np.array(sequence)
    return Run(keys, times, lineage, payload, numbers)


def test_a_probe_finds_rows_of_the_window_only() -> None:
    """The third new row of the probing stream arrives when three more of the other have."""
    uncounted, old, new = run_of(None, 2), run_of([5, 8, 9], 3), run_of([10, 12], 2)
    stem = SteM([uncounted, old], new, ArrivalClock(before=10, first=0, count=3))
    probing = SteM([], run_of([0, 1, 2], 3), ArrivalClock(before=0, first=3, count=3))
    ref = KeyRef(Role(1), 0)
    assert probing.new is not None
    parent = RowSet(
        probing,
        np.arange(3),
        np.zeros(3, dtype=np.int64),
        np.full(3, FOREVER_US),
        np.ones((3, 1), dtype=np.uint64),
        {ref: probing.new.keys[0]},
    )
    for size, expected in ((1, [12]), (3, [10, 12]), (5, [8, 9, 10, 12]), (8, [5, 8, 9, 10, 12])):
        probe = Probe(stem, (0,), [ref], EVERYONE, 0, None, size, with_new=True)
        ids = probe.run(parent, np.array([2]))[1]
        assert sorted(stem._sequence(ids)) == expected
    everything = Probe(stem, (0,), [ref], EVERYONE, 0, None, None, with_new=True)
    ids = everything.run(parent, np.array([2]))[1]
    assert sorted(stem._sequence(ids)) == [UNCOUNTED, UNCOUNTED, 5, 8, 9, 10, 12]


def test_a_row_that_arrives_earlier_has_fewer_rows_after_it() -> None:
    clock = ArrivalClock(before=4, first=2, count=3)
    stem = SteM([run_of([2, 3], 2)], run_of([4, 5, 6], 3), clock)
    ids = np.array([0, 1, 2])
    assert stem.rows_since(ids, np.array([1, 1, 2])).tolist() == [1, 0, 0]
    assert stem.rows_since(ids, np.array([4, 4, 4])).tolist() == [4, 3, 2]


def test_stored_times_have_the_zone_that_is_asked_for() -> None:
    """Rows from sessions with other time zones stand in one result."""
    run = run_of(None, 1)
    run.payload = pa.record_batch({"ts": pa.array([7], pa.timestamp("us", "Asia/Tokyo"))})
    utc = pa.field("ts", pa.timestamp("us", "UTC"))
    assert run.column(utc).equals(pa.array([7], utc.type))
