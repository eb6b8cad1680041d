"""Values that predicates share: computed once a row, only where needed, errors kept per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import PredicateFailedError
from eddyline.fabric import Router, RouterOptions
from eddyline.operators import ColumnReader, RowPredicate, SharedValue

READERS = [ColumnReader("a")]


class Parse:
    """Counts its calls by value."""

    def __init__(self, fails_on: int | None = None) -> None:
        self.calls: list[int] = []
        self.fails_on = fails_on

    def __call__(self, a: int) -> list[int]:
        self.calls.append(a)
        if a == self.fails_on:
            raise ValueError(f"cannot parse {a}")
        return [a]


def router(parse: Parse, *functions, first=None, **options) -> Router:
    operators = [RowPredicate(f"p{i}", (-1,), function) for i, function in enumerate(functions)]
    if first is not None:
        operators.insert(0, RowPredicate("first", (0,), first))
    shared = [SharedValue("doc", (0,), parse)]
    return Router(operators, READERS, "as_written", options=RouterOptions(**options), shared=shared)


def test_it_is_computed_once_a_row() -> None:
    parse = Parse()
    judged = router(parse, lambda doc: doc[0] % 2 == 0, lambda doc: doc[0] % 3 == 0)
    verdict = judged.route([pa.array(range(600))], 600)
    assert np.flatnonzero(verdict).tolist() == list(range(0, 600, 6))
    assert parse.calls == list(range(600))


def test_rows_on_which_no_predicate_needs_it_are_not_computed() -> None:
    parse = Parse()
    judged = router(parse, lambda doc: True, lambda doc: True, first=lambda a: a % 10 == 0)
    assert judged.route([pa.array(range(100))], 100).sum() == 10
    assert parse.calls == list(range(0, 100, 10))


def test_its_error_is_the_error_of_the_predicate_that_needed_it() -> None:
    judged = router(Parse(fails_on=3), lambda doc: True)
    with pytest.raises(PredicateFailedError) as caught:
        judged.route([pa.array(range(10))], 10)
    assert caught.value.predicate == "p0"
    assert caught.value.error == "ValueError: cannot parse 3"
    assert caught.value.row == {"a": "3"}


def test_its_error_is_forgotten_where_another_predicate_drops_the_row() -> None:
    operators = [
        RowPredicate("p", (-1,), lambda doc: True),
        RowPredicate("q", (0,), lambda a: a < 3),
    ]
    judged = Router(operators, READERS, shared=[SharedValue("doc", (0,), Parse(fails_on=3))])
    assert judged.route([pa.array(range(10))], 10).sum() == 3


@pytest.mark.parametrize(("on_error", "kept"), [("drop", 9), ("keep", 10)])
def test_on_error_decides(on_error: str, kept: int) -> None:
    judged = router(Parse(fails_on=3), lambda doc: True, lambda doc: True, on_error=on_error)
    assert judged.route([pa.array(range(10))], 10).sum() == kept


def test_shared_values_may_need_each_other() -> None:
    parse = Parse(fails_on=3)
    shared = [SharedValue("doc", (0,), parse), SharedValue("size", (-1,), lambda doc: doc[0] * 2)]
    judged = Router(
        [RowPredicate("even", (-2,), lambda size: size > 8), RowPredicate("p", (-1,), bool)],
        READERS,
        shared=shared,
        options=RouterOptions(on_error="drop"),
    )
    assert np.flatnonzero(judged.route([pa.array(range(8))], 8)).tolist() == [5, 6, 7]
    assert sorted(parse.calls) == list(range(8))


def test_its_cost_is_booked_to_the_predicate_that_reaches_it_first() -> None:
    def slow(a: int) -> int:
        return sum(range(2_000)) * 0 + a

    judged = router(slow, lambda doc: True, lambda doc: True)
    judged.route([pa.array(range(400))], 400)
    first, second = judged.totals.busy_us
    assert first > 3 * second
