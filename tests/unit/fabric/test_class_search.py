"""The window of profiled rows that classes are searched in: its order, and its bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric.tactics.class_search import WINDOW_ROWS, ClassSearch
from eddyline.mesh import MeshOptions
from eddyline.operators import Batch, ColumnReader

OPERATORS = 12


def batch_of(numbers: range) -> Batch:
    return Batch([pa.array(numbers)], [ColumnReader("number")], len(numbers))


def drops_of(numbers: list[int]) -> np.ndarray:
    """Return the bits of each number, so that it can be told from what the search has kept."""
    return (np.array(numbers)[:, None] >> np.arange(OPERATORS)) % 2 == 1


def kept(search: ClassSearch) -> list[int]:
    drops = search.training_set(np.ones(OPERATORS)).drops
    return (drops @ (1 << np.arange(OPERATORS))).tolist()


@pytest.fixture
def search() -> ClassSearch:
    return ClassSearch({"number": 0}, MeshOptions(), seed=0)


def test_rows_are_kept_in_the_order_in_which_they_came(search: ClassSearch) -> None:
    """Profiles of one batch may name its rows in any order; batches follow one another."""
    first, second = batch_of(range(100)), batch_of(range(100, 200))
    for batch, offset, rows in (
        (first, 0, [50, 70]),
        (first, 0, [10, 30]),
        (second, 100, [99]),
        (second, 100, [0, 5]),
    ):
        search.add(batch, np.array(rows), drops_of([row + offset for row in rows]))
    assert kept(search) == [10, 30, 50, 70, 100, 105, 199]


def test_the_oldest_rows_leave_the_window(search: ClassSearch) -> None:
    batches = []
    for begin in range(0, 4_000, 100):
        batches.append(batch_of(range(begin, begin + 100)))
        numbers = list(range(begin, begin + 100))
        search.add(batches[-1], np.arange(100), drops_of(numbers))
        assert len(search) == min(begin + 100, WINDOW_ROWS)
    assert kept(search) == list(range(4_000 - WINDOW_ROWS, 4_000))


def test_a_window_is_never_smaller_than_it_may_be(search: ClassSearch) -> None:
    """What leaves is whole profiles, and only those that the newest rows make up for."""
    for begin in (0, 600, 1_200):
        search.add(batch_of(range(600)), np.arange(600), drops_of(list(range(begin, begin + 600))))
    assert kept(search) == list(range(600, 1_800))


def test_rows_are_wanted_again_after_rows_that_were_known_from_another_are_discarded(
    search: ClassSearch,
) -> None:
    assert search.is_short_of_rows
    search.restore(searches=1, searched_rows=200)
    assert not search.is_short_of_rows
    search.clear()
    assert search.is_short_of_rows
