"""What the driver keeps of a micro-batch's joins."""

from __future__ import annotations

import pathlib

from eddyline.journal import Event
from eddyline.journal.events import JoinTaskSkewed, ProbeClassesDropped, ProbeOrderChanged
from eddyline.spark.engine.join_runner import JoinRunner
from eddyline.spark.state.join_note import HeavyKey, JoinNote


def test_changed_orders_of_probes_are_kept_and_written_into_the_journal(
    tmp_path: pathlib.Path,
) -> None:
    events: list[Event] = []
    runner = JoinRunner([], tmp_path, {}, 2, events.append)
    runner._learn(JoinNote(orders={"light": ("temp", "noise")}))
    runner._learn(JoinNote(orders={"light": ("temp", "noise")}))
    assert not events
    runner._learn(JoinNote(orders={"light": ("noise", "temp")}, candidates=7, matches=3))
    (event,) = events
    assert event == ProbeOrderChanged(
        role="light",
        before=("temp", "noise"),
        after=("noise", "temp"),
        details={"candidates": 7, "matches": 3},
    )
    runner._learn(JoinNote(orders={"light": ("noise", "temp", "wind")}))  # another set of probes
    assert len(events) == 1
    assert runner._planner.orders == {"light": ("noise", "temp", "wind")}


def test_changes_of_classes_that_workers_report_are_in_the_journal(tmp_path: pathlib.Path) -> None:
    events: list[Event] = []
    dropped = ProbeClassesDropped(role="light", reason="its rows have other columns")
    note = JoinNote(events=[dropped.to_dict()])
    JoinRunner([], tmp_path, {}, 2, events.append)._learn(JoinNote.merge([note, JoinNote()]))
    assert events == [dropped]


def test_a_task_with_most_of_the_rows_is_reported_once_with_its_key(tmp_path: pathlib.Path) -> None:
    events: list[Event] = []
    runner = JoinRunner([], tmp_path, {}, 2, events.append)
    heavy = {1: HeavyKey("light/room", "hall", 29_000)}
    even = JoinNote(rows=60_000, task_rows={0: 29_000, 1: 31_000}, heavy=heavy)
    runner._report_skew(even, tasks=2)
    assert not events
    notes = [
        JoinNote(rows=8_000, task_rows={0: 8_000}),
        JoinNote(rows=32_000, task_rows={1: 32_000}, heavy=heavy),
    ]
    merged = JoinNote.from_dict(JoinNote.merge(notes).to_dict())
    runner._report_skew(merged, tasks=1)  # there is nothing to compare it with
    assert not events
    for _ in range(2):
        runner._report_skew(merged, tasks=2)
    assert events == [
        JoinTaskSkewed(
            stem="light/room", key="hall", key_rows=29_000, task_rows=32_000, rows=40_000
        )
    ]
    assert "32,000 of 40,000 rows: 29,000 of light/room have the key hall" in events[0].sentence()
