"""The grouped filter against evaluating every predicate on every value."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.operators import grouped_filter
from eddyline.operators.bitmaps import (
    WAITING_ROWS_MAX,
    ColumnCounter,
    bitmap_of,
    set_bits,
    words_for,
)
from eddyline.operators.domain import COMPARISONS, Domain, Floating, Text, Whole
from eddyline.operators.grouped_filter import WORDS_PER_SWITCH, GroupedFilter
from eddyline.operators.value_set import NOT_NULL, ONLY_NULL, ValueSet
from eddyline.testing.memory import array_bytes

I64 = (-(2**63), 2**63 - 1)


def slots_of(bitmap: np.ndarray) -> np.ndarray:
    """Return which bits are set, ascending."""
    return set_bits(bitmap[None, :])[1]


def spark_compares(value: Any, comparison: str, constant: Any) -> bool:
    """What Spark answers: NULL is never true, NaN is the largest number and equal to itself."""
    if value is None:
        return False
    if isinstance(value, float):
        value = (1, 0.0) if math.isnan(value) else (0, value)
        constant = (0, float(constant))
    if isinstance(value, str):
        value, constant = value.encode(), constant.encode()
    return {
        "=": value == constant,
        "<>": value != constant,
        "<": value < constant,
        "<=": value <= constant,
        ">": value > constant,
        ">=": value >= constant,
    }[comparison]


def check(domain: Domain, predicates: list[tuple[str, Any]], values: pa.Array) -> None:
    words = words_for(len(predicates))
    filters = [GroupedFilter(domain, False, words) for _ in range(2)]
    sets = {n: domain.compare(c, constant) for n, (c, constant) in enumerate(predicates)}
    filters[0].load(sets)
    for slot, own in sets.items():
        filters[1].add(slot, own)
    expected = [
        [n for n, (c, constant) in enumerate(predicates) if spark_compares(value, c, constant)]
        for value in values.to_pylist()
    ]
    for group in filters:
        found = [slots_of(bitmap).tolist() for bitmap in group.accepting(values)]
        assert found == expected
    for slot in list(sets)[::2]:
        filters[1].remove(slot)
    odd = [[n for n in row if n % 2] for row in expected]
    assert [slots_of(b).tolist() for b in filters[1].accepting(values)] == odd


comparisons = st.sampled_from(COMPARISONS)
edges = st.sampled_from([*I64, I64[0] + 1, I64[1] - 1, -1, 0, 1])
whole = st.one_of(edges, st.integers(-5, 5))
reals = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1]),
    st.floats(-3, 3),
)
texts = st.one_of(st.sampled_from(["", "\x00", "a", "a\x00", "ab", "é", "z"]), st.text(max_size=3))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(comparisons, st.one_of(whole, st.decimals(-6, 6, places=1))), max_size=90),
    st.lists(st.none() | whole, max_size=30),
)
def test_whole_numbers(predicates: list[tuple[str, Any]], values: list[int | None]) -> None:
    check(Whole(), predicates, pa.array(values, pa.int64()))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(comparisons, reals), max_size=90),
    st.lists(st.none() | reals | st.sampled_from([math.nan, math.inf, -math.inf]), max_size=30),
)
def test_floating_point(predicates: list[tuple[str, Any]], values: list[float | None]) -> None:
    check(Floating(), predicates, pa.array(values, pa.float64()))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(comparisons, texts), max_size=90),
    st.lists(st.none() | texts, max_size=30),
)
def test_text(predicates: list[tuple[str, Any]], values: list[str | None]) -> None:
    check(Text(), predicates, pa.array(values, pa.string()))


@pytest.mark.parametrize(
    ("kind", "values", "as_integers"),
    [
        (pa.bool_(), [True, None, False], [1, None, 0]),
        (pa.date32(), [datetime.date(1970, 1, 3), None], [2, None]),
        (pa.timestamp("us", "UTC"), [datetime.datetime(1970, 1, 1, 0, 0, 1), None], [10**6, None]),
        (pa.decimal128(10, 2), [Decimal("-1.25"), None, Decimal("3.00")], [-125, None, 300]),
    ],
)
def test_other_types_are_whole_numbers(
    kind: pa.DataType, values: list[Any], as_integers: list[int | None]
) -> None:
    keys = np.array([-125, 1, 2, 300, 10**6])
    array = pa.array([None, *values], kind).slice(1)
    for some in (keys, keys[:3]):  # searched for, and looked up in a list
        find = Whole().finder(some)
        assert find(array).tolist() == find(pa.array(as_integers, pa.int64())).tolist()


@pytest.mark.parametrize("slots", [3, 64, 700, 5_000])
def test_filters_stay_right_while_queries_come_and_go(slots: int) -> None:
    rng = np.random.default_rng(slots)
    domain, words = Whole(), words_for(slots)
    group, kept = GroupedFilter(domain, True, words), {}
    values = pa.array(rng.integers(-10, 1_010, 200))
    for step in range(600):
        slot = int(rng.integers(0, slots))
        if slot in kept:
            group.remove(slot)
            del kept[slot]
        else:
            low, high = sorted(rng.integers(0, 1_000, 2).tolist())
            kept[slot] = domain.compare(">=", low) & domain.compare("<", high)
            group.add(slot, kept[slot])
        if step % 50 == 0:
            for value, bitmap in zip(values.to_pylist(), group.accepting(values), strict=True):
                rejecting = {n for n, own in kept.items() if not own.has(value)}
                assert set(slots_of(~bitmap).tolist()) & set(range(slots)) == rejecting


def test_memory_grows_with_bounds_not_with_their_square() -> None:
    rng = np.random.default_rng(0)

    def bytes_of(queries: int) -> int:
        group = GroupedFilter(Floating(), True, words_for(queries))
        group.load(
            {n: Floating().compare(">", x) for n, x in enumerate(rng.random(queries).tolist())}
        )
        return array_bytes(group)

    assert bytes_of(20_000) < 2.2 * bytes_of(10_000)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_few_bits_are_switched_for_a_value(
    is_loaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, domain = 6_000, Whole()
    group = GroupedFilter(domain, True, words_for(queries))
    bounds = np.random.default_rng(0).permutation(queries).tolist()
    sets = {n: domain.compare(">", bound) for n, bound in enumerate(bounds)}
    if is_loaded:
        group.load(sets)
    else:
        for slot, values in sets.items():
            group.add(slot, values)
    values = np.arange(0, queries, 7)
    group.accepting(pa.array(values))
    switched = []
    add_at = np.add.at
    counting = SimpleNamespace(at=lambda a, at, b: (switched.append(len(at)), add_at(a, at, b)))
    with monkeypatch.context() as patch:
        patch.setattr(grouped_filter.np, "add", counting)
        found = group.accepting(pa.array(values))
    assert [len(slots_of(b)) - words_for(queries) * 64 + queries for b in found] == values.tolist()
    # Half of the interval at most, as there is a checkpoint on either side.
    interval = words_for(queries) / WORDS_PER_SWITCH
    most = interval / 2 if is_loaded else interval  # added one by one, intervals are up to double
    assert 0 < sum(switched) / len(values) < most


def test_null_belongs_only_if_it_is_asked_for() -> None:
    group = GroupedFilter(Whole(), False, 1)
    group.add(0, ONLY_NULL)
    group.add(1, NOT_NULL)
    group.add(2, ONLY_NULL | Whole().compare("=", 1))
    found = [slots_of(b).tolist() for b in group.accepting(pa.array([1, None, 2]))]
    assert found == [[1, 2], [0, 2], [1]]


@pytest.mark.parametrize("default", [False, True])
def test_loading_many_predicates_is_adding_one_after_the_other_also_for_null(default: bool) -> None:
    predicates = {0: ONLY_NULL, 1: NOT_NULL, 2: ONLY_NULL | Whole().compare("=", 1)}
    loaded, added = (GroupedFilter(Whole(), default, 1) for _ in range(2))
    loaded.load(predicates)
    for slot, values in predicates.items():
        added.add(slot, values)
    array = pa.array([1, None, 2])
    assert loaded.accepting(array).tolist() == added.accepting(array).tolist()


sets = st.builds(
    lambda bounds, below, null: ValueSet(tuple(sorted(bounds)), below, null),
    st.sets(st.integers(-4, 4), max_size=5),
    st.booleans(),
    st.booleans(),
)


@given(sets, sets)
def test_value_sets_combine_as_sets_do(a: ValueSet, b: ValueSet) -> None:
    for value in [None, *range(-6, 7)]:
        assert (a & b).has(value) == (a.has(value) and b.has(value))
        assert (a | b).has(value) == (a.has(value) or b.has(value))
        if value is not None:
            assert (~a).has(value) != a.has(value)


def test_bits_are_counted_and_listed() -> None:
    rng = np.random.default_rng(1)
    for rows in (0, 1, 2, 3, 7, 100):
        dense = rng.random((rows, 130)) < 0.2
        bitmaps = np.array(
            [bitmap_of(np.flatnonzero(row).tolist(), 3) for row in dense], dtype=np.uint64
        ).reshape(rows, 3)
        counter = ColumnCounter(3)
        for part in np.array_split(bitmaps, 3):
            counter.add(part.copy())
        assert counter.counts()[:130].tolist() == dense.sum(axis=0).tolist()
        at, slots = set_bits(bitmaps)
        assert list(zip(at, slots, strict=True)) == list(zip(*np.nonzero(dense), strict=True))


@pytest.mark.parametrize("words", [1, 16])
def test_rows_that_come_few_at_a_time_are_counted_together(words: int) -> None:
    """Each weight has a fixed cost, so few rows of one wait; they are counted all the same."""
    rng = np.random.default_rng(2)
    slots = 64 * words
    counter, expected = ColumnCounter(words), np.zeros(slots, dtype=np.int64)
    for n in range(60):
        dense = rng.random((int(rng.integers(0, 40)), slots)) < 0.5
        bitmaps = np.packbits(dense, axis=1, bitorder="little").view(np.uint64)
        counter.add(bitmaps)
        expected += dense.sum(axis=0)
        assert max(map(len, counter._levels)) <= WAITING_ROWS_MAX
        if n % 20 == 0:  # asking for the counts changes nothing
            assert counter.counts().tolist() == expected.tolist()
    assert max(map(len, counter._levels)) > 2
    assert counter.counts().tolist() == expected.tolist()
    most = max(map(len, counter._levels))
    assert most <= 2 if words > 1 else most > 2  # they are unpacked: wide ones are added up first


@pytest.mark.parametrize("default", [False, True])
def test_a_filter_that_was_asked_before_it_is_widened_answers_in_the_new_width(
    default: bool,
) -> None:
    domain, values = Whole(), pa.array([1, 9, None])
    group = GroupedFilter(domain, default, words=1)
    group.add(0, domain.compare(">", 5))
    narrow = group.accepting(values)
    group.widen(2)
    wide = group.accepting(values)
    assert wide.shape == (3, 2)
    assert wide[:, 0].tolist() == narrow[:, 0].tolist()
    assert set(wide[:, 1].tolist()) == {2**64 - 1 if default else 0}
