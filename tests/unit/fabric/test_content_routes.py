"""Routes by content: the smallest ruster, and what detours may cost."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.content import ContentLearns
from eddyline.fabric.tactics.content_routes import group_by_route
from tests.unit.fabric.test_classes import make_data, make_router, route_all


class TwoKinds:
    """Rows of partition 0 are dropped by operator 0, those of partition 1 by operator 1."""

    detailed = np.zeros((2, 1, 2))

    def selectivities(self, partitions: np.ndarray, classifier: np.ndarray) -> np.ndarray:
        first = partitions[0] == 0
        return np.stack([np.where(first, 0.1, 0.9), np.where(first, 0.9, 0.1)], axis=0)


def sizes(rare: int, common: int) -> dict[tuple[int, ...], int]:
    partitions = {0: np.array([0] * common + [1] * rare)}
    kinds, classifier, rows = TwoKinds(), np.zeros(2, dtype=np.int64), np.arange(common + rare)
    grouped = group_by_route(kinds, classifier, partitions, rows, np.ones(2), (0, 1))  # type: ignore[arg-type]
    counts: dict[tuple[int, ...], int] = {}
    for route, rows in grouped:
        counts[route] = counts.get(route, 0) + len(rows)
    return counts


def test_a_route_needs_as_many_rows_as_a_ruster() -> None:
    assert sizes(rare=64, common=4_000) == {(0, 1): 4_000, (1, 0): 64}
    assert sizes(rare=63, common=4_000) == {(0, 1): 4_063}


def test_small_batches_have_smaller_rusters() -> None:
    assert sizes(rare=10, common=150) == {(0, 1): 150, (1, 0): 10}
    assert sizes(rare=9, common=151) == {(0, 1): 160}


@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
def test_rows_take_the_route_of_their_partitions_by_all_attributes_in_use(attributes: int) -> None:
    """With two attributes or more, combinations of partitions are too many for a table."""
    rng = np.random.default_rng(attributes)
    content = ContentLearns(operators=4, attributes=attributes)
    content.detailed[:] = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], content.detailed.shape)
    classifier = np.arange(4) % attributes
    partitions = rng.choice([0, 100, 256], (attributes, 20_000))
    partitions = partitions[:, np.argsort(partitions[0], kind="stable")]
    cost_us = np.array([1.0, 1.7, 2.9, 4.3])
    taken: list[tuple[int, ...]] = [()] * 20_000
    by_attribute, every = dict(enumerate(partitions)), np.arange(20_000)
    for route, rows in group_by_route(
        content, classifier, by_attribute, every, cost_us, (3, 2, 1, 0)
    ):
        for row in rows.tolist():
            assert taken[row] == ()
            taken[row] = route
    selectivity = content.selectivities(partitions, classifier)
    best = np.argsort(-(1 - selectivity) / cost_us, axis=1, kind="stable")
    assert taken == [tuple(route) for route in best.tolist()]


def test_detours_are_counted_so_that_their_share_follows_their_cost() -> None:
    router = make_router("content")
    before = list(router.segments[0].tactic._detours.probability)
    route_all(router, make_data(0, 60_000)[0])
    assert router.segments[0].tactic._detours.probability != pytest.approx(before)
