"""What the driver keeps of a micro-batch's joins."""

from __future__ import annotations

import pathlib

from eddyline.journal import Event
from eddyline.journal.events import ProbeClassesDropped, ProbeOrderChanged
from eddyline.spark.engine.join_runner import JoinRunner
from eddyline.spark.state.join_note import JoinNote


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
