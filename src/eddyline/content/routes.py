"""From expected selectivities to routes: each row visits the operators in the order of their rank.

References
----------
Bizarro et al., Content-Based Routing, VLDB 2005, section 4.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from eddyline.arrays import FloatArray, IntArray


def routes_by_rank(
    selectivity: FloatArray, cost_us: FloatArray, grid: float = 0.0
) -> tuple[IntArray, Sequence[tuple[int, ...]]]:
    """Order the operators for each row by drops per unit time; return route numbers and routes.

    Parameters
    ----------
    selectivity
        Expected, by row and operator.
    cost_us
        Of each operator.
    grid
        Selectivities are rounded to multiples of it, so that rows whose expected selectivities
        differ only by noise share a route.

    Examples
    --------
    >>> numbers, routes = routes_by_rank(np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(2))
    >>> [routes[number] for number in numbers]
    [(1, 0), (0, 1)]

    """
    rounded = np.round(selectivity / grid) * grid if grid else selectivity
    rank = (1.0 - rounded) / cost_us
    orders = np.argsort(-rank, axis=1, kind="stable")
    keys = orders @ _place_values(selectivity.shape[1])
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers, [tuple(orders[row].tolist()) for row in first]


@functools.cache
def _place_values(operators: int) -> IntArray:
    """Return the powers of a number of operators; an order is a number with such digits."""
    powers = operators ** np.arange(operators, dtype=object)
    return powers.astype(np.int64 if operators <= 15 else object)
