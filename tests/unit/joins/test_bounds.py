"""Comparisons across streams are a little too generous, never too strict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.arrays import FloatArray
from eddyline.joins.bounds import admits, highest, lowest
from eddyline.joins.plan import Bound, KeyRef, Role

LOW, HIGH = KeyRef(Role(0), 0), KeyRef(Role(1), 0)
NUMBERS = st.floats(-(2.0**40), 2.0**40, width=32)


def is_admitted(low: float, high: float, offset: float) -> bool:
    values = {LOW: np.array([low]), HIGH: np.array([high])}

    def column(ref: KeyRef) -> FloatArray:
        return values[ref]

    return bool(admits(Bound(LOW, HIGH, offset), column)[0])


@given(low=NUMBERS, high=NUMBERS, offset=st.floats(-1e6, 1e6, width=32))
def test_whatever_32_bits_find_true_is_admitted(low: float, high: float, offset: float) -> None:
    difference = np.float32(low) - np.float32(high)
    if difference <= np.float32(offset):
        assert is_admitted(low, high, offset)


@given(low=st.integers(-(2**63), 2**63 - 1), high=st.integers(-(2**63), 2**63 - 1))
def test_rounding_keeps_the_order(low: int, high: int) -> None:
    if low <= high:
        assert is_admitted(float(low), float(high), 0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (np.nan, 1.0, False),  # NULL
        (1.0, np.nan, False),
        (np.inf, np.inf, True),  # NaN is at most NaN
        (1.0, np.inf, True),
        (np.inf, 1.0, False),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_null_and_nan(low: float, high: float, expected: bool, offset: float) -> None:
    assert is_admitted(low, high, offset) is expected


@given(value=NUMBERS, offset=st.floats(-1e6, 1e6, width=32))
def test_both_limits_contain_what_is_admitted(value: float, offset: float) -> None:
    bound, values = Bound(LOW, HIGH, offset), np.array([value])
    assert is_admitted(value + offset, value, offset)
    assert highest(bound, values)[0] >= value + offset
    assert lowest(bound, values)[0] <= value - offset


def test_infinite_values_stay_infinite() -> None:
    """Spark's NaN is one; a NaN here would be NULL, which no comparison admits."""
    infinite = np.array([np.inf, -np.inf])
    for offset in (-2.0, 0.0, 3.0):
        bound = Bound(KeyRef(Role(0), 0), KeyRef(Role(1), 0), offset)
        assert highest(bound, infinite).tolist() == infinite.tolist()
        assert lowest(bound, infinite).tolist() == infinite.tolist()
