"""Join keys: which values are equal, as in Spark's joins."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from eddyline.joins.keys import concat_keys, is_own_code, key_column

DAY = datetime.date(2024, 1, 5)


@pytest.mark.parametrize(
    ("kind", "one", "other", "is_equal"),
    [
        (pa.float64(), 0.0, -0.0, True),
        (pa.float64(), float("nan"), float("nan"), True),
        (pa.float64(), 1.0, float("nan"), False),
        (pa.float32(), 0.1, 0.1, True),
        (pa.int64(), 2**62, -(2**62), False),
        (pa.int8(), -1, -1, True),
        (pa.bool_(), True, False, False),
        (pa.date32(), DAY, DAY, True),
        (pa.int64(), None, None, False),
        (pa.int64(), None, 0, False),  # NULL has a code too
    ],
)
def test_values_are_equal_as_in_spark(
    kind: pa.DataType, one: object, other: object, is_equal: bool
) -> None:
    left, right = (key_column(pa.array([value], kind)) for value in (one, other))
    assert left.equals(right).tolist() == [is_equal]
    if one is not None and other is not None:
        assert (left.codes == right.codes).tolist() == [is_equal]


def test_equal_hashes_are_compared_by_value() -> None:
    hashes = pa.array([5, 5, 5])
    left = key_column(pa.array(["a", "b", None]), hashes)
    right = key_column(pa.array(["a", "c", None]), hashes)
    assert left.equals(right).tolist() == [True, False, False]


def test_rows_stored_without_a_key_are_null() -> None:
    known = key_column(pa.array(["a"]), pa.array([5]))
    absent = key_column(pa.array([None], pa.int64()))
    joined = concat_keys([known, absent])
    assert joined.equals(joined).tolist() == [True, False]


def test_values_of_64_bits_need_no_hash() -> None:
    own = [pa.int8(), pa.uint64(), pa.float32(), pa.bool_(), pa.date32(), pa.timestamp("us", "UTC")]
    assert all(map(is_own_code, own))
    hashed = [pa.string(), pa.binary(), pa.decimal128(10, 2), pa.list_(pa.int8())]
    assert not any(map(is_own_code, hashed))
