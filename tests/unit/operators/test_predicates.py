"""Predicates by themselves: iterator functions, lookup tables."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.operators import (
    ArrowPredicate,
    Batch,
    ColumnReader,
    LookupTable,
    PerBatch,
    RowPredicate,
)
from eddyline.operators.bitmaps import ColumnCounter, bitmap_of, overlap, widen
from eddyline.operators.shared_value import position_of_shared


def test_iterator_functions_that_look_ahead_or_answer_in_pieces() -> None:
    def looks_ahead(batches):
        previous = None
        for batch in batches:
            if previous is not None:
                yield previous
            previous = pc.greater(batch, 1)
        if previous is not None:
            yield previous

    def in_pieces(batches):
        for batch in batches:
            for row in range(len(batch)):
                yield pc.greater(batch.slice(row, 1), 1)

    for function in (looks_ahead, in_pieces):
        call = PerBatch(function, pa.concat_arrays)
        assert call(pa.array([1, 2])).to_pylist() == [False, True]
        assert call(pa.array([3])).to_pylist() == [True]


def test_an_iterator_function_is_started_once_a_task() -> None:
    starts = []

    def loads_a_model(batches):
        starts.append(1)
        for batch in batches:
            yield pc.greater(batch, 1)

    call = PerBatch(loads_a_model, pa.concat_arrays)
    for _ in range(5):
        call(pa.array([1, 2]))
    assert len(starts) == 1
    call.close()
    call(pa.array([1]))
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("other_answers", "passed", "at_fault"),
    [
        ("refuse", [True, True, True], [1, 2]),
        ("null", [True, False, False], []),
        ("cast", [True, True, False], []),
    ],
)
def test_answers_that_are_no_booleans(other_answers, passed, at_fault) -> None:
    answers: list[Any] = [True, 7, 0]
    batch = Batch([pa.array(range(3))], [ColumnReader("n")])
    outcome = RowPredicate("f", (0,), lambda n: answers[n], other_answers).evaluate(batch, None)
    assert outcome.passed.tolist() == passed
    assert sorted(outcome.errors or {}) == at_fault


def test_a_predicate_closes_its_function() -> None:
    class Opened:
        is_open = True

        def __call__(self, values: pa.Array) -> pa.Array:
            return pc.greater(values, 1)

        def close(self) -> None:
            self.is_open = False

    function = Opened()
    ArrowPredicate("f", (0,), function).close()
    assert not function.is_open
    ArrowPredicate("f", (0,), lambda values: values).close()


def test_the_time_of_making_objects_is_counted() -> None:
    class Slow(ColumnReader):
        def to_objects(self, array: pa.Array) -> list[Any]:
            time.sleep(0.002)
            return super().to_objects(array)

    batch = Batch([pa.array([1])] * 2, [Slow("a"), Slow("b")])
    began = time.perf_counter()
    for column in (0, 1, 1):
        batch.objects(column, None)
    elapsed_us = (time.perf_counter() - began) * 1e6
    assert 4_000 <= batch.converting_us <= elapsed_us


@pytest.mark.parametrize(("mutable", "conversions"), [(False, 1), (True, 3)])
def test_objects_are_made_once_a_batch_unless_a_predicate_could_change_them(
    mutable: bool, conversions: int
) -> None:
    class Counting(ColumnReader):
        count = 0

        def to_objects(self, array: pa.Array) -> list[Any]:
            self.count += 1
            return super().to_objects(array)

    reader = Counting("a")
    reader.mutable = mutable
    batch = Batch([pa.array([1, 2, 3])], [reader])
    assert batch.objects(0, None) == batch.objects(0, None) == [1, 2, 3]
    assert batch.objects(0, np.array([0, 2])) == [1, 3]
    assert reader.count == conversions


def test_shared_values_have_positions_that_no_column_has() -> None:
    assert [position_of_shared(number) for number in range(3)] == [-1, -2, -3]


def test_bits_far_behind_the_first_words_count_as_shared() -> None:
    words = 40
    mask = bitmap_of([3, 64 * 35 + 7], words)
    bitmaps = np.array([bitmap_of(slots, words) for slots in ([3], [64 * 35 + 7], [4], [])])
    assert overlap(bitmaps, mask).tolist() == [True, True, False, False]


def test_widened_bitmaps_keep_their_bits_and_are_filled_as_asked() -> None:
    bitmaps = np.array([bitmap_of([1], 1), bitmap_of([2], 1)])
    assert widen(bitmaps, 3).tolist() == [[2, 0, 0], [4, 0, 0]]
    assert widen(bitmaps, 2, filled=True).tolist() == [[2, 2**64 - 1], [4, 2**64 - 1]]


def test_counts_are_kept_when_there_is_room_for_more_slots() -> None:
    counter = ColumnCounter(1)
    counter.add(np.array([bitmap_of([1], 1), bitmap_of([1, 2], 1)]))
    counter.widen(2)
    counter.add(np.array([bitmap_of([2, 64], 2)]))
    assert counter.counts()[[1, 2, 64]].tolist() == [2, 2, 1]


class TestLookupTable:
    def test_null_is_in_no_table_whatever_the_values_beside_it_are(self) -> None:
        found = LookupTable([pa.array([1, 2])]).contains([pa.array([3, None, 1, 2])])
        assert found.tolist() == [False, False, True, True]

    def test_nan_equals_nan_and_zeros_are_one(self) -> None:
        table = LookupTable([pa.array([float("nan"), 0.0])])
        found = table.contains([pa.array([float("nan"), -0.0, 1.0, None])])
        assert found.tolist() == [True, True, False, False]

    def test_several_keys_with_nulls(self) -> None:
        table = LookupTable([pa.array([1, 1, None]), pa.array(["a", None, "b"])])
        assert len(table) == 1
        found = table.contains([pa.array([1, 1, None]), pa.array(["a", None, "b"])])
        assert found.tolist() == [True, False, False]

    def test_keys_in_other_clothes(self) -> None:
        table = LookupTable([pa.array([1.0, float("nan")])])
        encoded = pa.array([float("nan"), 2.0]).dictionary_encode()
        assert table.contains([encoded]).tolist() == [True, False]
        assert table.contains([pa.chunked_array([[1.0], [2.0]])]).tolist() == [True, False]
        times = LookupTable([pa.array([1_000_000], pa.timestamp("us"))])
        assert times.contains([pa.array([1_000, 5], pa.timestamp("ms"))]).tolist() == [True, False]

    def test_empty_table_and_empty_batch(self) -> None:
        table = LookupTable([pa.array([], pa.string())])
        assert table.contains([pa.array(["a"])]).tolist() == [False]
        assert table.contains([pa.array([], pa.string())]).tolist() == []
