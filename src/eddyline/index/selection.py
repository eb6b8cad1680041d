"""Index selection: how many bits of a bucket id each join column should have."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from eddyline.arrays import IntArray
from eddyline.index.branch_and_bound import branch_and_bound
from eddyline.index.configuration import Configuration
from eddyline.index.cost import Cost, CostTerms, UnitCosts, Workload, dependent_cost
from eddyline.index.eprune import eprune

#: Most configurations that are all evaluated.
EXHAUSTIVE_MAX = 10_000
#: Prefixes times patterns that branch and bound looks at. Enough for an exact result
#: with 8 columns and the 20 or so patterns that a compact assessment reports. With all 255 patterns
#: of 8 columns, the search may end before.
EFFORT_MAX = 1_000_000


def select(
    columns: int,
    bits: int,
    workload: Workload,
    costs: UnitCosts,
    limits: Sequence[int] | None = None,
    cost: Cost = dependent_cost,
) -> Configuration:
    """Return the configuration of least cost.

    All configurations of the columns that EPrune keeps are evaluated, or, if there are many,
    searched by branch and bound with a limit on its effort (`EFFORT_MAX`). Columns searched most
    come first in the bucket id; neighbours in this order are then exchanged while that costs
    less. Bits that save nothing are not given. Without patterns the bits are spread evenly.

    Parameters
    ----------
    columns
        Number of join columns.
    bits
        Most bits of a bucket id.
    workload, costs
        What the index is used for, and what that costs.
    limits
        For each column, the most bits that its distinct values fill. Default: `bits`.
    cost
        The cost to minimise. With `paper_cost` the columns stay in their order.

    Examples
    --------
    >>> workload = Workload({(0,): 0.2, (0, 1): 0.3, (2,): 0.5}, 100, 100, 100)
    >>> select(3, 10, workload, UnitCosts(hash_ns=20, compare_ns=5, visit_ns=50))
    Configuration(bits=(4, 0, 6), order=(0, 2, 1))
    >>> select(3, 10, workload, UnitCosts(20, 5, visit_ns=50), limits=[1, 10, 10])
    Configuration(bits=(1, 4, 5), order=(0, 2, 1))

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 6.

    """
    most = _limits(columns, bits, limits)
    if not any(share > 0 for share in workload.frequencies.values()):
        return Configuration(_even(bits, most))
    kept = eprune(columns, most.tolist(), workload, costs)
    most[[column for column in range(columns) if column not in kept]] = 0
    terms = cost.terms(columns, workload, costs)
    order = _order(terms) if cost.depends_on_order else list(range(columns))
    if _count(bits, most) <= EXHAUSTIVE_MAX:
        chosen = exhaustive(terms, bits, most, order)
    else:
        chosen = branch_and_bound(terms, bits, most, order, EFFORT_MAX)
    if cost.depends_on_order:
        order = _exchange(terms, chosen, order)
    return Configuration(tuple(chosen.tolist()), tuple(order))


def configurations(columns: int, bits: int) -> int:
    """Return the number of configurations with exactly so many bits.

    ``Σ_k C(columns, k) C(bits - 1, k - 1)`` over the number k of indexed columns. By lemma 1, this
    is the number of cost calculations that one access pattern less saves.

    Examples
    --------
    >>> configurations(3, 4)
    15

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 6.1.

    """
    most = min(columns, bits)
    return sum(comb(columns, k) * comb(bits - 1, k - 1) for k in range(1, most + 1))


def exhaustive(terms: CostTerms, bits: int, limits: IntArray, order: Sequence[int]) -> IntArray:
    """Return the bits of each column in the configuration of least cost, of all there are.

    Among equal costs, the one with fewest bits.

    Parameters
    ----------
    terms, bits, limits, order
        As for `branch_and_bound`.

    """
    every = np.zeros((1, len(limits)), dtype=np.int64)
    for column in np.flatnonzero(limits):
        choices = np.minimum(limits[column], bits - every.sum(axis=1)) + 1
        every = np.repeat(every, choices, axis=0)
        every[:, column] = np.arange(len(every)) - np.repeat(np.cumsum(choices) - choices, choices)
    every = every[np.argsort(every.sum(axis=1), kind="stable")]
    cost_ns = terms.of(every, order)
    # The first that is the least but for rounding.
    chosen: IntArray = every[np.argmax(cost_ns <= cost_ns.min() * (1 + 1e-12))]
    return chosen


def _limits(columns: int, bits: int, limits: Sequence[int] | None) -> IntArray:
    if bits < 0:
        raise ValueError(f"bits must be 0 or more; got {bits}")
    if limits is None:
        return np.full(columns, bits, dtype=np.int64)
    if len(limits) != columns or min(limits) < 0:
        raise ValueError(
            f"limits must be numbers from 0, one for each of {columns} columns; got {limits}"
        )
    return np.minimum(np.array(limits, dtype=np.int64), bits)


def _count(bits: int, limits: IntArray) -> int:
    """Return the number of configurations within limits, with so many bits or fewer."""
    ways = np.zeros(bits + 1)
    ways[0] = 1
    for limit in limits:
        ways = np.convolve(ways, np.ones(limit + 1))[: bits + 1]
    return int(ways.sum())


def _even(bits: int, limits: IntArray) -> tuple[int, ...]:
    spread = [0] * len(limits)
    for _ in range(min(bits, int(limits.sum()))):
        open_columns = [column for column, limit in enumerate(limits) if spread[column] < limit]
        spread[min(open_columns, key=lambda column: spread[column])] += 1
    return tuple(spread)


def _order(terms: CostTerms) -> list[int]:
    """Return the columns by how often they are searched, most often first."""
    # Rounded, so that sums of the same frequencies in another order are equal.
    searches = terms.compare_ns @ terms.has_column
    ranks = np.round(searches / max(searches.max(), 1e-300), 12)
    order: list[int] = np.argsort(-ranks, kind="stable").tolist()
    return order


def _exchange(terms: CostTerms, bits: IntArray, order: Sequence[int]) -> list[int]:
    """Exchange neighbours in the order while that costs less.

    For searches by one column each, a column x belongs before y if F_x / 2^bits_x is the larger:
    fewer bits in front leave fewer ranges to searches by the columns behind them.
    """
    best = list(order)
    best_ns = float(terms.of(bits[None], best)[0])
    place = 0
    while place < len(best) - 1:
        changed = best.copy()
        changed[place], changed[place + 1] = changed[place + 1], changed[place]
        cost_ns = float(terms.of(bits[None], changed)[0])
        if cost_ns < best_ns * (1 - 1e-12):
            best, best_ns = changed, cost_ns
            place = max(place - 1, 0)
        else:
            place += 1
    return best
