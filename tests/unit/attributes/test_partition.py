"""How domains are partitioned, and when the partitions are revised."""

import numpy as np
import pyarrow as pa
import pytest

from eddyline.attributes.kinds import is_discrete
from eddyline.attributes.layout import Layout, layout_of
from eddyline.attributes.partition import AttributePartition
from eddyline.attributes.screening import screen_attribute


class TestKinds:
    def test_integers_are_values_only_if_each_occurs_several_times(self):
        rng = np.random.default_rng(81)
        assert is_discrete(pa.array(rng.integers(0, 10, 64)))
        assert not is_discrete(pa.array(rng.integers(0, 1_000, 64)))
        assert not is_discrete(pa.array(rng.integers(0, 60, 64)))  # not seen often enough yet
        assert is_discrete(pa.array(rng.integers(0, 60, 512)))
        assert not is_discrete(pa.array(rng.integers(0, 1_000, 100_000)))

    def test_nulls_do_not_count_as_rows(self):
        assert not is_discrete(pa.array([1, 2, 3, *[None] * 20]))


class TestScreening:
    @pytest.mark.parametrize("rows", [64, 200, 1_000])
    def test_a_hundred_sites_are_not_too_many(self, rows):
        rng = np.random.default_rng(82)
        sites = [f"site {n}" for n in rng.integers(0, 100, rows)]
        assert screen_attribute(pa.array(sites)) is None

    @pytest.mark.parametrize("rows", [64, 200, 1_000])
    def test_a_different_text_in_every_row_is(self, rows):
        comments = [f"comment {n}" for n in np.random.default_rng(83).permutation(rows)]
        assert "too many different values" in screen_attribute(pa.array(comments))


class TestLayouts:
    def test_ranges_have_the_same_number_of_rows_whatever_the_distribution(self):
        skewed = np.exp(8 * np.random.default_rng(84).random(24_000))
        layout = layout_of(pa.array(skewed), 24, 0, "frequency")
        counts = np.bincount(layout.assign(pa.array(skewed)))
        assert len(counts) == 24
        assert counts.min() > 900
        assert counts.max() < 1_100

    def test_few_numbers_have_a_range_each(self):
        layout = layout_of(pa.array([1.0, 5.0, 9.0] * 10), 24, 0, "frequency")
        assert layout.assign(pa.array([9.0, 1.0, 5.0, 100.0])).tolist() == [2, 0, 1, 2]

    def test_nan_and_null_have_the_last_partition_and_infinity_has_not(self):
        layout = layout_of(pa.array([1.0, 2.0, float("inf")] * 5), 4, 2, "frequency")
        values = pa.array([float("nan"), None, float("inf"), -float("inf")])
        assert layout.assign(values).tolist() == [6, 6, 1, 0]

    def test_frequent_values_have_partitions_of_their_own_and_others_are_hashed(self):
        layout = layout_of(pa.array(["a"] * 5 + ["b"] * 3 + ["c"]), 4, 2, "frequency")
        assert layout.values == ("a", "b")
        a, b, c, unknown, null = layout.assign(pa.array(["a", "b", "c", "z", None])).tolist()
        assert (a, b, null) == (0, 1, 6)
        assert 2 <= c <= 5
        assert 2 <= unknown <= 5
        assert layout.hashed_share(pa.array(["a", "c", "z", None])) == 0.5

    @pytest.mark.parametrize("value", ["x", 7, -7, True])
    def test_nulls_do_not_change_the_partition_of_other_values(self, value):
        layout = Layout(24, 0, is_discrete=True)
        plain, with_null = pa.array([value] * 2), pa.array([value, None])
        assert layout.assign(plain)[0] == layout.assign(with_null)[0]
        assert layout.assign(with_null)[1] == 24

    def test_new_ranges_come_from_the_old_ones_that_their_middles_were_in(self):
        old, new = Layout(4, 0, False, cuts=(10.0, 20.0)), Layout(4, 0, False, cuts=(10.0, 12.0))
        assert new.moved_from(old).tolist() == [0, 1, 1, 4, 4]

    def test_values_keep_what_was_known_of_them_and_other_kinds_nothing(self):
        old = Layout(2, 2, True, values=("a", "b"))
        new = Layout(2, 2, True, values=("b", "c"))
        hashed = old.partition_of("c")
        assert hashed in (2, 3)
        assert new.moved_from(old).tolist() == [1, hashed, 2, 3, 4]
        assert new.moved_from(Layout(2, 2, False, cuts=(1.0,))).tolist() == [4] * 5


class TestRevision:
    def test_ranges_are_kept_while_they_serve(self):
        rng = np.random.default_rng(85)
        partition = AttributePartition(24)
        assert partition.look(pa.array(rng.random(1_000))) is None
        before = partition.layout
        assert partition.look(pa.array(rng.random(1_000))) is None
        assert partition.layout is before

    def test_ranges_are_revised_when_the_values_have_moved(self):
        rng = np.random.default_rng(86)
        partition = AttributePartition(24)
        partition.look(pa.array(rng.random(1_000)))
        before = partition.layout
        for _ in range(3):
            old = partition.look(pa.array(5 + rng.random(1_000)))
        assert len(set(partition.assign(pa.array(5 + rng.random(1_000))).tolist())) > 20
        assert old is None or old is not before

    def test_integers_become_values_once_they_are_known_to_be_few(self):
        rng = np.random.default_rng(87)
        partition = AttributePartition(24, values_max=100)
        partition.look(pa.array(rng.integers(0, 60, 64)))
        assert not partition.layout.is_discrete
        partition.look(pa.array(rng.integers(0, 60, 128)))
        assert not partition.layout.is_discrete  # still too few rows to say so
        old = partition.look(pa.array(rng.integers(0, 60, 512)))
        assert not old.is_discrete
        assert partition.layout.is_discrete
        assert len(partition.layout.values) == 60

    def test_values_that_have_become_frequent_get_partitions(self):
        partition = AttributePartition(24, values_max=4)
        partition.look(pa.array(["a", "b"] * 512))
        partition.look(pa.array(["c", "d"] * 512))
        assert set(partition.layout.values) == {"a", "b", "c", "d"}

    def test_the_sample_is_bounded_and_of_the_newest_rows(self):
        partition = AttributePartition(24)
        for begin in range(0, 10_000, 1_000):
            partition.look(pa.array(np.arange(begin, begin + 1_000) / 7))
        assert len(partition.sample) == 2_048
        assert partition.sample[-1].as_py() == 9_999 / 7

    def test_bounds_of_ranges_of_equal_width_only_widen(self):
        partition = AttributePartition(4, cut_by="width")
        partition.look(pa.array([0.0, 4.0] * 300))
        assert partition.layout.cuts == (1.0, 2.0, 3.0)
        partition.look(pa.array([1.0, 2.0] * 300))
        assert partition.layout.cuts == (1.0, 2.0, 3.0)
        partition.look(pa.array([8.0] * 600))
        assert partition.layout.cuts == (2.0, 4.0, 6.0)

    def test_a_restored_layout_stays_until_the_sample_is_full(self):
        partition = AttributePartition(24)
        partition.restore(Layout(24, 0, False, cuts=(0.5,)))
        values = pa.array(np.random.default_rng(88).random(1_024))
        assert partition.look(values) is None
        assert partition.look(values) is not None
        assert partition.size == partition.layout.size


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("first", [-60, 0, 40, 10**6, -(2**40)])
def test_integers_in_a_table_have_the_partition_of_their_value(kind, first) -> None:
    rng = np.random.default_rng(71)
    own = tuple((first + rng.permutation(50)[:32]).tolist())
    layout = Layout(24, 32, True, values=own)
    limits = np.iinfo(kind.to_pandas_dtype())
    around = [first + n for n in range(-5, 60)]
    fitting = [n for n in (*around, 0, 1) if limits.min <= n <= limits.max]
    far = [limits.min, limits.max]
    inside = [n for n in fitting if min(own) <= n <= max(own)]
    for values in (inside, fitting + far, [limits.max - n for n in range(12, 58)], [None, 1]):
        expected = [layout.size - 1 if n is None else layout.partition_of(n) for n in values]
        assert layout.assign(pa.array(values, kind)).tolist() == expected


def test_a_layout_is_left_alone_without_a_proposal_only_where_none_would_be_better() -> None:
    rng = np.random.default_rng(72)
    skipped = 0
    for _ in range(300):
        partition = AttributePartition(24, 32)
        for _ in range(4):
            rows = int(rng.integers(50, 2_500))
            spread = int(rng.choice([3, 30, 300, 30_000]))
            values = rng.integers(0, spread, rows) + int(rng.choice([0, 0, spread // 3, 10**6]))
            column = pa.array(values if rng.random() < 0.5 else values / 3.0)
            if partition.sample is not None:
                column = column.cast(partition.sample.type, safe=False)
            before = partition.layout
            partition.look(column)
            if before is not None and partition._suits(before):
                proposal = layout_of(partition.sample, 24, 32, "frequency")
                assert not partition._is_better(proposal, before)
                skipped += 1
    assert skipped > 100


@pytest.mark.parametrize("partitions", [24, 300])
def test_ranges_are_those_of_a_search(partitions: int) -> None:
    rng = np.random.default_rng(71)
    layout = layout_of(pa.array(rng.random(5_000)), partitions, 0, "frequency")
    values = np.concatenate([rng.random(1_000), layout.cuts, [-np.inf, np.inf]])
    expected = np.searchsorted(layout.cuts, values, side="right")
    assert layout.assign(pa.array(values)).tolist() == expected.tolist()
    assert layout.assign(pa.array([None, np.nan])).tolist() == [partitions] * 2
