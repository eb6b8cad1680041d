"""The matrix view must equal its recomputation from the window, whatever happens to it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.ordering.matrix_view import MatrixView
from eddyline.ordering.static import ordering_cost, static_greedy
from eddyline.profile import ProfileWindow
from tests.unit.ordering.greedy_invariant import matrix_from_scratch, satisfies_greedy_invariant


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, np.random.Generator, int]:
    filters = draw(st.integers(2, 7))
    return filters, np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 60))


def draw_tuples(rng: np.random.Generator, count: int, filters: int) -> np.ndarray:
    tuples = rng.random((count, filters)) < rng.random(filters)
    tuples[~tuples.any(axis=1), 0] = True  # a profile tuple was dropped by somebody
    return tuples


@given(windows())
def test_equals_recomputation_after_every_insert_and_delete(case) -> None:
    filters, rng, tuples_max = case
    window = ProfileWindow(filters, tuples_max)
    view = MatrixView(rng.permutation(filters).tolist())
    for _ in range(8):
        tuples = draw_tuples(rng, int(rng.integers(0, 30)), filters)
        expired = window.insert(tuples)
        view.insert(tuples)
        view.delete(expired)
        np.testing.assert_array_equal(view.matrix, matrix_from_scratch(view.order, window.tuples()))


@given(windows())
def test_correction_restores_the_greedy_invariant_and_a_true_matrix(case) -> None:
    filters, rng, tuples_max = case
    tuples = draw_tuples(rng, tuples_max + 5, filters)
    cost_us = rng.uniform(0.5, 5.0, filters)
    view = MatrixView(rng.permutation(filters).tolist())
    view.insert(tuples)
    position = view.violation(cost_us, alpha=1.0)
    if position is None:
        assert satisfies_greedy_invariant(view.order, tuples, cost_us)
        return
    untouched = view.order[:position]
    view.restore(tuples, cost_us, alpha=1.0)
    assert sorted(view.order) == list(range(filters))
    assert view.order[:position] == untouched
    assert satisfies_greedy_invariant(view.order, tuples, cost_us)
    assert view.violation(cost_us, alpha=1.0) is None
    np.testing.assert_array_equal(view.matrix, matrix_from_scratch(view.order, tuples))


@given(windows())
def test_restoring_finds_an_order_as_good_as_static_greedy(case) -> None:
    filters, rng, tuples_max = case
    tuples = draw_tuples(rng, tuples_max + 5, filters)
    cost_us = rng.uniform(0.5, 5.0, filters)
    view = MatrixView(range(filters))
    view.insert(tuples)
    view.restore(tuples, cost_us, alpha=1.0)
    greedy = static_greedy(tuples, cost_us)
    # Ties may be broken differently, so compare the drop rates position by position.
    first = tuples[:, view.order[0]].sum() / cost_us[view.order[0]]
    assert np.isclose(first, tuples[:, greedy[0]].sum() / cost_us[greedy[0]])
    assert satisfies_greedy_invariant(view.order, tuples, cost_us)


def test_violation_respects_the_thrashing_avoidance_parameter() -> None:
    view = MatrixView([0, 1])
    view.insert(np.array([[True, False]] * 95 + [[False, True]] * 100))
    assert view.violation(np.ones(2), alpha=1.0) == 0
    assert view.violation(np.ones(2), alpha=0.9) is None


def test_costs_count_in_the_invariant() -> None:
    view = MatrixView([0, 1])
    view.insert(np.array([[True, False]] * 100 + [[False, True]] * 60))
    assert view.violation(np.array([1.0, 1.0]), alpha=1.0) is None
    assert view.violation(np.array([2.0, 1.0]), alpha=1.0) == 0


@given(windows())
def test_the_expected_cost_without_a_prior_is_that_of_the_tuples(case) -> None:
    filters, rng, tuples_max = case
    tuples = draw_tuples(rng, tuples_max, filters)
    cost_us = rng.uniform(0.5, 5.0, filters)
    view = MatrixView(rng.permutation(filters).tolist())
    view.insert(tuples)
    assert np.isclose(view.expected_cost_us(cost_us), ordering_cost(view.order, tuples, cost_us))


class TestPriorTuples:
    """Filters are independent until there are enough tuples to tell otherwise."""

    #: Filter 1 drops more than filter 2 altogether, and less of what filter 0 keeps.
    TUPLES = np.array([[1, 1, 0]] * 6 + [[0, 1, 0]] * 1 + [[0, 0, 1]] * 2, dtype=bool)

    def view(self, prior_tuples: float, times: int) -> MatrixView:
        view = MatrixView([0, 1, 2], prior_tuples=prior_tuples)
        view.insert(np.tile(self.TUPLES, (times, 1)))
        return view

    def test_few_tuples_do_not_show_that_filters_depend_on_each_other(self) -> None:
        for prior_tuples, expected in ((0.0, [1, 2, 0]), (20.0, [1, 0, 2])):
            view = self.view(prior_tuples, 1)
            view.restore(self.TUPLES, np.ones(3), 1.0)
            assert view.order == expected

    def test_many_tuples_do(self) -> None:
        view = self.view(20.0, 50)
        view.restore(np.tile(self.TUPLES, (50, 1)), np.ones(3), 1.0)
        assert view.order == [1, 2, 0]

    def test_the_expected_cost_lies_between_that_of_the_tuples_and_of_independence(self) -> None:
        counted, both, independent = (
            self.view(prior_tuples, 1).expected_cost_us(np.ones(3))
            for prior_tuples in (0.0, 9.0, 1e9)
        )
        assert np.isclose(counted, 1 + 3 / 9 + 2 / 9)
        assert np.isclose(independent, 1 + 3 / 9 + 3 / 9 * 2 / 9)
        assert independent < both < counted

    def test_tuples_that_left_the_window_do_not_count(self) -> None:
        view = self.view(20.0, 3)
        view.delete(np.tile(self.TUPLES, (2, 1)))
        assert view.tuples == 9
        assert view.copy().tuples == 9
        assert np.isclose(
            view.expected_cost_us(np.ones(3)), self.view(20.0, 1).expected_cost_us(np.ones(3))
        )
