"""Small parts that every join rests on: windows of several queries, bitmaps, orders, memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.joins.join_tree import largest_rows, largest_window
from eddyline.joins.keys import key_column
from eddyline.joins.match_lists import _order_by
from eddyline.joins.plan import JoinQuery, Role, words_of
from eddyline.joins.run import Run

ROLE = Role(0)


@pytest.mark.parametrize(
    ("windows", "largest"), [([10], 10), ([10, 30, 20], 30), ([10, None], None), ([None], None)]
)
def test_rows_are_kept_for_the_query_with_the_largest_window(
    windows: list[int | None], largest: int | None
) -> None:
    queries = [JoinQuery(n, (ROLE,), (), {ROLE: window}) for n, window in enumerate(windows)]
    assert largest_window(queries, ROLE) == largest
    in_rows = [{} if window is None else {ROLE: window} for window in windows]
    queries = [JoinQuery(n, (ROLE,), (), {ROLE: 1}, own) for n, own in enumerate(in_rows)]
    assert largest_rows(queries, ROLE) == largest


@pytest.mark.parametrize(
    ("slots", "words"), [([], 1), ([0], 1), ([63], 1), ([64], 2), ([5, 200], 4)]
)
def test_bitmaps_are_as_wide_as_the_last_slot_needs(slots: list[int], words: int) -> None:
    assert words_of([JoinQuery(slot, (ROLE,), (), {ROLE: 1}) for slot in slots]) == words


@pytest.mark.parametrize("count", [1 << 16, (1 << 16) + 1, 1 << 17])
def test_matches_are_ordered_by_parent_however_many_parents_there_are(count: int) -> None:
    parents = np.array([count - 1, 3, count - 1, 0, 65_535])
    order = _order_by(parents, count)
    assert order is not None
    assert parents[order].tolist() == sorted(parents.tolist())
    assert _order_by(np.array([0, 3, 3, count - 1]), count) is None


def test_the_memory_of_a_run_has_all_its_indexes() -> None:
    """Workers keep as many runs as fit into their memory."""
    rows = 1_000
    run = Run(
        [key_column(pa.array(range(rows)))],
        np.zeros(rows, np.int64),
        {0: np.ones((rows, 1), dtype=np.uint64)},
        pa.record_batch({"v": range(rows)}),
        compared=[np.random.default_rng(0).random(rows) for _ in range(2)],
    )
    sizes = [run.index_bytes]
    run.sorted_values(0)
    sizes.append(run.index_bytes)
    run.ordered_bits(0, 1)
    sizes.append(run.index_bytes)
    assert run.partition().bit_address.bytes > 0
    sizes.append(run.index_bytes)
    assert sizes == sorted(set(sizes))
    assert run.sorted_values(0) is run.sorted_values(0)  # built once
    assert run.ordered_bits(0, 1) is run.ordered_bits(0, 1)
    assert sizes[1] - sizes[0] >= 4 * rows
