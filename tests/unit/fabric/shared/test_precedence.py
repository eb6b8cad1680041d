"""Dear predicates come after the comparisons of their own queries, and only after those."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from eddyline.fabric.shared.precedence import DEAR_US, Precedence


def operator(queries: int, is_predicate: bool = False) -> SimpleNamespace:
    """Return an operator of the queries whose bits are set."""
    users = np.array([queries], dtype=np.uint64)
    return SimpleNamespace(users=users, is_predicate=is_predicate)


PREDICATE, OWN, OTHER = range(3)
OPERATORS = [operator(0b01, is_predicate=True), operator(0b11), operator(0b10)]


@pytest.mark.parametrize(
    ("cost_us", "order", "expected"),
    [
        (DEAR_US, (PREDICATE, OWN, OTHER), (OWN, PREDICATE, OTHER)),
        (DEAR_US, (PREDICATE, OTHER, OWN), (OTHER, OWN, PREDICATE)),
        (DEAR_US, (OWN, PREDICATE, OTHER), (OWN, PREDICATE, OTHER)),
        (0.99 * DEAR_US, (PREDICATE, OWN, OTHER), (PREDICATE, OWN, OTHER)),
    ],
)
def test_a_dear_predicate_comes_after_comparisons_that_share_a_query_with_it(
    cost_us: float, order: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    precedence = Precedence(OPERATORS)  # type: ignore[arg-type]
    assert precedence.apply(order, lambda number: cost_us) == expected


def test_several_dear_predicates_keep_their_order() -> None:
    operators = [operator(1, is_predicate=True), operator(1, is_predicate=True), operator(1)]
    precedence = Precedence(operators)  # type: ignore[arg-type]
    assert precedence.apply((1, 0, 2), lambda number: DEAR_US) == (2, 1, 0)


def test_without_comparisons_the_order_stays() -> None:
    precedence = Precedence([operator(1, is_predicate=True)] * 2)  # type: ignore[arg-type]
    assert precedence.apply((1, 0), lambda number: DEAR_US) == (1, 0)
