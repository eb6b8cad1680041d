"""Rows that change with time: what the order costs, how often it is doubted, what profiling takes.

The answers in `fixtures/newsgroups.npz` are those of five predicates on the 11,314 texts of the 20
Newsgroups training set, a bit each, in the order of the groups: is it shorter than 3,000
characters, does it contain "writes", does it have five times " the ", does it match a regular
expression of seven words, and a "model" that keeps 40 % of the texts at random.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bench.cbr_data import rotating
from eddyline.bench.stream_star import source_based_calls
from eddyline.fabric import Router, RouterOptions
from eddyline.journal.events import DriftDetected, OrderChanged
from eddyline.operators import ColumnReader
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing.synthetic import make_filters, to_columns

TEXT_COSTS_US = np.array([0.5, 25.0, 25.0, 200.0, 3_000.0])
COPIES = 10  # of each text: 113,140 rows
ADVANCE_US = 20_000.0  # of both balances; the first profile comes on top
BATCH_ROWS = 10_000


def route(
    answers: np.ndarray,
    costs_us: np.ndarray,
    seed: int,
    policy: str = "auto",
    attributes: Mapping[str, pa.Array] | None = None,
) -> Router:
    """Send all rows through a router as Spark would hand them over."""
    attributes = attributes or {}
    filters, readers = make_filters([0] * answers.shape[1])
    router = Router(
        filters,
        [*readers, *map(ColumnReader, attributes)],
        policy,
        options=RouterOptions(costs_us=tuple(costs_us.tolist()), seed=seed),
        attributes={name: len(filters) + n for n, name in enumerate(attributes)},
    )
    columns = [*to_columns(answers), *attributes.values()]
    for begin in range(0, len(answers), BATCH_ROWS):
        part = [column.slice(begin, BATCH_ROWS) for column in columns]
        router.route(part, len(part[0]))
    return router


def work_us(router: Router, costs_us: np.ndarray) -> float:
    """Return what a row cost, learning included."""
    totals = router.totals
    return float((totals.seen + totals.profiled) @ costs_us) / totals.rows


def time_ordered(order: str) -> np.ndarray:
    stored = np.load(pathlib.Path(__file__).parent / "fixtures" / "newsgroups.npz")
    bits = stored["answers"]
    answers = np.unpackbits(bits[:, None], axis=1, bitorder="little", count=5).astype(bool)
    rows = np.arange(len(answers))
    if order == "by group":
        return answers[np.repeat(rows, COPIES)]
    if order == "by length":
        return answers[np.repeat(stored["by_length"], COPIES)]
    return answers[np.tile(rows, COPIES)]  # through all groups, ten times


@pytest.mark.parametrize("order", ["by group", "by length", "groups in turn"])
@pytest.mark.parametrize("seed", range(3))
class TestTimeOrderedText:
    """Predicates of very different costs, written in any order."""

    @pytest.fixture
    def run(self, order: str, seed: int) -> tuple[Router, np.ndarray, np.ndarray]:
        answers = time_ordered(order)
        written = np.random.default_rng(seed).permutation(len(TEXT_COSTS_US))
        answers, costs_us = answers[:, written], TEXT_COSTS_US[written]
        return route(answers, costs_us, seed), answers, costs_us

    def test_the_work_is_close_to_the_best_static_order(self, run) -> None:
        router, answers, costs_us = run
        best_us = ordering_cost(best_ordering(~answers, costs_us), ~answers, costs_us)
        assert work_us(router, costs_us) <= 1.03 * best_us

    def test_profiling_keeps_to_its_budget_and_alarms_are_rare(self, run) -> None:
        router, _, costs_us = run
        first_profile_us = 32 * costs_us.sum()  # made whatever the budget says
        spent_us = float(router.totals.profiled @ costs_us)
        useful_us = float(router.totals.seen @ costs_us)
        assert spent_us <= 0.01 * useful_us + ADVANCE_US + first_profile_us
        assert len(router.journal.of(DriftDetected)) <= 3

    def test_no_cheap_predicate_that_drops_a_third_comes_after_an_expensive_one(self, run) -> None:
        router, answers, costs_us = run
        drop_rates = (~answers).mean(axis=0)
        orders = [record.event.after for record in router.journal.of(OrderChanged)]
        for names in [*orders, tuple(router.order())]:
            order = [int(name[1:]) for name in names]
            for position, number in enumerate(order):
                if drop_rates[number] >= 1 / 3:
                    before = costs_us[order[:position]]
                    assert not (before >= 100 * costs_us[number]).any()


@pytest.mark.parametrize("cost_us", [1.0, 10.0])
class TestRotatingFilters:
    @pytest.mark.parametrize("period", [2_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000])
    def test_never_above_the_written_order_nor_far_above_source_based_routing(
        self, period: int, cost_us: float
    ) -> None:
        answers = rotating(period, period, 400_000)
        costs_us = np.full(4, cost_us)
        evaluations = work_us(route(answers, costs_us, seed=0), costs_us) / cost_us
        assert evaluations <= ordering_cost(range(4), ~answers, np.ones(4))
        if period >= 20_000:
            rivals = source_based_calls(np.random.default_rng(0), answers)
            assert evaluations <= 1.15 * rivals

    @pytest.mark.parametrize("period", [200, 500, 800, 1_200])
    def test_rows_that_change_faster_than_orders_can_follow_cost_little_more(
        self, period: int, cost_us: float
    ) -> None:
        answers = rotating(period, period, 400_000)
        costs_us = np.full(4, cost_us)
        router = route(answers, costs_us, seed=0)
        evaluations = float(router.totals.seen.sum()) / len(answers)
        assert evaluations <= 1.03 * ordering_cost(range(4), ~answers, np.ones(4))

    def test_an_order_follows_within_a_thousand_rows_once_rows_have_changed(
        self, cost_us: float
    ) -> None:
        router = route(rotating(0, 5_000, 100_000), np.full(4, cost_us), seed=0)
        changes = np.array([record.at_rows for record in router.journal.of(OrderChanged)])
        late = [changes[changes >= begin][0] - begin for begin in range(20_000, 95_000, 5_000)]
        assert np.median(late) <= 1_000


@pytest.mark.parametrize("policy", ["auto", "mesh"])
@pytest.mark.parametrize("period", [2_000, 3_000, 5_000, 10_000])
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_six_fast_filters_follow_beside_columns_of_noise(
    policy: str, period: int, seed: int
) -> None:
    """Orders that change from profile to profile must not keep drift from being noticed."""
    rows, filters = 100_000, 6
    answers = rotating(1_000 * seed + period, period, rows, filters)
    rng = np.random.default_rng(seed)
    noise = {"number": pa.array(rng.random(rows)), "code": pa.array(rng.integers(0, 30, rows))}
    router = route(answers, np.ones(filters), seed, policy, noise)
    evaluations = work_us(router, np.ones(filters))
    assert evaluations <= 0.65 * ordering_cost(range(filters), ~answers, np.ones(filters))
    if period >= 5_000:
        assert evaluations <= 1.1 * source_based_calls(np.random.default_rng(0), answers)


def test_a_million_rows_between_changes() -> None:
    answers = rotating(1, 1_000_000, 2_000_000)
    costs_us = np.ones(4)
    evaluations = work_us(route(answers, costs_us, seed=0), costs_us)
    assert evaluations <= ordering_cost(range(4), ~answers, costs_us)
    assert evaluations <= 1.15 * source_based_calls(np.random.default_rng(0), answers)
