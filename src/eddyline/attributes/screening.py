"""What content-based routing need not look at: attributes and operators that cannot help.

References
----------
Bizarro et al., Content-Based Routing, VLDB 2005, section 4.4.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.attributes.partition import is_discrete, to_numbers

LENGTH_MAX = 64
ROWS_MIN = 32
DISTINCT_SHARE_MAX = 0.5
MONOTONE_SHARE = 0.95


def useless_type(kind: pa.DataType) -> str | None:
    """Say why columns of a type cannot tell classes apart; None if they can.

    Examples
    --------
    >>> useless_type(pa.int64()) is None
    True
    >>> useless_type(pa.list_(pa.int64()))
    'a list is no single value'

    """
    if pa.types.is_nested(kind):
        return f"a {str(kind).split('<')[0]} is no single value"
    if pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return str(kind).split("<")[0]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "binary"
    return None


def useless_attribute(values: pa.Array) -> str | None:
    """Say why an attribute cannot tell classes of rows apart, from a sample; None if it can.

    The sample must be in the order in which the rows came.

    Examples
    --------
    >>> useless_attribute(pa.array(list(range(100))))
    'monotone: it tells when a row came, not what it is like'
    >>> useless_attribute(pa.array(["x"] * 100))
    'constant'
    >>> useless_attribute(pa.array([f"comment {n * 37 % 101}" for n in range(100)]))
    'large domain: 100 different values in 100 rows'
    >>> useless_attribute(pa.array(["y" * 100, "z" * 100] * 50))
    'long: 100 characters on average'
    >>> useless_attribute(pa.array(["a", "b"] * 50)) is None
    True

    """
    by_type = useless_type(values.type)
    if by_type is not None or len(values) < ROWS_MIN:
        return by_type
    if pa.types.is_temporal(values.type):
        try:
            pc.min_max(values).as_py()
        except (OverflowError, ValueError):
            return "dates that Python cannot hold"
    distinct = pc.count_distinct(values, mode="all").as_py()
    if distinct == 1:
        return "constant"
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        length = pc.mean(pc.utf8_length(values)).as_py()
        if length > LENGTH_MAX:
            return f"long: {length:.0f} characters on average"
        if distinct > DISTINCT_SHARE_MAX * len(values):
            return f"large domain: {distinct} different values in {len(values)} rows"
    elif not is_discrete(values) or distinct > DISTINCT_SHARE_MAX * len(values):
        numbers = to_numbers(values)
        steps = np.diff(numbers[~np.isnan(numbers)])
        up, down = np.count_nonzero(steps >= 0), np.count_nonzero(steps <= 0)
        if len(steps) and max(up, down) >= MONOTONE_SHARE * len(steps):
            return "monotone: it tells when a row came, not what it is like"
    return None
