"""What the written order, and Spark's filter, would have cost: estimated without selection bias."""

from __future__ import annotations

import types

import numpy as np
import pyarrow as pa
import pytest

from eddyline.fabric import Router, RouterOptions, operator_array
from eddyline.operators import ColumnReader, RowPredicate
from eddyline.report.model import PredicateLine

ROWS = 20_000
LONG_SHARE = 0.05
LONG_US, SHORT_US = 200.0, 10.0


def test_a_predicate_that_only_costly_rows_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only long rows pass "is_long", and "slow" takes 20 times as long for them."""
    now_s = 0.0

    def spend(us: float, answer: bool) -> bool:
        nonlocal now_s
        now_s += us / 1e6
        return answer

    clock = types.SimpleNamespace(perf_counter=lambda: now_s)
    monkeypatch.setattr(operator_array, "time", clock)
    rng = np.random.default_rng(0)
    is_long = rng.random(ROWS) < LONG_SHARE
    slow = RowPredicate("slow", (0,), lambda a: spend(LONG_US if a else SHORT_US, True))
    first = RowPredicate("is_long", (0,), lambda a: spend(1.0, a))
    router = Router(
        [slow, first],
        [ColumnReader("long")],
        "agreedy",
        options=RouterOptions(budget=None, seed=0),
    )
    for start in range(0, ROWS, 1_000):
        router.route([pa.array(is_long[start : start + 1_000])], rows=min(1_000, ROWS - start))
    totals = router.totals
    assert totals.seen[0] < ROWS / 4  # "is_long" comes first once that is learnt
    line = PredicateLine(
        "slow",
        "row",
        int(totals.seen[0]),
        busy_us=totals.busy_us[0],
        profiled=int(totals.profiled[0]),
        profiled_us=totals.profiled_us[0],
        written_seen=totals.written_seen[0],
        in_order_seen=int(totals.in_order_seen[0]),
        in_order_us=totals.in_order_us[0],
    )
    true_us = float(np.where(is_long, LONG_US, SHORT_US).sum())
    assert line.on_all_us(ROWS) == pytest.approx(true_us, rel=0.1)
    assert line.as_written_us(ROWS) == pytest.approx(true_us, rel=0.1)
    assert line.cost_us is not None
    assert ROWS * line.cost_us > 2 * true_us  # what rows that reached it would say
