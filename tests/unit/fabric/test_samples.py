"""Rows that are profiled: as many of each fate as rows met it, and the newest in a burst."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.totals import Totals
from eddyline.operators import Batch
from eddyline.testing import make_filters, to_columns

ROWS = 4_000


def follow(passed: np.ndarray, rows: np.ndarray | None = None) -> RouteTrace:
    """Send rows, or some of them, through filters in written order."""
    filters, readers = make_filters([0] * passed.shape[1])
    array = OperatorArray(filters, 0, Totals(len(filters)), (1.0,) * len(filters))
    batch = Batch([pa.array(column) for column in to_columns(passed)], readers, len(passed))
    token = RToken(tuple(range(len(filters))))
    return array.follow(token, batch, rows, HeldErrors())


def first_drops(passed: np.ndarray) -> np.ndarray:
    return np.where(passed.all(axis=1), passed.shape[1], passed.argmin(axis=1))


@pytest.fixture
def passed() -> np.ndarray:
    return np.random.default_rng(0).random((ROWS, 3)) < [0.4, 0.7, 0.5]


@pytest.mark.parametrize("rows", [None, np.arange(1, ROWS, 3)])
@pytest.mark.parametrize("count", [1, 40, 300])
def test_a_sample_has_the_shares_of_the_rows(passed, rows, count: int) -> None:
    trace, fates = follow(passed, rows), first_drops(passed)
    entered = np.arange(ROWS) if rows is None else rows
    picked, dropped_at = trace.sample(count, 0, np.random.default_rng(1))
    assert len(picked) == count
    assert (np.diff(picked) > 0).all()  # none of them twice
    assert set(picked) <= set(entered.tolist())
    assert dropped_at.tolist() == fates[picked].tolist()
    wanted = np.bincount(fates[entered], minlength=4) * count / len(entered)
    assert np.abs(np.bincount(dropped_at, minlength=4) - wanted).max() < 1.0 + 1e-9


def test_every_row_is_picked_as_often_as_any_other(passed) -> None:
    passed = passed[:60]
    trace, rng = follow(passed), np.random.default_rng(2)
    times = np.zeros(60)
    for _ in range(3_000):
        times[trace.sample(7, 0, rng)[0]] += 1
    assert np.abs(times / (3_000 * 7 / 60) - 1).max() < 0.25


@pytest.mark.parametrize("rows", [None, np.arange(1, ROWS, 3)])
def test_none_is_picked_before_the_newest_rows(passed, rows) -> None:
    trace = follow(passed, rows)
    since = trace.entered_count - 200
    picked, _ = trace.sample(200, since, np.random.default_rng(3))
    entered = np.arange(ROWS) if rows is None else rows
    assert picked.tolist() == entered[since:].tolist()


def test_rows_that_nothing_drops_are_sampled_too() -> None:
    trace = follow(np.ones((100, 2), dtype=bool))
    picked, dropped_at = trace.sample(10, 0, np.random.default_rng(4))
    assert len(picked) == 10
    assert dropped_at.tolist() == [2] * 10
