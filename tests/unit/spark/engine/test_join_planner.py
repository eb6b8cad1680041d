"""What the plan of a micro-batch's joins takes over from stored rows."""

from __future__ import annotations

import pathlib

import pytest

from eddyline.spark.engine.join_planner import JoinPlanner
from eddyline.spark.engine.wanted_parts import ListedParts
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.state_file import StateFile


@pytest.mark.parametrize(("stored", "tasks"), [([], 2), ([3], 3)])
def test_stored_rows_keep_their_number_of_tasks(
    tmp_path: pathlib.Path, stored: list[int], tasks: int
) -> None:
    """With another number of cores, rows would go to other tasks than their partners."""
    state = JoinState(tmp_path)
    state.apply([StateFile("x", 0, 0, count, 9, 0, {}) for count in stored], ())
    planned = JoinPlanner([], tmp_path, tasks=2).plan(1, {}, {}, ListedParts("q"), state, {})
    assert planned.plan.tasks == planned.exchange.tasks == tasks
