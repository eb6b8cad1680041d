"""Partial results: only those that some query wants are carried on."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.joins.expansion import Partial


def partial(interested: list[int]) -> Partial:
    """Return three partial results, wanted by these queries; by the same if only one is given."""
    rows = np.arange(3)
    bitmaps = np.array(interested, dtype=np.uint64)[:, None]
    return Partial({-1: rows, 0: rows + 10}, rows + 20, rows + 30, bitmaps)


@pytest.mark.parametrize(
    ("interested", "mask", "kept"),
    [
        ([0b01, 0b10, 0b11], 0b01, [0, 2]),
        ([0b01, 0b10, 0b11], 0b11, [0, 1, 2]),
        ([0b01, 0b10, 0b11], 0b100, []),
        ([0b01], 0b01, [0, 1, 2]),
        ([0b01], 0b10, []),
    ],
)
def test_partial_results_that_none_of_the_queries_wants_are_left_out(
    interested: list[int], mask: int, kept: list[int]
) -> None:
    wanted = partial(interested).wanted_by(np.array([mask], dtype=np.uint64))
    assert len(wanted) == len(kept)
    assert wanted.positions[-1].tolist() == kept
    assert wanted.positions[0].tolist() == [row + 10 for row in kept]
    assert wanted.newest_us.tolist() == [row + 20 for row in kept]
    assert wanted.deadline_us.tolist() == [row + 30 for row in kept]
    assert len(wanted.interested) in (1, len(kept))
