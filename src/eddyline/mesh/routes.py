"""The best single route for a set of rows, found in three ways.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.ordering.static import best_ordering, static_greedy

DYNAMIC_MAX = 10  # operators; beyond that dynamic programming over all sets takes too long

RouteFinder = Callable[[BoolArray, FloatArray], tuple[int, ...]]


def by_rank(drops: BoolArray, cost_us: FloatArray) -> tuple[int, ...]:
    """Order by drops for time, as if the operators were independent.

    Examples
    --------
    >>> drops = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], dtype=bool)
    >>> by_rank(drops, np.array([1.0, 1.0])), by_rank(drops, np.array([9.0, 1.0]))
    ((0, 1), (1, 0))

    """
    if len(drops) == 0:
        return tuple(range(len(cost_us)))
    return tuple(np.argsort(-drops.mean(axis=0) / cost_us, kind="stable").tolist())


def by_dynamic_programming(drops: BoolArray, cost_us: FloatArray) -> tuple[int, ...]:
    """Return the cheapest of all orders."""
    if drops.shape[1] > DYNAMIC_MAX:
        return static_greedy(drops, cost_us)
    return best_ordering(drops, cost_us)


#: Ways to find a route: by operator rank, over all orders, greedily by conditional selectivities.
ROUTE_FINDERS: dict[str, RouteFinder] = {
    "rank": by_rank,
    "dynamic": by_dynamic_programming,
    "greedy": static_greedy,
}
