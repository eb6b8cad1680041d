"""A search finds the rows of its window, whatever arrives and is purged meanwhile."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.arrays import Codes
from eddyline.index.columns import Columns
from eddyline.index.index import Index
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.time_partitions import TimePartitions

COLUMNS = 2


def codes_of(numbers: list[int]) -> list[Codes]:
    """Return codes of rows of which every third has the same first and every second column."""
    rows = np.array(numbers, dtype=np.uint64)
    return [(rows % np.uint64(n)) << np.uint64(60) for n in (3, 2)]


def found(state: TimePartitions, search: int) -> list[int]:
    """Return the numbers of the rows that a search by both columns finds for row 0."""
    rows: list[int] = []
    for partition, probes, positions in state.search(search, (0, 1), codes_of([0])):
        assert not probes.any()
        rows += (partition.number * state.partition_rows + positions).tolist()
    return rows


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_searches_find_the_rows_of_their_window_until_they_end(seed: int) -> None:
    rng = random.Random(seed)
    size, window = rng.randint(1, 5), rng.randint(1, 12)
    state = TimePartitions(COLUMNS, size, window, LazyHash)
    arrived, running = 0, list[int]()
    for _ in range(30):
        rows = list(range(arrived, arrived + rng.randint(0, 7)))
        if rows:
            state.append(codes_of(rows))
        arrived += len(rows)
        if rng.random() < 0.4:
            running.append(state.begin_search())
        if running and rng.random() < 0.4:
            state.end_search(running.pop(rng.randrange(len(running))))
        if rng.random() < 0.5:
            state.purge()
        assert state.received == arrived
        for search in {*running, state.number}:
            # Of the partition that it began in, and of as many before it as a window reaches.
            oldest = max(0, search - state.partitions_in_window) * size
            expected = range(oldest, min(arrived, (search + 1) * size))
            assert found(state, search) == [row for row in expected if row % 6 == 0]


def test_a_window_reaches_as_many_partitions_as_it_needs() -> None:
    for rows, expected in ((1, 1), (10, 1), (11, 2), (20, 2)):
        assert TimePartitions(1, 10, rows, LazyHash).partitions_in_window == expected


def test_only_what_no_search_can_concern_is_removed() -> None:
    state = TimePartitions(COLUMNS, partition_rows=2, window_rows=4, make=LazyHash)
    state.append(codes_of(list(range(5))))
    first, second = state.begin_search(), state.begin_search()
    state.append(codes_of(list(range(5, 21))))
    assert (first, second, state.number, state.earliest_search) == (2, 2, 10, 2)
    assert state.purge() == 0  # what the searches concern begins with the first partition
    state.end_search(first)
    assert state.earliest_search == 2
    assert state.purge() == 0
    state.end_search(second)
    assert state.earliest_search == 10
    assert state.purge() == 8
    assert [partition.number for partition in state.partitions] == [8, 9, 10]
    assert state.purge() == 0


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_memory_is_bounded_while_rows_arrive(batch: int) -> None:
    state = TimePartitions(COLUMNS, partition_rows=10, window_rows=25, make=LazyHash)
    for begin in range(0, 1_000, batch):
        state.append(codes_of(list(range(begin, min(begin + batch, 1_000)))))
        state.purge()
        assert len(state.partitions) <= 4
        assert all(len(partition) <= 10 for partition in state.partitions)
    assert not state._in_flight


def test_an_index_is_built_once_for_rows_that_stay_and_again_for_rows_that_come() -> None:
    built: list[int] = []

    def make(columns: Columns) -> Index:
        built.append(len(columns))
        return LazyHash(columns)

    state = TimePartitions(COLUMNS, partition_rows=4, window_rows=8, make=make)
    state.append(codes_of(list(range(6))))
    for _ in range(3):
        found(state, state.begin_search())
    assert built == [4, 2]
    state.append(codes_of([6]))
    found(state, state.begin_search())
    assert built == [4, 2, 3]
