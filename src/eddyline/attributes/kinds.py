"""What kind of column this is: values to tell apart, or a magnitude."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import FloatArray

DISTINCT_MAX = 200  # an integer column with more different values in a sample is continuous
REPEATS_MIN = 4  # rows for each different value, on average, before a sample shows all values


def is_discrete(values: pa.Array) -> bool:
    """Return True if an attribute has values to tell apart rather than a magnitude.

    Integers are values to tell apart only if the sample has few of them and each occurs several
    times: of 96 rows nearly all would be different in a column of a million values as well.

    Examples
    --------
    >>> is_discrete(pa.array(["a"])), is_discrete(pa.array([1.5]))
    (True, False)
    >>> is_discrete(pa.array([1, 2] * 4)), is_discrete(pa.array([1, 2, 3, 4, 5, 6, 7, 8]))
    (True, False)

    """
    kind = values.type
    if pa.types.is_integer(kind):
        known = len(values) - values.null_count
        for rows in (2 * DISTINCT_MAX, len(values)):  # a few rows often show that it has many
            distinct = pc.count_distinct(values.slice(0, rows)).as_py()
            if distinct > DISTINCT_MAX or REPEATS_MIN * distinct > known:
                return False
        return True
    is_continuous = (
        pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind)
    )
    return not is_continuous


def to_numbers(values: pa.Array) -> FloatArray:
    """Return numbers, dates or timestamps as floating-point numbers; NULL becomes NaN.

    Examples
    --------
    >>> to_numbers(pa.array([1, None])).tolist()
    [1.0, nan]

    """
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
