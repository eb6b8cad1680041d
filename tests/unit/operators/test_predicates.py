"""Predicates by themselves: iterator functions, lookup tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.operators import LookupTable, PerBatch


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


class TestLookupTable:
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
