"""Bits that keep the order of two columns: all rows within both intervals, and few others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.index.ordered_bits import Limits, OrderedBits


def found(index: OrderedBits, first: Limits, second: Limits) -> list[tuple[int, int]]:
    ranges = index.ranges(first, second)
    assert (np.diff(ranges.probes) >= 0).all()
    probes, positions = ranges.expand()
    return list(zip(probes.tolist(), index.rows[positions].tolist(), strict=True))


VALUES = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([np.nan, np.inf, -np.inf]))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(VALUES, VALUES), max_size=40),
    st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES), min_size=1, max_size=8),
)
def test_all_rows_within_both_intervals_are_candidates(
    rows: list[tuple[float, float]], probes: list[tuple[float, float, float, float]]
) -> None:
    x, y = (np.array([row[n] for row in rows], dtype=np.float64) for n in (0, 1))
    low, high, below, above = (np.array([probe[n] for probe in probes]) for n in range(4))
    candidates = found(OrderedBits(x, y), Limits(low, high), Limits(below, above))
    assert len(set(candidates)) == len(candidates)
    expected = {
        (probe, row)
        for probe in range(len(probes))
        for row in range(len(rows))
        if low[probe] <= x[row] <= high[probe] and below[probe] <= y[row] <= above[probe]
    }
    assert expected <= set(candidates)
    with_nan = set(np.flatnonzero(np.isnan(x) | np.isnan(y)).tolist())
    assert not with_nan & {row for _, row in candidates}


def test_two_columns_leave_few_candidates() -> None:
    """A square with a hundredth of both ranges: one column leaves 1,000 rows, two about 30."""
    rng = np.random.default_rng(2)
    x, y = rng.random(100_000), rng.random(100_000)
    index = OrderedBits(x, y)
    at = rng.random((2, 50)) * 0.98
    first, second = (Limits(low, low + 0.01) for low in at)
    candidates = index.ranges(first, second).counts.sum() / 50
    assert candidates < 60
    assert index.ranges_per_probe(first).max() <= 5
    assert index.bytes < 24 * 100_000
