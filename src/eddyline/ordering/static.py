"""What an ordering costs, the greedy ordering, its invariant, and the true optimum.

All functions take *drops*: a boolean matrix with a row per tuple and a column per filter, True
where that filter drops that tuple. Tuples that no filter drops may be in it or not, as the caller
needs: they add the same to every ordering.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray


def reach_counts(order: Sequence[int], drops: BoolArray) -> IntArray:
    """Return how many tuples reach each position of the order.

    Examples
    --------
    >>> drops = np.array([[1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    >>> reach_counts([1, 0], drops).tolist()
    [4, 2]

    """
    alive = np.ones(len(drops), dtype=bool)
    counts = np.empty(len(order), dtype=np.int64)
    for position, filter_ in enumerate(order):
        counts[position] = np.count_nonzero(alive)
        alive &= ~drops[:, filter_]
    return counts


def ordering_cost(order: Sequence[int], drops: BoolArray, cost_us: FloatArray) -> float:
    """Return the expected time for one tuple along the order (equation 1).

    Examples
    --------
    >>> drops = np.array([[1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    >>> ordering_cost([1, 0], drops, np.array([1.0, 1.0]))
    1.5

    """
    if len(drops) == 0:
        return float(cost_us[list(order)].sum())
    return float(reach_counts(order, drops) @ cost_us[list(order)]) / len(drops)


def static_greedy(drops: BoolArray, cost_us: FloatArray) -> tuple[int, ...]:
    """Return the ordering that takes, at each position, the filter that drops most per unit time.

    Examples
    --------
    Three filters, the first two drop the same tuples, so the third comes second:

    >>> drops = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4, dtype=bool)
    >>> static_greedy(drops, np.ones(3))
    (0, 2, 1)

    """
    remaining = list(range(drops.shape[1]))
    alive = np.ones(len(drops), dtype=bool)
    order: list[int] = []
    while remaining:
        rates = drops[alive][:, remaining].sum(axis=0) / cost_us[remaining]
        best = remaining.pop(int(np.argmax(rates)))
        order.append(best)
        alive &= ~drops[:, best]
    return tuple(order)


def satisfies_greedy_invariant(
    order: Sequence[int], drops: BoolArray, cost_us: FloatArray, alpha: float = 1.0
) -> bool:
    """Say whether no later filter beats the one at an earlier position (definition 4.1).

    With `alpha` below 1, only a filter that beats it by more than that factor counts, as in
    equation 4.

    Examples
    --------
    >>> drops = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4, dtype=bool)
    >>> satisfies_greedy_invariant((0, 2, 1), drops, np.ones(3))
    True
    >>> satisfies_greedy_invariant((0, 1, 2), drops, np.ones(3))
    False

    """
    alive = np.ones(len(drops), dtype=bool)
    for position, filter_ in enumerate(order):
        rest = list(order[position:])
        rates = drops[alive][:, rest].sum(axis=0) / cost_us[rest]
        if rates[0] < alpha * rates.max() * (1 - 1e-12):
            return False
        alive &= ~drops[:, filter_]
    return True


def best_ordering(drops: BoolArray, cost_us: FloatArray) -> tuple[int, ...]:
    """Return the cheapest of all orderings: the offline optimum that the paper compares with.

    The cost of what comes next depends on the *set* of filters before it, not on their order, so
    dynamic programming over sets looks at ``n 2**(n-1)`` steps instead of at ``n!`` orderings.

    Examples
    --------
    >>> drops = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4, dtype=bool)
    >>> best_ordering(drops, np.ones(3))
    (0, 2, 1)

    """
    filters = drops.shape[1]
    if filters > 16:
        raise ValueError(f"{filters} filters are too many for exhaustive search; at most 16")
    survivors = _survivors_of_each_set(drops)
    cost = np.full(1 << filters, np.inf)
    cost[0] = 0.0
    last = np.zeros(1 << filters, dtype=np.int64)
    for done in range(1 << filters):
        for filter_ in range(filters):
            bit = 1 << filter_
            if done & bit:
                continue
            candidate = cost[done] + survivors[done] * cost_us[filter_]
            if candidate < cost[done | bit] - 1e-12:
                cost[done | bit] = candidate
                last[done | bit] = filter_
    order: list[int] = []
    done = (1 << filters) - 1
    while done:
        order.append(int(last[done]))
        done ^= 1 << order[-1]
    return tuple(reversed(order))


def _survivors_of_each_set(drops: BoolArray) -> IntArray:
    """Count, for each set of filters as a bit mask, the tuples that none of them drops."""
    filters = drops.shape[1]
    masks = drops.astype(np.int64) @ (1 << np.arange(filters, dtype=np.int64))
    # survivors[S] = tuples whose mask is a subset of the complement of S: a subset-sum transform.
    within = np.bincount(masks, minlength=1 << filters)
    for filter_ in range(filters):
        grid = within.reshape(-1, 2, 1 << filter_)
        grid[:, 1, :] += grid[:, 0, :]
    return within[::-1].copy()
