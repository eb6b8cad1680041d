"""The lattice of search benefits (definition 4)."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given

from eddyline.index.assessment import DIA, SRIA, benefits, children, parents
from eddyline.index.index import Pattern
from tests.unit.index.streams import Batch, feed, patterns, streams


@given(patterns(), patterns())
def test_edges_are_search_benefits_across_one_level(one: Pattern, other: Pattern) -> None:
    is_edge = benefits(one, other) and len(other) == len(one) + 1
    assert (one in parents(other)) == is_edge
    assert (other in children(one, columns=4)) == is_edge


@given(patterns(), patterns(), patterns())
def test_search_benefit_is_a_partial_order(a: Pattern, b: Pattern, c: Pattern) -> None:
    assert benefits(a, a)
    assert a == b or not (benefits(a, b) and benefits(b, a))
    assert benefits(a, c) or not (benefits(a, b) and benefits(b, c))


def test_lattice_of_four_columns_has_the_levels_of_figure_6() -> None:
    level: set[Pattern] = {()}
    for size in range(1, 5):
        level = {child for node in level for child in children(node, columns=4)}
        assert level == set(combinations(range(4), size))


@given(streams())
def test_counts_as_sria_does(stream: list[Batch]) -> None:
    dia, sria = DIA(), SRIA()
    truth = feed(dia, stream)
    feed(sria, stream)
    assert dia.frequencies() == sria.frequencies() == truth


@given(streams(), patterns())
def test_an_index_serves_the_searches_it_provides_a_benefit_to(
    stream: list[Batch], index: Pattern
) -> None:
    dia = DIA()
    assert dia.served(index) == 0
    truth = feed(dia, stream)
    served = sum(share for pattern, share in truth.items() if benefits(index, pattern))
    assert abs(dia.served(index) - served) < 1e-9


def test_leaves_serve_no_other_pattern_even_two_levels_down() -> None:
    dia = DIA()
    for pattern in [(), (0,), (0, 1, 2), (3,)]:
        dia.add(pattern)
    assert dia.leaves() == [(0, 1, 2), (3,)]
