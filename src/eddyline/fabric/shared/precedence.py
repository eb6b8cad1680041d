"""Comparisons come before dear predicates of the same queries, whatever a policy says.

A policy sees what each operator does by itself. Two comparisons of which one must hold, or a
drawn order, would otherwise let a Python function see rows that comparisons reject for every query
that calls it (`docs/decisions/0039`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eddyline.fabric.shared.operators import SharedOperator

#: Cost of a visit, as policies are told, from which a predicate counts as dear.
DEAR_US = 0.4


class Precedence:
    """Moves dear predicates behind the comparisons of their queries.

    Costs of comparisons do not matter: on a busy machine, single measurements are far too high.

    Parameters
    ----------
    operators
        The operators of an eddy, by number.

    """

    def __init__(self, operators: Sequence[SharedOperator]) -> None:
        comparisons = [n for n, operator in enumerate(operators) if not operator.is_predicate]
        users = np.array([operators[n].users for n in comparisons])
        #: For each predicate, the comparisons that one of its queries needs too.
        self._comparisons: dict[int, list[int]] = {}
        for number, operator in enumerate(operators):
            if operator.is_predicate and comparisons:
                shares = (users & operator.users).any(axis=1)
                self._comparisons[number] = [
                    comparisons[n] for n in np.flatnonzero(shares).tolist()
                ]

    def apply(self, order: tuple[int, ...], cost_us: Callable[[int], float]) -> tuple[int, ...]:
        """Return an order in which no dear predicate stands before a comparison of its queries.

        Parameters
        ----------
        order
            The order of a policy.
        cost_us
            Returns what a visit of an operator costs.

        """
        place = {number: n for n, number in enumerate(order)}
        moved: dict[int, int] = {}
        for number, comparisons in self._comparisons.items():
            last = max((place[n] for n in comparisons), default=-1)
            if last > place[number] and cost_us(number) >= DEAR_US:
                moved[number] = last
        if not moved:
            return order
        return tuple(sorted(order, key=lambda n: (moved.get(n, place[n]), n in moved, place[n])))
