"""The router: the right rows whatever the order, errors held back, only rows that are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.errors import EddylineError, InvalidPredicateError, PredicateFailedError
from eddyline.fabric import Router, RouterOptions
from eddyline.operators import (
    ArrowPredicate,
    Batch,
    ColumnReader,
    Lookup,
    LookupTable,
    Operator,
    PandasPredicate,
    PerBatch,
    RowPredicate,
)
from eddyline.ordering import POLICIES

READERS = [ColumnReader("a"), ColumnReader("b")]


class Boom(Exception):
    pass


def random_operator(rng: np.random.Generator, number: int, raising: bool) -> tuple[Operator, Any]:
    """Return an operator, and what it stands for: from a row to True, False, None or Boom."""
    column = int(rng.integers(2))
    modulus, residue = int(rng.integers(2, 6)), int(rng.integers(0, 3))
    bad = int(rng.integers(0, 30)) if raising else -1
    kind = rng.choice(["row", "pandas", "arrow", "lookup", "iterator"])

    def truth(row: tuple[int | None, int | None]) -> Any:
        value = row[column]
        if value is None:
            return None
        if value == bad and kind != "lookup":
            return Boom
        return value % modulus != residue

    def judge(value: int | None) -> bool | None:
        if value is None:
            return None
        if value == bad:
            raise Boom(value)
        return value % modulus != residue

    name, columns = f"p{number}", (column,)
    if kind == "row":
        return RowPredicate(name, columns, judge), truth
    if kind == "arrow":
        return ArrowPredicate(
            name, columns, lambda values: pa.array([judge(v) for v in values.to_pylist()])
        ), truth
    if kind == "iterator":

        def batches(arrays):
            for values in arrays:
                yield pa.array([judge(v) for v in values.to_pylist()], pa.bool_())

        return ArrowPredicate(name, columns, PerBatch(batches, pa.concat_arrays)), truth
    if kind == "pandas":

        def of_series(values):
            if (values == bad).any():
                raise Boom(bad)
            return (values % modulus != residue) & values.notna()

        return PandasPredicate(name, columns, of_series), truth
    keys = [v for v in range(30) if v % modulus != residue]
    return Lookup(name, columns, LookupTable([pa.array(keys)])), truth


def expected(rows: list, truths: list, on_error: str) -> list[bool] | None:
    """Return what must be kept; None if the job must fail."""
    kept = []
    for row in rows:
        answers = [truth(row) for truth in truths]
        if any(answer is not True and answer is not Boom for answer in answers):
            kept.append(False)
        elif Boom in answers:
            if on_error == "raise":
                return None
            kept.append(on_error == "keep")
        else:
            kept.append(True)
    return kept


@given(
    seed=st.integers(0, 2**32),
    operators=st.integers(1, 5),
    policy=st.sampled_from(list(POLICIES)),
    on_error=st.sampled_from(["raise", "drop", "keep"]),
    raising=st.booleans(),
)
@settings(max_examples=150)
def test_any_route_keeps_exactly_the_right_rows(seed, operators, policy, on_error, raising):
    rng = np.random.default_rng(seed)
    made = [random_operator(rng, number, raising) for number in range(operators)]
    truths = [truth for _, truth in made]
    pinned = {i for i in range(operators) if rng.random() < 0.2}
    router = Router(
        [operator for operator, _ in made],
        READERS,
        policy,
        pinned,
        RouterOptions(on_error=on_error, chunk_rows=int(rng.integers(1, 200)), seed=seed),
    )
    for _ in range(4):
        count = int(rng.integers(0, 300))
        values = rng.integers(0, 30, (count, 2))
        nulls = rng.random((count, 2)) < 0.1
        columns = [pa.array(values[:, c], mask=nulls[:, c]) for c in (0, 1)]
        rows = list(zip(columns[0].to_pylist(), columns[1].to_pylist(), strict=True))
        right = expected(rows, truths, on_error)
        if right is None:
            with pytest.raises(PredicateFailedError, match="raised Boom"):
                router.route(columns, count)
            return
        assert router.route(columns, count).tolist() == right


def route_one(operators: list[Operator], **options: Any) -> list[bool]:
    router = Router(operators, READERS, "as_written", options=RouterOptions(**options))
    return router.route([pa.array([1, 2, 3, 4]), pa.array([0, 0, 1, 1])], 4).tolist()


def fails_on(value: int):
    def judge(a: int) -> bool:
        if a == value:
            raise ValueError(f"cannot judge {a}")
        return True

    return judge


class TestErrors:
    def test_an_error_of_a_row_that_another_predicate_drops_is_forgotten(self) -> None:
        operators = [
            RowPredicate("fragile", (0,), fails_on(1)),
            RowPredicate("drops it", (1,), lambda b: b == 1),
        ]
        assert route_one(operators) == [False, False, True, True]

    def test_an_error_that_nothing_drops_names_predicate_and_row(self) -> None:
        with pytest.raises(PredicateFailedError) as caught:
            route_one([RowPredicate("fragile", (0,), fails_on(3))])
        message = str(caught.value)
        assert "'fragile' raised ValueError: cannot judge 3" in message
        assert "a=3" in message
        assert 'on_error="drop"' in message

    @pytest.mark.parametrize(("on_error", "kept"), [("drop", False), ("keep", True)])
    def test_on_error_decides(self, on_error: str, kept: bool) -> None:
        operators: list[Operator] = [RowPredicate("fragile", (0,), fails_on(3))]
        assert route_one(operators, on_error=on_error) == [True, True, kept, True]

    def test_a_failing_call_on_many_rows_is_narrowed_down(self) -> None:
        def vector(values: pa.Array) -> pa.Array:
            if 3 in values.to_pylist():
                raise ValueError("three")
            return pc.less(values, 4)

        operators: list[Operator] = [ArrowPredicate("v", (0,), vector)]
        assert route_one(operators, on_error="drop") == [True, True, False, False]

    def test_rows_of_a_failing_call_are_counted_as_what_they_turn_out_to_be(self) -> None:
        """A call for many rows fails as a whole; its rows count once they are judged again."""

        def vector(values: pa.Array) -> pa.Array:
            if 3 in values.to_pylist():
                raise ValueError("three")
            return pc.less(values, 2)

        options = RouterOptions(on_error="drop")
        router = Router([ArrowPredicate("v", (0,), vector)], READERS[:1], options=options)
        kept = router.route([pa.array([0, 1, 2, 3, 4, 5])], 6)
        assert kept.tolist() == [True, True, False, False, False, False]
        totals = router.totals
        assert (totals.seen.tolist(), totals.failed.tolist()) == ([6], [1])
        assert totals.passed.tolist() == [3]  # of which one is at fault
        assert (totals.kept, totals.at_fault) == (2, 1)

    @pytest.mark.parametrize(("on_error", "calls"), [("raise", 8), ("drop", 10)])
    def test_rows_behind_the_first_at_fault_are_judged_again_only_if_they_may_be_kept(
        self, on_error: str, calls: int
    ) -> None:
        asked: list[int] = []

        def vector(values: pa.Array) -> pa.Array:
            asked.append(len(values))
            if 3 in values.to_pylist():
                raise ValueError("three")
            return pc.less(values, 10)

        options = RouterOptions(on_error=on_error)
        router = Router([ArrowPredicate("v", (0,), vector)], READERS[:1], options=options)
        if on_error == "raise":
            with pytest.raises(PredicateFailedError, match="three"):
                router.route([pa.array(range(16))], 16)
        else:
            router.route([pa.array(range(16))], 16)
        assert len(asked) == calls

    def test_stop_iteration_inside_a_function_is_an_error_like_any_other(self) -> None:
        def stops(a: int) -> bool:
            return next(iter([True] if a != 2 else []))

        operators: list[Operator] = [RowPredicate("stops", (0,), stops)]
        assert route_one(operators, on_error="drop") == [True, False, True, True]

    def test_an_answer_that_is_no_boolean_is_refused(self) -> None:
        with pytest.raises(PredicateFailedError, match=r"'one' .* returned int \(1\), not a bool"):
            route_one([RowPredicate("one", (0,), lambda a: 1)])

    def test_spark_s_own_treatment_of_other_answers(self) -> None:
        assert route_one([RowPredicate("n", (0,), lambda a: 1, "null")]) == [False] * 4
        assert route_one([RowPredicate("c", (0,), lambda a: a - 1, "cast")]) == [
            False,
            True,
            True,
            True,
        ]

    def test_the_wrong_number_of_answers_is_named(self) -> None:
        with pytest.raises(InvalidPredicateError, match="'short' returned 1 values for 4 rows"):
            route_one([ArrowPredicate("short", (0,), lambda a: pa.array([True]))])
        with pytest.raises(InvalidPredicateError, match="'scalar' returned bool"):
            route_one([PandasPredicate("scalar", (0,), lambda a: True)])

    def test_the_wrong_type_of_answers_is_named(self) -> None:
        with pytest.raises(PredicateFailedError, match=r"'text' .* returned values of type string"):
            route_one([ArrowPredicate("text", (0,), lambda a: pa.array(["x"] * len(a)))])
        with pytest.raises(PredicateFailedError, match=r"'text' .* returned values of type object"):
            route_one([PandasPredicate("text", (0,), lambda a: a.astype(str))])

    def test_many_failing_rows_are_no_quadratic_work(self) -> None:
        def never(a: int) -> bool:
            raise ValueError(a)

        options = RouterOptions(on_error="drop")
        router = Router([RowPredicate("never", (0,), never)], READERS[:1], options=options)
        assert not router.route([pa.array(range(20_000))], 20_000).any()
        assert router.totals.failed.sum() == 20_000

    @pytest.mark.parametrize(
        "wrong", [{"budget": 5.0}, {"chunk_rows": 0}, {"seed": -1}], ids=lambda w: next(iter(w))
    )
    def test_options_out_of_range(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(EddylineError, match=f"{next(iter(wrong))} is"):
            RouterOptions(**wrong)

    def test_unknown_on_error(self) -> None:
        with pytest.raises(EddylineError, match="'ignore'; it must be 'raise', 'drop' or 'keep'"):
            RouterOptions(on_error="ignore")


class TestAnswersDoNotDependOnNeighbours:
    def test_an_empty_text_is_no_boolean_but_another_predicate_may_drop_it(self) -> None:
        columns = [pa.array(["", "ab"]), pa.array([0, 0])]
        for order in ([0, 1], [1, 0]):
            operators = [
                RowPredicate("some", (0,), lambda s: s != ""),
                RowPredicate("starts", (0,), lambda s: s and s.startswith("a")),
            ]
            router = Router([operators[i] for i in order], READERS, "as_written")
            assert router.route(columns, 2).tolist() == [False, True]

    def test_a_failed_row_does_not_spoil_the_cast_of_the_others(self) -> None:
        predicate = RowPredicate("inverse", (0,), lambda a: 6 // (a - 2), "cast")
        assert route_one([predicate], on_error="drop") == [True, False, True, True]
        mixed = RowPredicate("mixed", (0,), lambda a: True if a == 1 else a - 2, "cast")
        assert route_one([mixed]) == [True, False, True, True]

    def test_numpy_booleans_are_booleans_whatever_stands_beside_them(self) -> None:
        predicate = RowPredicate("n", (0,), lambda a: np.True_ if a < 3 else "x", "null")
        assert route_one([predicate]) == [True, True, False, False]

    def test_values_that_python_cannot_hold(self) -> None:
        far = pa.array([0, 11_400, 10**7], pa.int32()).cast(pa.date32())

        def judge(day) -> bool:
            if day.year == 2001:
                raise ValueError("2001")
            return True

        router = Router(
            [RowPredicate("day", (0,), judge)],
            READERS[:1],
            options=RouterOptions(on_error="drop"),
        )
        assert router.route([far], 3).tolist() == [True, False, False]
        strict = Router([RowPredicate("day", (0,), judge)], READERS[:1])
        with pytest.raises(PredicateFailedError, match="on the row: a="):
            strict.route([far.slice(2)], 1)

    def test_a_predicate_that_changes_its_argument_changes_it_for_nobody_else(self) -> None:
        class Lists(ColumnReader):
            mutable = True

        columns = [pa.array([[1, 2]])]
        for order in ([0, 1], [1, 0]):
            operators = [
                RowPredicate("pops", (0,), lambda xs: xs.pop() > 0),
                RowPredicate("two", (0,), lambda xs: len(xs) == 2),
            ]
            router = Router([operators[i] for i in order], [Lists("xs")], "as_written")
            assert router.route(columns, 1).tolist() == [True]


class TestSelection:
    def test_no_predicate_sees_a_dropped_row(self) -> None:
        seen: list[int] = []
        operators = [
            RowPredicate("first", (0,), lambda a: a > 2),
            RowPredicate("second", (0,), lambda a: not seen.append(a)),
        ]
        assert route_one(operators) == [False, False, True, True]
        assert seen == [3, 4]

    def test_a_pinned_predicate_sees_what_its_written_place_lets_it_see(self) -> None:
        rng = np.random.default_rng(0)
        seen: set[int] = set()
        operators = [
            RowPredicate("before", (0,), lambda a: a % 2 == 0),
            RowPredicate("pinned", (0,), lambda a: not seen.add(a)),
            RowPredicate("after", (0,), lambda a: a == 0),
        ]
        router = Router(operators, READERS, pinned={1}, options=RouterOptions(budget=None, seed=0))
        for _ in range(20):
            values = pa.array(rng.integers(0, 10, 1_000))
            router.route([values, values], 1_000)
        assert router.order() == ["before", "pinned", "after"]
        assert seen == {0, 2, 4, 6, 8}

    def test_a_column_is_converted_once_however_many_predicates_read_it(self) -> None:
        class Counting(ColumnReader):
            rows = 0

            def to_objects(self, array: pa.Array) -> list[Any]:
                Counting.rows += len(array)
                return super().to_objects(array)

        operators = [RowPredicate(f"p{i}", (0,), lambda a: True) for i in range(4)]
        Router(operators, [Counting("a")], "as_written").route([pa.array(range(100))], 100)
        assert Counting.rows == 100

    def test_rows_asked_for_out_of_a_part_already_converted(self) -> None:
        batch = Batch([pa.array([10, 11, 12, 13, 14])], READERS[:1])
        assert batch.objects(0, np.array([1, 3, 4])) == [11, 13, 14]
        assert batch.objects(0, np.array([3])) == [13]
        assert batch.objects(0, np.array([0, 3])) == [10, 13]
        assert batch.objects(0, np.array([], dtype=np.int64)) == []
        assert batch.objects(0, None) == [10, 11, 12, 13, 14]


def test_what_is_left_of_a_batch_does_not_make_a_small_chunk() -> None:
    asked: list[int] = []

    class Noting(RowPredicate):
        def evaluate(self, batch, rows):
            asked.append(batch.rows)
            return super().evaluate(batch, rows)

    noting = Noting("any", (0,), lambda a: True)
    other = RowPredicate("other", (0,), lambda a: True)
    router = Router([noting, other], READERS, "as_written", options=RouterOptions(chunk_rows=1_000))
    for _ in range(3):
        router.route([pa.array(range(4_400)), pa.array(range(4_400))], 4_400)
    assert asked[-4:] == [1_000, 1_000, 1_000, 1_400]
