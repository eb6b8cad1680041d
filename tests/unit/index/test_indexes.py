"""Every index finds what a comparison of every probe with every row finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.index import Index, Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.rivals import AdaptiveHash, BatchJoin, HashIndices, Scan, most_frequent

Pairs = list[tuple[int, int]]

#: Spreads small numbers over the high bits, as the codes of real values are.
SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)


def all_patterns(columns: int) -> list[Pattern]:
    return [
        pattern
        for count in range(1, columns + 1)
        for pattern in combinations(range(columns), count)
    ]


def hash_indices(columns: Columns) -> HashIndices:
    """Index every other pattern, so that others use an index of fewer columns or none."""
    return HashIndices(columns, all_patterns(len(columns.codes))[1::2])


#: Every index, by a name for the test. A new one needs one line here.
INDEXES: dict[str, Callable[[Columns], Index]] = {
    "scan": Scan,
    "sorted hash": LazyHash,
    "hash indices": hash_indices,
    "hash indices, all": lambda columns: HashIndices(columns, all_patterns(len(columns.codes))),
    "hash indices, none": lambda columns: HashIndices(columns, []),
    "batch join": BatchJoin,
    "bit address, no bits": lambda columns: bit_address(columns, 0),
    "bit address, few bits": lambda columns: bit_address(columns, 2),
    "bit address, many bits": lambda columns: bit_address(columns, 6),
}


def bit_address(columns: Columns, bits: int) -> Index:
    """Return an index with so many bits for each column, the last column in the high bits."""
    order = tuple(reversed(range(len(columns.codes))))
    configuration = Configuration((bits,) * len(columns.codes), order)
    return BitAddress(columns, KeyMap.of(configuration, columns))


def matches(index: Index, pattern: Pattern, codes: Sequence[Codes]) -> Pairs:
    """Return (probe, row) of all matches that an index finds, as a SteM finds them."""
    ranges = index.ranges(pattern, codes)
    assert (np.diff(ranges.probes) >= 0).all(), "probes must ascend"
    assert (ranges.counts >= 0).all()
    probes, positions = ranges.expand()
    rows, is_equal = index.confirm(pattern, positions, [column[probes] for column in codes])
    return sorted(zip(probes[is_equal].tolist(), rows[is_equal].tolist(), strict=True))


def nested_loop(columns: Columns, pattern: Pattern, codes: Sequence[Codes]) -> Pairs:
    """Return (probe, row) of all matches, by comparing each with each."""

    def is_equal(probe: int, row: int) -> bool:
        for column, probed in zip(pattern, codes, strict=True):
            is_valid = columns.is_valid[column]
            if is_valid is not None and not is_valid[row]:
                return False
            if columns.codes[column][row] != probed[probe]:
                return False
        return True

    probes, rows = range(len(codes[0])), range(len(columns))
    return [(probe, row) for probe in probes for row in rows if is_equal(probe, row)]


@dataclass
class Case:
    """Stored rows, and some probes by a pattern."""

    columns: Columns
    pattern: Pattern
    codes: list[Codes]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 5))
    rows = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes: list[Codes] = []
    is_valid: list[BoolArray | None] = []
    for _ in range(count):
        distinct = draw(st.sampled_from([1, 2, 5, 1_000]))
        values = rng.integers(0, distinct, rows)
        if draw(st.booleans()):  # one value holds most rows
            values[rng.random(rows) < 0.9] = 0
        low_bits = draw(st.sampled_from([0, 40]))  # that are the same in all codes
        spread = values.astype(np.uint64) * SPREAD
        codes.append(spread >> np.uint64(low_bits) << np.uint64(low_bits))
        null_share = draw(st.sampled_from([None, 0.3, 1.0]))
        is_valid.append(None if null_share is None else rng.random(rows) >= null_share)
    pattern = draw(st.sampled_from(all_patterns(count)))
    probes = draw(st.integers(0, 30))
    stored = rng.integers(0, max(rows, 1), probes)  # rows to look for, with repetition
    elsewhere = rng.random((probes, count)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    given_codes = [
        np.where(
            elsewhere[:, column] | (rows == 0),
            rng.integers(0, 1_000, probes).astype(np.uint64) * SPREAD,
            codes[column][stored] if rows else np.uint64(0),
        )
        for column in pattern
    ]
    return Case(Columns(codes, is_valid), pattern, given_codes)


@pytest.mark.parametrize("name", INDEXES)
@given(case=cases())
@settings(max_examples=200)
def test_an_index_finds_what_a_nested_loop_finds(name: str, case: Case) -> None:
    index = INDEXES[name](case.columns)
    expected = nested_loop(case.columns, case.pattern, case.codes)
    assert matches(index, case.pattern, case.codes) == expected


@pytest.mark.parametrize("name", INDEXES)
@given(case=cases())
@settings(max_examples=20)
def test_an_index_serves_several_patterns_in_turn(name: str, case: Case) -> None:
    """Every row looks for itself by every pattern; what one search does, others do not see."""
    index = INDEXES[name](case.columns)
    for pattern in all_patterns(len(case.columns.codes)):
        codes = [case.columns.codes[column] for column in pattern]
        expected = nested_loop(case.columns, pattern, codes)
        assert matches(index, pattern, codes) == expected
        assert matches(index, pattern, codes) == expected


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_over_many_rows(name: str) -> None:
    """Addresses of more than 16 bits; every probe finds the rows of its value."""
    rng = np.random.default_rng(7)
    rows = 70_000
    values = rng.integers(0, 50_000, rows)
    codes = values.astype(np.uint64) * SPREAD
    is_valid = rng.random(rows) < 0.9
    columns = Columns([codes, codes % np.uint64(3) * SPREAD], [is_valid, None])
    index = INDEXES[name](columns)
    probes = rng.integers(0, rows, 12)
    for pattern in all_patterns(2)[::2]:
        expected = [
            (probe, row)
            for probe, value in enumerate(values[probes])
            for row in np.flatnonzero((values == value) & is_valid).tolist()
        ]
        assert matches(index, pattern, [columns.codes[c][probes] for c in pattern]) == expected


def some_columns(count: int = 3, rows: int = 100) -> Columns:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, 10, dtype=np.uint64)
    codes = [rng.choice(values, rows) for _ in range(count)]
    return Columns(codes, [None] * count)


def candidates(index: Index, pattern: Pattern, codes: Sequence[Codes]) -> int:
    positions: IntArray = index.ranges(pattern, codes).expand()[1]
    return len(positions)


@pytest.mark.parametrize("index", [Scan, BatchJoin, lambda columns: HashIndices(columns, [])])
def test_without_rows_there_are_no_ranges(index: Callable[[Columns], Index]) -> None:
    probe = np.zeros(3, dtype=np.uint64)
    assert len(index(some_columns(rows=0)).ranges((0,), [probe]).probes) == 0


class TestHashIndices:
    def test_the_index_of_most_columns_and_none_outside_is_used(self) -> None:
        """The example of section 2.2: indices on A1, A1 and A2, A2 and A3."""
        index = HashIndices(some_columns(), [(0,), (0, 1), (1, 2)])
        assert index.suitable((0, 2)) == (0,)  # the request sr1
        assert index.suitable((2,)) is None  # the request sr2
        assert index.suitable((0, 1)) == (0, 1)
        assert index.suitable((0, 1, 2)) == (0, 1)  # the first of two that suit equally well

    def test_a_search_reads_what_the_suitable_index_leaves(self) -> None:
        columns = some_columns()
        index = HashIndices(columns, [(0,), (0, 1)])
        probe = [codes[:1] for codes in columns.codes]
        assert candidates(index, (2,), probe[2:]) == 100
        by_one = candidates(index, (0, 2), [probe[0], probe[2]])
        by_two = candidates(index, (0, 1, 2), probe)
        assert by_two < by_one < 50

    def test_entries_and_keys(self) -> None:
        is_valid = np.arange(100) < 60
        columns = Columns(some_columns().codes, [None, is_valid, None])
        index = HashIndices(columns, [(0,), (1,), (1, 2)])
        assert index.keys_per_row == 3
        assert index.entries == 100 + 60 + 60
        alone = [HashIndices(columns, [pattern]).bytes for pattern in [(0,), (1,), (1, 2)]]
        assert index.bytes == sum(alone)

    @pytest.mark.parametrize(
        ("patterns", "message"),
        [
            ([()], "ascending order"),
            ([(1, 0)], "ascending order"),
            ([(1, 1)], "ascending order"),
            ([(0, 3)], "beyond the 3 columns"),
            ([(-1,)], "beyond the 3 columns"),
            ([(0,), (0,)], "given twice"),
        ],
    )
    def test_patterns_are_checked(self, patterns: list[Pattern], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            HashIndices(some_columns(), patterns)


class TestAdaptiveHash:
    FREQUENCIES: ClassVar[dict[Pattern, float]] = {
        (2,): 3.0,
        (0, 1): 3.0,
        (0,): 5.0,
        (1, 2): 3.0,
        (1,): 0.0,
        (): 9.0,
    }

    def test_the_most_frequent_patterns_are_selected(self) -> None:
        assert most_frequent(self.FREQUENCIES, 1) == ((0,),)
        assert most_frequent(self.FREQUENCIES, 3) == ((0,), (2,), (0, 1))

    def test_neither_scans_nor_patterns_without_searches_are_selected(self) -> None:
        assert most_frequent(self.FREQUENCIES, 9) == ((0,), (2,), (0, 1), (1, 2))

    def test_ties_do_not_depend_on_the_order_of_counting(self) -> None:
        backwards = dict(reversed(self.FREQUENCIES.items()))
        for count in range(1, 6):
            assert most_frequent(backwards, count) == most_frequent(self.FREQUENCIES, count)

    def test_partitions_keep_the_indices_they_have(self) -> None:
        policy = AdaptiveHash(count=1)
        assert policy.index(some_columns()).keys_per_row == 0
        policy.patterns_for({(0,): 1.0})
        partition = policy.index(some_columns())
        policy.patterns_for({(1,): 1.0})
        assert partition.suitable((0, 1)) == (0,)
        assert policy.index(some_columns()).suitable((0, 1)) == (1,)

    def test_without_searches_the_selection_stays(self) -> None:
        policy = AdaptiveHash(count=1)
        policy.patterns_for({(0,): 1.0})
        assert policy.patterns_for({}) == ((0,),)

    def test_the_count_is_checked(self) -> None:
        with pytest.raises(ValueError, match="count must be at least 1, not 0"):
            AdaptiveHash(0)
        with pytest.raises(ValueError, match="count must be at least 1, not 0"):
            most_frequent({}, 0)


class TestBatchJoin:
    @pytest.mark.parametrize("pattern", [(0,), (0, 1), (0, 1, 2)])
    def test_bitmaps_drop_most_rows_without_a_match(self, pattern: Pattern) -> None:
        """Also if every value of every single column is probed."""
        columns = some_columns(rows=10_000)
        codes = [columns.codes[column][:50] for column in pattern]
        index = BatchJoin(columns)
        matching = {row for _, row in matches(index, pattern, codes)}
        assert matching <= set(index.candidates(pattern, codes).tolist())
        assert len(index.candidates(pattern, codes)) <= len(matching) + 10_000 / 32

    def test_a_column_with_many_values_and_one_with_few(self) -> None:
        """Whichever comes first, the bitmap of the one with many is used."""
        rng = np.random.default_rng(5)
        many, few = (rng.integers(0, 2**64, 10_000, dtype=np.uint64) for _ in range(2))
        few = rng.choice(few[:2], 10_000)
        for codes in ([many, few], [few, many]):
            probes = [column[-20:] for column in codes]
            index = BatchJoin(Columns(codes, [None, None]))
            assert matches(index, (0, 1), probes) == [(row, 9_980 + row) for row in range(20)]
            assert len(index.candidates((0, 1), probes)) <= 20 + 10_000 / 32

    def test_columns_that_each_drop_a_part_of_the_rows(self) -> None:
        rng = np.random.default_rng(6)
        columns = some_columns(rows=1_000)
        row = rng.integers(0, 1_000, 2)
        codes = [column[row] for column in columns.codes]
        expected = nested_loop(columns, (0, 1, 2), codes)
        assert matches(BatchJoin(columns), (0, 1, 2), codes) == expected

    def test_rows_with_null_are_no_candidates(self) -> None:
        """NULLs share one code: without this, a probe with that code would get all of them."""
        codes = np.zeros(1_000, dtype=np.uint64)
        columns = Columns([codes], [np.arange(1_000) < 3])
        assert candidates(BatchJoin(columns), (0,), [codes[:1]]) == 3

    @pytest.mark.parametrize("index", [BatchJoin, Scan])
    def test_nothing_is_kept(self, index: Callable[[Columns], Index]) -> None:
        assert index(some_columns()).bytes == 0
