"""Which attributes cannot classify rows, and why: the reasons are shown to users.

References
----------
Bizarro et al., Content-Based Routing, VLDB 2005, section 4.4.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.attributes.kinds import is_discrete, to_numbers

LENGTH_MAX = 64
ROWS_MIN = 32
DISTINCT_SHARE_MAX = 0.5
#: A text column of so many equally frequent values is not rejected, however few rows are known.
TEXT_VALUES_MIN = 500
MONOTONE_SHARE = 0.95

#: Why an attribute without a single value cannot classify rows.
NULL_EVERYWHERE = "NULL in every row that was looked at"
#: Why an attribute that passed the screening is not used by the classifier that was found.
NOT_WORTH_ITS_COST = "does not separate the rows well enough to pay for itself"


def screen_type(kind: pa.DataType) -> str | None:
    """Return why columns of a type cannot classify rows; None if they can.

    Examples
    --------
    >>> screen_type(pa.int64()) is None
    True
    >>> screen_type(pa.list_(pa.int64()))
    'a list is not a single value'
    >>> screen_type(pa.binary())
    'values of type binary cannot classify rows'

    """
    name = str(kind).split("<")[0]
    if pa.types.is_nested(kind):
        return f"a {name} is not a single value"
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if is_binary or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return f"values of type {name} cannot classify rows"
    return None


def screen_attribute(values: pa.Array) -> str | None:
    """Return why an attribute cannot classify rows, from a sample; None if it can.

    The sample must be in arrival order.

    Examples
    --------
    >>> screen_attribute(pa.array(list(range(100))))
    'grows with arrival order, so it cannot classify future rows'
    >>> screen_attribute(pa.array(["x"] * 100))
    'constant'
    >>> screen_attribute(pa.array([None] * 100, pa.string()))
    'NULL in every row that was looked at'
    >>> screen_attribute(pa.array([f"comment {n * 37 % 101}" for n in range(100)]))
    'has too many different values: 100 in 100 rows'
    >>> screen_attribute(pa.array(["y" * 100, "z" * 100] * 50))
    'is too long: 100 characters on average'
    >>> screen_attribute(pa.array(["a", "b"] * 50)) is None
    True

    """
    by_type = screen_type(values.type)
    if by_type is not None or len(values) < ROWS_MIN:
        return by_type
    if pa.types.is_temporal(values.type):
        try:
            pc.min_max(values).as_py()
        except (OverflowError, ValueError):
            return "has dates outside the range of Python's"
    if _is_constant(values):
        return "constant" if values.null_count == 0 else NULL_EVERYWHERE
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        distinct = pc.count_distinct(values, mode="all").as_py()
        length = pc.mean(pc.utf8_length(values)).as_py()
        if length > LENGTH_MAX:
            return f"is too long: {length:.0f} characters on average"
        if distinct > _distinct_max(len(values)):
            return f"has too many different values: {distinct} in {len(values)} rows"
    elif not is_discrete(values):
        numbers = to_numbers(values)
        steps = np.diff(numbers[~np.isnan(numbers)])
        up, down = np.count_nonzero(steps >= 0), np.count_nonzero(steps <= 0)
        if len(steps) and max(up, down) >= MONOTONE_SHARE * len(steps):
            direction = "grows" if up >= down else "falls"
            return f"{direction} with arrival order, so it cannot classify future rows"
    return None


def _is_constant(values: pa.Array) -> bool:
    # The first rows often show that it is not.
    return all(
        pc.count_distinct(part, mode="all").as_py() == 1
        for part in (values.slice(0, ROWS_MIN), values)
    )


def _distinct_max(rows: int) -> float:
    """Return how many different values a text column may have in a sample.

    A share of the rows; but in a small sample a column of some hundred values, too, has a different
    one in most rows.
    """
    in_small_sample = TEXT_VALUES_MIN * (1.0 - math.exp(-rows / TEXT_VALUES_MIN))
    return max(DISTINCT_SHARE_MAX * rows, in_small_sample)
