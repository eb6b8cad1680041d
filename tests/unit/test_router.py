"""The router: the right rows whatever the order, errors held back, decisions on record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.bench.synthetic import draw_answers, make_filters, to_columns
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
from eddyline.ordering import POLICIES, AGreedy, Policy

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
@settings(max_examples=150, deadline=None)
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


def drifting_router(probability: float = 0.02, **options: Any) -> tuple[Router, int]:
    """Run filters whose selectivities change places in the middle; return router and chunk."""
    rng = np.random.default_rng(5)
    one = draw_answers(rng, 100_000, [0.9, 0.9, 0.1], correlation=1)
    two = draw_answers(rng, 100_000, [0.1, 0.9, 0.9], correlation=1)
    filters, readers = make_filters([0] * 3)
    router = Router(
        filters,
        readers,
        AGreedy(profile_probability=probability),
        options=RouterOptions(costs_us=(1.0,) * 3, seed=0, **options),
    )
    for begin in range(0, 200_000, 4_096):
        part = np.concatenate([one, two])[begin : begin + 4_096]
        router.route(to_columns(part), len(part))
    return router, 4_096


def learn_once(
    selectivities: list[float], seed: int, knowledge: list[dict[str, Any]] | None = None
) -> Router:
    """Run filters over a short job's rows, from nothing or from what another has learnt."""
    answers = draw_answers(np.random.default_rng(seed), 20_000, selectivities, correlation=1)
    filters, readers = make_filters([0] * 3)
    options = RouterOptions(costs_us=(10.0,) * 3, seed=seed)
    router = Router(filters, readers, options=options)
    if knowledge is not None:
        router.resume(knowledge)
    router.route(to_columns(answers), len(answers))
    return router


class TestDecisions:
    def test_every_change_of_order_is_on_record_with_its_numbers(self) -> None:
        router, _ = drifting_router()
        changes = router.journal.of_kind("reorder")
        assert changes[0].numbers["before"] == ["F0", "F1", "F2"]
        assert changes[0].numbers["after"][0] == "F2"
        for record in changes:
            assert record.numbers["cost_after_us"] < record.numbers["cost_before_us"]
        assert router.order()[0] == "F0"

    def test_an_abrupt_change_is_noticed_within_two_chunks(self) -> None:
        router, chunk = drifting_router()
        drift = router.journal.of_kind("drift")
        assert len(drift) == 1
        assert 100_000 - chunk <= drift[0].at_rows <= 100_000 + chunk
        follows = [r for r in router.journal.of_kind("reorder") if r.at_rows >= drift[0].at_rows]
        assert follows[0].numbers["after"][0] == "F0"
        assert follows[0].at_rows <= 100_000 + 2 * chunk

    def test_a_change_is_kept_after_its_trial(self) -> None:
        router, _ = drifting_router()
        kept = router.journal.of_kind("kept")
        assert kept
        assert all(r.numbers["measured_us"] <= 1.15 * r.numbers["expected_us"] for r in kept)
        assert not router.journal.of_kind("reverted")

    def test_a_change_that_costs_more_is_undone_and_tried_ever_more_rarely(self) -> None:
        class Stubborn(Policy):
            """Wants the worst order, whatever it is shown."""

            def learn(self, evidence):
                return self.change_to([2, 1, 0])

        rng = np.random.default_rng(6)
        answers = draw_answers(rng, 400_000, [0.1, 0.9, 0.95], correlation=1)
        filters, readers = make_filters([0] * 3)
        options = RouterOptions(costs_us=(1.0,) * 3, seed=0)
        router = Router(filters, readers, Stubborn(), options=options)
        router.route(to_columns(answers), len(answers))
        undone = router.journal.of_kind("reverted")
        assert 2 <= len(undone) <= 5
        for record in undone:
            assert record.numbers["measured_us"] > record.numbers["expected_us"]
            assert record.numbers["before"] == ["F0", "F1", "F2"]
        gaps = np.diff([record.at_rows for record in undone])
        assert (gaps[1:] > 1.5 * gaps[:-1]).all()

    def test_every_change_ends_with_a_record(self) -> None:
        router, _ = drifting_router()
        begun = len(router.journal.of_kind("reorder"))
        ended = len(router.journal.of_kind("kept", "reverted", "cut short"))
        assert begun - ended in (0, 1)  # the last may still be on trial

    def test_a_policy_that_forgets_a_predicate_is_caught(self) -> None:
        class Forgetful(Policy):
            name = "forgetful"

            def learn(self, evidence):
                return self.change_to([0])

        filters, readers = make_filters([0] * 2)
        router = Router(filters, readers, Forgetful())
        with pytest.raises(
            EddylineError, match=r"'forgetful' answered with \[0\], which is no order"
        ):
            router.route(to_columns(np.ones((1_000, 2), dtype=bool)), 1_000)

    def test_profiling_keeps_to_its_budget(self) -> None:
        router, _ = drifting_router(probability=0.2, budget=0.02)
        advance = 20_000
        assert router.totals.profiled.sum() < 0.025 * router.totals.seen.sum() + advance
        assert router.journal.of_kind("budget")
        unlimited, _ = drifting_router(probability=0.2, budget=None)
        assert unlimited.totals.profiled.sum() > 2 * router.totals.profiled.sum()

    def test_no_budget_means_no_profiling_beyond_the_advance(self) -> None:
        router, _ = drifting_router(budget=0.0)
        assert router.totals.profiled.sum() <= 20_500

    def test_the_same_seed_gives_the_same_journal(self) -> None:
        one, _ = drifting_router()
        other, _ = drifting_router()
        assert list(one.journal) == list(other.journal)

    def test_what_was_learnt_is_handed_on(self) -> None:
        learnt, _ = drifting_router()
        filters, readers = make_filters([0] * 3)
        fresh = Router(filters, readers, AGreedy(), options=RouterOptions(seed=1))
        fresh.resume(learnt.knowledge())
        assert fresh.order() == learnt.order()
        assert fresh.knowledge()[0]["tuples"] == learnt.knowledge()[0]["tuples"]
        assert fresh.journal[0].kind == "start"

    def test_an_heir_has_nothing_to_find_out_before_the_first_row(self) -> None:
        selectivities = [0.9, 0.9, 0.1]
        learnt = learn_once(selectivities, seed=3)
        heir = learn_once(selectivities, seed=4, knowledge=learnt.knowledge())
        assert heir.order() == learnt.order()
        assert heir.totals.profiled.sum() < 0.5 * learnt.totals.profiled.sum()
        assert not heir.journal.of_kind("drift", "reorder")

    def test_an_heir_notices_at_once_that_the_rows_have_changed(self) -> None:
        learnt = learn_once([0.9, 0.9, 0.1], seed=3)
        heir = learn_once([0.1, 0.9, 0.9], seed=4, knowledge=learnt.knowledge())
        assert heir.journal.of_kind("drift")[0].at_rows == 0
        assert heir.order()[0] == "F0"

    def test_the_estimate_of_the_written_order_is_close(self) -> None:
        router, _ = drifting_router()
        rng = np.random.default_rng(5)
        one = draw_answers(rng, 100_000, [0.9, 0.9, 0.1], correlation=1)
        two = draw_answers(rng, 100_000, [0.1, 0.9, 0.9], correlation=1)
        answers = np.concatenate([one, two])
        passed_so_far = np.cumprod(answers, axis=1)[:, :-1].sum()
        truth = len(answers) + passed_so_far
        assert router.totals.written_seen.sum() == pytest.approx(truth, rel=0.06)

    def test_memory_is_bounded(self) -> None:
        router, _ = drifting_router()
        assert len(router.segments[0].policy.evidence()) <= 500
        assert len(router.journal) <= 1_000


def test_one_predicate_learns_nothing_and_profiles_nothing() -> None:
    filters, readers = make_filters([0])
    router = Router(filters, readers)
    router.route(to_columns(np.array([[True], [False]] * 5_000)), 10_000)
    assert router.totals.profiled.sum() == 0
    assert len(router.journal) == 0
    assert router.totals.kept == 5_000


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
