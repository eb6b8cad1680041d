"""What an ordering costs, the greedy ordering, and the true optimum.

All functions take *drops*: a boolean matrix with a row per tuple and a column per filter, True
where that filter drops that tuple. Tuples that no filter drops may be in it or not, as the caller
needs: they add the same to every ordering.

Two functions take *precedence*: for a filter, the filters that must come before it. Probes of a
multiway join need it, since a stream can be probed only after one that it has a join predicate
with. Filters that are not in it are unconstrained.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, sections 3, 4 and, for
precedence constraints, 8.2.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray

#: For a filter, the filters that must come before it.
Precedence = Mapping[int, Collection[int]]


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


def least_cost(drops: BoolArray, cost_us: FloatArray) -> float:
    """Return what a tuple would cost if each took the best order for itself.

    That is the cheapest filter that drops it, or all filters. No routing can cost less.

    Examples
    --------
    >>> drops = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=bool)
    >>> least_cost(drops, np.array([1.0, 3.0]))
    2.25

    """
    if len(drops) == 0:
        return 0.0
    dropping_us = np.where(drops, cost_us, np.inf).min(axis=1)
    return float(np.minimum(dropping_us, cost_us.sum()).mean())


def static_greedy(
    drops: BoolArray, cost_us: FloatArray, precedence: Precedence | None = None
) -> tuple[int, ...]:
    """Return the ordering that takes, at each position, the filter that drops most per unit time.

    Without precedence constraints its cost is at most four times the optimum (theorem 4.1). With
    them, each position takes the best of the filters whose predecessors are all placed, and the
    bound does not hold (section 8.2).

    Examples
    --------
    Three filters, the first two drop the same tuples, so the third comes second:

    >>> drops = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4, dtype=bool)
    >>> static_greedy(drops, np.ones(3))
    (0, 2, 1)

    Filter 0 may not run before filter 2:

    >>> static_greedy(drops, np.ones(3), precedence={0: {2}})
    (1, 2, 0)

    """
    if precedence:
        check_precedence(precedence, drops.shape[1])
    remaining = list(range(drops.shape[1]))
    alive = np.ones(len(drops), dtype=bool)
    order: list[int] = []
    while remaining:
        ready = remaining
        if precedence:
            ready = [f for f in remaining if set(precedence.get(f, ())) <= set(order)]
        rates = drops[alive][:, ready].sum(axis=0) / cost_us[ready]
        best = ready[int(np.argmax(rates))]
        remaining.remove(best)
        order.append(best)
        alive &= ~drops[:, best]
    return tuple(order)


def best_ordering(
    drops: BoolArray, cost_us: FloatArray, precedence: Precedence | None = None
) -> tuple[int, ...]:
    """Return the cheapest ordering: the offline optimum that the paper compares with.

    The cost of what comes next depends on the *set* of filters before it, not on their order, so
    dynamic programming over sets looks at ``n 2**(n-1)`` steps instead of at ``n!`` orderings. With
    precedence constraints (section 8.2) only sets that contain all predecessors of their filters
    are extended.

    Examples
    --------
    >>> drops = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4, dtype=bool)
    >>> best_ordering(drops, np.ones(3))
    (0, 2, 1)
    >>> best_ordering(drops, np.ones(3), precedence={0: {1}, 2: {0}})
    (1, 0, 2)

    """
    filters = drops.shape[1]
    if filters > 16:
        raise ValueError(f"{filters} filters are too many for exhaustive search; at most 16")
    survivors = _survivors_of_each_set(drops)
    cost = np.full(1 << filters, np.inf)
    cost[0] = 0.0
    last = np.zeros(1 << filters, dtype=np.int64)
    for done in _permitted_sets(filters, precedence) if precedence else range(1 << filters):
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


def check_precedence(precedence: Precedence, filters: int) -> None:
    """Refuse constraints that no ordering satisfies, or that name filters that do not exist.

    Examples
    --------
    >>> check_precedence({0: {1}, 1: {0}}, filters=2)
    Traceback (most recent call last):
    ...
    ValueError: no ordering is permitted: filters 0, 1 must each come before another of them

    """
    named = {*precedence, *(before for required in precedence.values() for before in required)}
    if not named <= set(range(filters)):
        raise ValueError(f"precedence names filters {sorted(named)}; there are {filters}")
    try:
        graphlib.TopologicalSorter(precedence).prepare()
    except graphlib.CycleError as error:
        cycle = ", ".join(str(filter_) for filter_ in sorted(set(error.args[1])))
        raise ValueError(
            f"no ordering is permitted: filters {cycle} must each come before another of them"
        ) from None


def _permitted_sets(filters: int, precedence: Precedence) -> list[int]:
    """Return, as ascending bit masks, the sets that contain all predecessors of their filters."""
    check_precedence(precedence, filters)
    sets = np.arange(1 << filters)
    permitted = np.ones(len(sets), dtype=bool)
    for filter_, required in precedence.items():
        mask = sum(1 << before for before in set(required))
        permitted &= (sets >> filter_ & 1 == 0) | (sets & mask == mask)
    return np.flatnonzero(permitted).tolist()


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
