"""The bit-address index: the paper's example, the rows of a scan, and bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.arrays import Codes
from eddyline.index import bit_address
from eddyline.index.bit_address import BITS_MAX, BitAddress, _walks, search_together
from eddyline.index.bit_map import BitMap, balanced
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.index import Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash

MULTIPLIER = np.uint64(0x9E37_79B9_7F4A_7C15)
PACKAGES = Configuration((5, 2, 3))


def codes_of(values: Sequence[int] | np.ndarray) -> Codes:
    return np.asarray(values, dtype=np.uint64) * MULTIPLIER


def plain_map(configuration: Configuration) -> KeyMap:
    return KeyMap(configuration, tuple(map(BitMap, configuration.bits)))


def uniform(rows: int, columns: int, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    return Columns(
        [codes_of(rng.integers(0, rows, rows)) for _ in range(columns)], [None] * columns
    )


def matches(index: BitAddress, pattern: Pattern, codes: Sequence[Codes]) -> list[tuple[int, int]]:
    probes, positions = index.ranges(pattern, codes).expand()
    rows, is_equal = index.confirm(pattern, positions, [column[probes] for column in codes])
    return sorted(zip(probes[is_equal].tolist(), rows[is_equal].tolist(), strict=True))


def scan(columns: Columns, pattern: Pattern, codes: Sequence[Codes]) -> list[tuple[int, int]]:
    return [
        (probe, row)
        for probe in range(len(codes[0]))
        for row in range(len(columns))
        if all(
            columns.codes[column][row] == given_codes[probe]
            and ((valid := columns.is_valid[column]) is None or valid[row])
            for column, given_codes in zip(pattern, codes, strict=True)
        )
    ]


def test_the_packages_of_the_paper_are_in_their_buckets() -> None:
    """Section 4.1: bucket 250; a search by priority and location walks 226, 234, 242 and 250."""
    cells = ((0b00111, 5), (0b11, 2), (0b010, 3))
    codes = [np.array([cell << 64 - bits], dtype=np.uint64) for cell, bits in cells]
    key_map = plain_map(PACKAGES)
    assert key_map.addresses(codes).tolist() == [250]
    index = BitAddress(uniform(10_000, 3), key_map)
    walk = index.walk((0, 2))
    walked = index.base(walk, (0, 2), [codes[0], codes[2]]) + walk.wild
    assert walked.tolist() == [226, 234, 242, 250]
    assert walk.length == 1


@st.composite
def cases(draw: st.DrawFn) -> tuple[Columns, Configuration, Pattern, list[Codes]]:
    count = draw(st.integers(1, 4))
    rows = draw(st.integers(0, 40))
    domain = draw(st.sampled_from([1, 3, 50]))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    codes = [codes_of(rng.integers(0, domain, rows)) for _ in range(count)]
    is_valid = [rng.random(rows) < 0.8 if draw(st.booleans()) else None for _ in range(count)]
    bits = tuple(draw(st.integers(0, 7)) for _ in range(count))
    order = tuple(draw(st.permutations(range(count))))
    width = draw(st.integers(1, count))
    pattern = tuple(sorted(draw(st.permutations(range(count)))[:width]))
    probes = [codes_of(rng.integers(0, domain + 1, 6)) for _ in pattern]
    return Columns(codes, is_valid), Configuration(bits, order), pattern, probes


@settings(max_examples=200)
@given(cases(), st.booleans())
def test_it_finds_what_a_scan_finds(
    case: tuple[Columns, Configuration, Pattern, list[Codes]], is_balanced: bool
) -> None:
    columns, configuration, pattern, probes = case
    key_map = KeyMap.of(configuration, columns) if is_balanced else plain_map(configuration)
    index = BitAddress(columns, key_map)
    assert matches(index, pattern, probes) == scan(columns, pattern, probes)


@pytest.mark.parametrize("pattern", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_known_bits_narrow_a_search(pattern: Pattern) -> None:
    """Of 20,000 rows, a search that knows b bits compares about 2 to the -b."""
    rows = 20_000
    columns = uniform(rows, 3)
    index = BitAddress(columns, plain_map(Configuration((3, 3, 3))))
    codes = [columns.codes[column][:50] for column in pattern]
    candidates = index.ranges(pattern, codes).counts.sum() / 50
    expected = rows / 2 ** index.configuration.given(pattern)
    assert candidates == pytest.approx(expected, rel=0.2)


def test_bits_below_the_offsets_are_searched_in_the_sorted_addresses() -> None:
    """16 bits over 2,500 rows: offsets of 10 bits alone would leave 2.4 rows of other buckets."""
    columns = uniform(2_500, 2)
    index = BitAddress(columns, plain_map(Configuration((8, 8))))
    codes = [column[:500] for column in columns.codes]
    assert index.ranges((0, 1), codes).counts.sum() / 500 < 1.1
    few = [column[:20] for column in codes]
    assert matches(index, (0, 1), few) == scan(columns, (0, 1), few)


@pytest.mark.parametrize("rows", [1_000, 2_500, 65_536, 100_000])
@pytest.mark.parametrize("bits", [(4, 4), (8, 8), (12, 12)])
def test_it_takes_at_most_eight_bytes_a_row(rows: int, bits: tuple[int, int]) -> None:
    index = BitAddress(uniform(rows, 2), plain_map(Configuration(bits)))
    assert index.bytes <= 8.01 * rows


def test_columns_in_the_high_bits_need_one_range() -> None:
    columns = uniform(4_096, 3)
    bits = (4, 4, 4)
    high = BitAddress(columns, plain_map(Configuration(bits, (2, 0, 1))))
    low = BitAddress(columns, plain_map(Configuration(bits, (0, 2, 1))))
    assert high.ranges_per_probe((2,)) == 1
    assert low.ranges_per_probe((2,)) == 16


def test_bits_that_cost_more_ranges_than_they_save_rows_are_left_out() -> None:
    """Walking 1,024 ranges of a bucket each would cost more than comparing 1,024 rows."""
    columns = uniform(1_024, 2)
    index = BitAddress(columns, plain_map(Configuration((10, 2))))
    assert index.ranges_per_probe((1,)) == 1
    codes = [columns.codes[1][:20]]
    assert matches(index, (1,), codes) == scan(columns, (1,), codes)


def test_ranges_are_looked_up_in_bounded_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = uniform(5_000, 2)
    index = BitAddress(columns, plain_map(Configuration((4, 4))))
    codes = [columns.codes[1][:300]]
    whole = index.ranges((1,), codes)
    monkeypatch.setattr(bit_address, "RANGES_MAX", 100)
    sizes = []
    look_up = BitAddress._look_up

    def noted(self: BitAddress, walk: bit_address.Walk, first: int, base: np.ndarray) -> object:
        sizes.append(len(base) * len(walk.wild))
        return look_up(self, walk, first, base)

    monkeypatch.setattr(BitAddress, "_look_up", noted)
    parts = index.ranges((1,), codes)
    assert max(sizes) <= 100
    assert parts.probes.tolist() == whole.probes.tolist()
    assert parts.starts.tolist() == whole.starts.tolist()
    assert parts.counts.tolist() == whole.counts.tolist()


def test_partitions_with_the_same_configuration_are_searched_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Section 4.2: bucket ids are computed once for all of them."""
    same, other = plain_map(Configuration((4, 4))), plain_map(Configuration((6, 2)))
    parts = [uniform(3_000, 2, seed) for seed in range(4)]
    indexes = [
        *[BitAddress(columns, same) for columns in parts[:3]],
        BitAddress(parts[3], other),
        LazyHash(parts[0]),
    ]
    codes = [parts[0].codes[0][:50], parts[1].codes[1][:50]]
    expected = [index.ranges((0, 1), codes) for index in indexes]
    computed = []
    base = BitAddress.base
    monkeypatch.setattr(
        BitAddress, "base", lambda self, *given: computed.append(self) or base(self, *given)
    )
    found = search_together(indexes, (0, 1), codes)
    assert len(computed) == 2
    for one, two in zip(found, expected, strict=True):
        assert one.starts.tolist() == two.starts.tolist()
        assert one.probes.tolist() == two.probes.tolist()


def test_too_many_bits_are_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {BITS_MAX} bits; got 40"):
        BitAddress(uniform(10, 2), plain_map(Configuration((20, 20))))


@pytest.mark.parametrize("bits", [5, 6])
def test_a_balanced_map_compares_fewer_rows_of_skewed_values(bits: int) -> None:
    """Section 4.1, end: about as many rows in each bucket."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1, 101) ** 0.7
    codes = codes_of(rng.choice(rng.integers(0, 10**6, 100), 20_000, p=shares / shares.sum()))
    balanced_map = balanced(codes, bits)
    assert balanced_map.cuts is not None
    share = {}
    for name, bit_map in (("balanced", balanced_map), ("hashed", BitMap(bits))):
        filled = np.bincount(bit_map.cells(codes), minlength=1 << bits)
        assert len(filled) == 1 << bits
        share[name] = (filled.astype(float) ** 2).sum()
    assert share["balanced"] < 0.8 * share["hashed"]


def test_even_values_keep_their_high_bits() -> None:
    """Cutting codes costs a search for each row, so it is not done for nothing."""
    assert balanced(codes_of(np.arange(10_000)), 6).cuts is None


def test_few_values_get_a_cell_each() -> None:
    codes = codes_of(np.array([3, 17, 99, 12345, 777, 2, 40, 8]))
    for bits, values in itertools.product((3, 4), (5, 8)):
        cells = balanced(codes[:values], bits).cells(codes[:values])
        hashed = BitMap(bits).cells(codes[:values])
        assert len(set(cells.tolist())) >= len(set(hashed.tolist()))


@pytest.mark.parametrize(
    ("bits", "order", "said"),
    [
        ((), (), "one for each column"),
        ((-1,), (), "numbers from 0"),
        ((1, 2), (0, 0), "not a permutation"),
    ],
)
def test_bad_configurations_are_refused(
    bits: tuple[int, ...], order: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Configuration(bits, order)


@pytest.mark.parametrize("bits", [4, 11, 12, 16])
def test_values_that_a_hash_spreads_are_not_cut(bits: int) -> None:
    # Cuts made from a sample separate its 4,096 rows perfectly, and no others.
    codes = np.random.default_rng(0).integers(0, 1 << 64, 100_000, dtype=np.uint64)
    assert balanced(codes, bits).cuts is None


def test_no_walk_has_more_ranges_than_rows_are_worth() -> None:
    """The known bits lie below 20 unknown ones: a million ranges for a hundred rows."""
    walks = list(_walks(Configuration((20, 2)), (1,), rows=100))
    assert [len(walk.wild) for walk in walks] == [1]
    assert max(len(walk.wild) for walk in _walks(Configuration((7, 2)), (1,), rows=100)) == 128
