"""What a function of a user may raise: anything. It concerns the row it was called for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import ERROR_LENGTH_MAX, PredicateFailedError, describe_error
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.held_errors import judge_in_parts
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import ArrowPredicate, Batch, ColumnReader, RowPredicate


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Odd(BaseException):
    pass


def raising(error: BaseException):
    def function(value: int) -> bool:
        if value == 3:
            raise error
        return True

    return function


EVERY = [
    ValueError("x"),
    SystemExit(1),
    KeyboardInterrupt(),
    Odd("odd"),
    Unshowable(),
    MemoryError(),
]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_a_shared_predicate_fails_for_the_queries_that_use_it_and_no_others(error) -> None:
    eddy = SharedEddy({}, seed=0)
    eddy.add({0: SharedQuery(1, needs=("bad",)), 1: SharedQuery(2)})
    eddy.bind({}, {"bad": RowPredicate("bad", (0,), raising(error))})
    matches = eddy.run(Batch([pa.array([1, 3, 5])], [ColumnReader("a")]))
    assert list(matches.failures) == [1]
    assert type(error).__name__ in matches.failures[1]
    assert matches.rows[matches.numbers == 2].tolist() == [0, 1, 2]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_the_row_at_fault_is_found_in_calls_for_many(error) -> None:
    def vectorised(values: pa.Array) -> pa.Array:
        if 3 in values.to_pylist():
            raise error
        return pa.array([True] * len(values))

    batch = Batch([pa.array([1, 2, 3, 4])], [ColumnReader("a")])
    outcome = judge_in_parts(ArrowPredicate("bad", (0,), vectorised), batch, np.arange(4))
    assert list(outcome.errors or {}) == [2]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), Unshowable()])
def test_a_router_names_the_predicate_whatever_it_raised(error) -> None:
    router = Router([RowPredicate("bad", (0,), raising(error))], [ColumnReader("a")])
    with pytest.raises(PredicateFailedError, match="predicate 'bad' raised"):
        router.route([pa.array([1, 3])], rows=2)
    lenient = Router(
        [RowPredicate("bad", (0,), raising(error))],
        [ColumnReader("a")],
        options=RouterOptions(on_error="drop"),
    )
    assert lenient.route([pa.array([1, 3])], rows=2).tolist() == [True, False]


def test_descriptions_are_short_enough_to_be_stored() -> None:
    assert len(describe_error(ValueError("x" * 10_000))) == ERROR_LENGTH_MAX
