"""Routes by content: the smallest ruster, and what detours may cost."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_detours_are_counted_so_that_their_share_follows_their_cost() -> None:
    router = make_router("content")
    before = list(router.segments[0].tactic._detours.probability)
    route_all(router, make_data(0, 60_000)[0])
    assert router.segments[0].tactic._detours.probability != pytest.approx(before)
