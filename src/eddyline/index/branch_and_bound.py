"""Branch and bound over index configurations: the best one without looking at all of them.

A prefix fixes the bits of the first columns. Its lower bound prices bits: with a price u_p for
every bit that pattern p gets from the other columns, each pattern minimises its own cost, and the
price of the bits that are left is paid back. Prefixes whose bound is not below the best
configuration found so far are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.index.cost import CostTerms

#: Prefixes extended at a time, times patterns: enough for NumPy, few enough to go deep early.
_CHUNK = 20_000
#: Factors of the price of a bit; a prefix is dropped if one of them shows that it may be.
_PRICE_FACTORS = (1.0, 0.5, 2.0)
_PRICE_STEPS = 60
_LN_2 = float(np.log(2))
_TINY = 1e-300
#: Costs that differ by less, relatively, are equal.
_ROUNDING = 1e-12


@dataclass
class _Prefixes:
    """Prefixes of the same length, a line for each; the matrices have a column for each pattern.

    Parameters
    ----------
    bits
        Bits of the columns that are fixed, 0 for the others.
    given
        Bits that a search by each pattern knows.
    unknown
        Bits that it does not know.
    wild
        Unknown bits above the lowest known bit, as in `Configuration.wild`.
    bound
        Lower bound of the cost.

    """

    bits: IntArray
    given: FloatArray
    unknown: FloatArray
    wild: FloatArray
    bound: FloatArray

    def take(self, lines: IntArray | BoolArray) -> _Prefixes:
        """Return some of the prefixes."""
        return _Prefixes(*(getattr(self, field.name)[lines] for field in fields(self)))


def branch_and_bound(
    terms: CostTerms,
    bits: int,
    limits: IntArray,
    order: Sequence[int],
    effort_max: float = float("inf"),
) -> IntArray:
    """Return the bits of each column in a configuration of least cost.

    Parameters
    ----------
    terms
        The cost to minimise.
    bits
        Most bits in all.
    limits
        For each column, the most bits it may have.
    order
        Columns from the high bits of a bucket id to the low ones.
    effort_max
        Prefixes to look at, times patterns, after which the best configuration found so far is
        returned. At least that which no small change makes cheaper.

    Examples
    --------
    >>> from eddyline.index.cost import UnitCosts, Workload, paper_cost
    >>> workload = Workload({(0,): 0.5, (1,): 0.4, (2,): 0.1}, 100, 100, 10)
    >>> terms = paper_cost.terms(3, workload, UnitCosts(hash_ns=1, compare_ns=1))
    >>> branch_and_bound(terms, 8, np.array([8, 8, 8]), [0, 1, 2]).tolist()
    [4, 3, 1]

    """
    return _Search(terms, bits, limits, order).run(effort_max)


class _Search:
    def __init__(self, terms: CostTerms, bits: int, limits: IntArray, order: Sequence[int]) -> None:
        self._terms = terms
        self._bits = bits
        self._limits = np.minimum(limits, bits)
        self._order = order
        #: The columns that may have bits, from the high ones.
        self._columns = [column for column in order if self._limits[column] > 0]
        relaxed, self._prices = _relax(terms, bits, self._limits)
        start = np.floor(relaxed).astype(np.int64)
        self._best, self._best_ns = improve(terms, start, bits, self._limits, order)

    def root(self) -> _Prefixes:
        """Return the prefix that fixes no column."""
        no_bits = np.zeros((1, len(self._terms.has_column)))
        nothing = np.zeros((1, len(self._limits)), dtype=np.int64)
        return _Prefixes(nothing, no_bits, no_bits, no_bits, np.full(1, -np.inf))

    def run(self, effort_max: float) -> IntArray:
        """Return the best configuration."""
        patterns = len(self._terms.has_column)
        # The last entry is extended first: depth first, and the lowest bounds before others.
        stack = [(0, self.root())] if self._columns else []
        chunk = max(_CHUNK // max(patterns, 1), 1)
        effort = 0
        while stack and effort < effort_max:
            fixed, prefixes = stack.pop()
            prefixes = prefixes.take(prefixes.bound < self._target_ns)
            if not len(prefixes.bits):
                continue
            prefixes = self._extend(prefixes, self._columns[fixed])
            effort += len(prefixes.bits) * patterns
            fixed += 1
            if fixed == len(self._columns):
                self._compare_with_best(prefixes.bits)
                continue
            prefixes = self._bounded(prefixes, self._columns[fixed:])
            prefixes = prefixes.take(np.argsort(-prefixes.bound))
            for first in range(0, len(prefixes.bits), chunk):
                lines = np.arange(first, min(first + chunk, len(prefixes.bits)))
                stack.append((fixed, prefixes.take(lines)))
        return self._best

    @property
    def _target_ns(self) -> float:
        return self._best_ns * (1 - _ROUNDING)

    def _compare_with_best(self, bits: IntArray) -> None:
        cost_ns = self._terms.of(bits, self._order)
        least = int(cost_ns.argmin())
        if cost_ns[least] < self._target_ns:
            self._best, self._best_ns = bits[least], float(cost_ns[least])

    def _extend(self, prefixes: _Prefixes, column: int) -> _Prefixes:
        """Give a column every number of bits that is left for it."""
        left = self._bits - prefixes.bits.sum(axis=1)
        choices = np.minimum(self._limits[column], left) + 1
        longer = prefixes.take(np.repeat(np.arange(len(choices)), choices))
        added = np.arange(len(longer.bits)) - np.repeat(np.cumsum(choices) - choices, choices)
        longer.bits[:, column] = added
        has_column = self._terms.has_column[:, column]
        np.copyto(longer.wild, longer.unknown, where=has_column & (added[:, None] > 0))
        longer.given += np.where(has_column, added[:, None], 0)
        longer.unknown += np.where(has_column, 0, added[:, None])
        return longer

    def _bounded(self, prefixes: _Prefixes, free: Sequence[int]) -> _Prefixes:
        """Return the prefixes whose lower bound is below the best cost, with their bounds."""
        terms, columns = self._terms, list(free)
        has_free = terms.has_column[:, columns]
        free_limits = self._limits[columns]
        free_prices = self._prices @ has_free
        for factor in _PRICE_FACTORS:
            left = self._bits - prefixes.bits.sum(axis=1)
            most = np.minimum(left[:, None], has_free @ free_limits).astype(np.float64)
            compare = np.exp2(-prefixes.given) * terms.compare_ns
            # A pattern gets nothing from the free columns, or between 1 and `most` bits. Then
            # its lowest known bit is below all the bits fixed so far.
            nothing = compare + self._visits(prefixes.wild)
            price = self._prices * factor
            cheapest = np.log2(np.maximum(compare * _LN_2, _TINY) / np.maximum(price, _TINY))
            some = np.clip(cheapest, np.minimum(most, 1), most)
            something = compare * np.exp2(-some) + price * some + self._visits(prefixes.unknown)
            searches = np.where(most > 0, np.minimum(nothing, something), nothing).sum(axis=1)
            # Indexing a column costs at least its share for each bit of the most it can have.
            most_bits = np.minimum(free_limits, np.maximum(left, 1)[:, None])
            worth = free_prices * factor - terms.column_ns[columns] / most_bits
            paid_back = left * np.maximum(worth.max(axis=1), 0)
            hashes = (prefixes.bits > 0) @ terms.column_ns
            bound = hashes + searches - paid_back + terms.fixed_ns
            prefixes.bound = np.maximum(prefixes.bound, bound)
            prefixes = prefixes.take(prefixes.bound < self._target_ns)
        return prefixes

    def _visits(self, bits: FloatArray) -> FloatArray | float:
        if not self._terms.visit_ns.any():
            return 0.0
        return np.minimum(np.exp2(bits), self._terms.ranges_max) * self._terms.visit_ns


def _relax(terms: CostTerms, bits: int, limits: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return nearly the best fractions of bits for comparisons alone, and prices of a bit.

    At the optimum, a bit more saves the same in every column that has bits. Each step moves bits
    towards columns where it saves more than on average.
    """
    has_column = terms.has_column.astype(np.float64)
    total = min(bits, int(limits.sum()))
    fractions = np.minimum(limits, total / max(int(np.count_nonzero(limits)), 1))
    savings = terms.compare_ns
    for _ in range(_PRICE_STEPS):
        savings = terms.compare_ns * np.exp2(-(has_column @ fractions)) * _LN_2
        by_column = savings @ has_column
        fractions = fractions * np.sqrt(np.maximum(by_column, _TINY))
        scale = total / max(fractions.sum(), _TINY)
        fractions = np.minimum(fractions * scale, limits)
    return fractions, savings


def improve(
    terms: CostTerms, start: IntArray, bits: int, limits: IntArray, order: Sequence[int]
) -> tuple[IntArray, float]:
    """Return a configuration that no small change makes cheaper, and its cost.

    Small changes add a bit, remove one, move one, or move all bits of a column to another.
    """
    one_bit = np.eye(len(start), dtype=np.int64)
    moved = (one_bit[:, None] - one_bit[None, :]).reshape(-1, len(start))
    changes = np.concatenate([one_bit, -one_bit, moved])
    best, best_ns = start, float(terms.of(start[None], order)[0])
    while True:
        emptied = (one_bit[:, None] - one_bit[None, :]) * best[None, :, None]
        candidates = best + np.concatenate([changes, emptied.reshape(-1, len(start))])
        is_allowed = (candidates >= 0).all(axis=1) & (candidates <= limits).all(axis=1)
        candidates = candidates[is_allowed & (candidates.sum(axis=1) <= bits)]
        cost_ns = terms.of(candidates, order)
        least = int(cost_ns.argmin())
        if cost_ns[least] >= best_ns * (1 - _ROUNDING):
            return best, best_ns
        best, best_ns = candidates[least], float(cost_ns[least])
