"""What an index configuration costs: equation 1 of the AMRI paper, and what it leaves out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.index.configuration import Configuration
from eddyline.index.index import Pattern


@dataclass(frozen=True)
class UnitCosts:
    """Times of the single steps of an index, in nanoseconds.

    Parameters
    ----------
    hash_ns
        Computing the bits of one column of one row or probe (C_h).
    compare_ns
        Comparing one candidate with its probe (C_c).
    insert_ns
        Storing one row (C_insert); the same for every configuration.
    visit_ns
        Looking up one range of buckets.
    call_ns
        Fixed part of one probe batch.
    search_ns
        One search of one bucket that holds one row, in all.
    sort_ns, exact_ns
        Adding one row to a sorted hash over one column, and one search of it.
    scan_ns
        Reading one row in a join of a probe batch with all rows.

    """

    hash_ns: float
    compare_ns: float
    insert_ns: float = 0.0
    visit_ns: float = 0.0
    call_ns: float = 0.0
    search_ns: float = 0.0
    sort_ns: float = 0.0
    exact_ns: float = 0.0
    scan_ns: float = 0.0


#: Measured by `calibrate` where this was written.
DEFAULT_COSTS = UnitCosts(
    hash_ns=3.5,
    compare_ns=15.0,
    insert_ns=4.9,
    visit_ns=26.0,
    call_ns=13_000.0,
    search_ns=22.0,
    sort_ns=5.0,
    exact_ns=18.0,
    scan_ns=1.5,
)


@dataclass(frozen=True)
class Workload:
    """Searches and arrivals of a state, in any one unit of time.

    Parameters
    ----------
    frequencies
        Share of each access pattern in the searches (F_ap).
    requests
        Searches in a time unit (λ_r).
    arrivals
        Rows that arrive in a time unit (λ_d).
    window
        Time units for which a row is stored (W).
    batch
        Searches that arrive together, in one probe batch.

    Examples
    --------
    >>> Workload({(0,): 1.0}, requests=10, arrivals=100, window=5).rows
    500

    """

    frequencies: Mapping[Pattern, float]
    requests: float
    arrivals: float
    window: float
    batch: int = 1

    @property
    def rows(self) -> float:
        """Number of rows stored."""
        return self.arrivals * self.window


@dataclass(frozen=True)
class CostTerms:
    """The cost of a configuration as a sum over columns and over patterns.

    ``fixed + Σ_{x indexed} column_ns[x] + Σ_p (compare_ns[p] / 2^given(p) + visit_ns[p] *
    min(ranges(p), rows))``, with `given` and `ranges` as in `Configuration`.

    Parameters
    ----------
    has_column
        A line for each pattern and a column for each join column: whether the pattern contains it.
    column_ns
        For each join column, the cost of indexing it.
    compare_ns
        For each pattern, the cost of comparing all stored rows.
    visit_ns
        For each pattern, the cost of one range.
    ranges_max
        Most ranges that a search walks: the number of stored rows.
    fixed_ns
        Cost that every configuration has.

    """

    has_column: BoolArray
    column_ns: FloatArray
    compare_ns: FloatArray
    visit_ns: FloatArray
    ranges_max: float
    fixed_ns: float

    def of(self, bits: IntArray, order: Sequence[int]) -> FloatArray:
        """Return the cost of many configurations.

        Parameters
        ----------
        bits
            A line for each configuration and a column for each join column.
        order
            Join columns from the high bits of a bucket id to the low ones.

        """
        total = (bits > 0) @ self.column_ns + self.fixed_ns
        total += np.exp2(-(bits @ self.has_column.T)) @ self.compare_ns
        if self.visit_ns.any():
            ranges = np.exp2(self.wild(bits, order))
            total += np.minimum(ranges, self.ranges_max) @ self.visit_ns
        return total

    def wild(self, bits: IntArray, order: Sequence[int]) -> FloatArray:
        """Return `Configuration.wild` for each configuration and each pattern."""
        unknown = np.zeros((len(bits), len(self.has_column)))
        above = np.zeros_like(unknown)
        for column in order:
            given = bits[:, column, None]
            is_known = self.has_column[:, column]
            np.copyto(above, unknown, where=is_known & (given > 0))
            unknown += np.where(is_known, 0, given)
        return above


class Cost(ABC):
    """A function ``(configuration, workload, costs)`` that returns nanoseconds in a time unit."""

    #: Whether the order of columns in the bucket id matters.
    depends_on_order: bool

    @abstractmethod
    def terms(self, columns: int, workload: Workload, costs: UnitCosts) -> CostTerms:
        """Return the cost of any configuration of so many columns."""

    def __call__(self, configuration: Configuration, workload: Workload, costs: UnitCosts) -> float:
        """Return the cost of one configuration."""
        terms = self.terms(len(configuration.bits), workload, costs)
        return float(terms.of(np.array([configuration.bits]), configuration.order)[0])


class PaperCost(Cost):
    """Configuration-dependent cost C_D, equation 1.

    ``C_D = λ_d N_A C_h + λ_r Σ_ap N_ap C_h + λ_r Σ_ap λ_d W F_ap / 2^B_ap C_c``, where N_A is the
    number of indexed columns, and N_ap that of indexed columns in the pattern. The sums are over
    the patterns that occur. As printed, the hash cost of searches is not weighted by F_ap.

    Examples
    --------
    >>> workload = Workload({(0,): 0.5, (0, 1): 0.5}, requests=10, arrivals=4, window=8)
    >>> paper_cost(Configuration((2, 1)), workload, UnitCosts(hash_ns=1, compare_ns=1))
    98.0

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.1.

    """

    depends_on_order = False

    def terms(self, columns: int, workload: Workload, costs: UnitCosts) -> CostTerms:
        """Return the terms of equation 1."""
        has_column, shares = _patterns(columns, workload)
        searches = workload.requests * np.count_nonzero(has_column, axis=0)
        return CostTerms(
            has_column=has_column,
            column_ns=(workload.arrivals + searches) * costs.hash_ns,
            compare_ns=workload.requests * workload.rows * shares * costs.compare_ns,
            visit_ns=np.zeros(len(shares)),
            ranges_max=workload.rows,
            fixed_ns=0.0,
        )


class DependentCost(Cost):
    """Equation 1 with the ranges that a search walks, and with the cost of a probe batch.

    ``λ_d N_A C_h + λ_r Σ_ap F_ap (N_ap C_h + λ_d W / 2^B_ap C_c + min(ranges_ap, λ_d W) visit) +
    λ_r / batch · call``. Unlike in equation 1, a search hashes the columns of its own pattern
    only, so the hash cost is weighted by F_ap, as it is in equation 2.

    Examples
    --------
    >>> workload = Workload({(0,): 0.5, (1,): 0.5}, requests=10, arrivals=4, window=8, batch=5)
    >>> costs = UnitCosts(hash_ns=0, compare_ns=0, visit_ns=1, call_ns=100)
    >>> dependent_cost(Configuration((2, 3)), workload, costs)  # 1 range or 4, and 2 batches
    225.0
    >>> dependent_cost(Configuration((2, 3), order=(1, 0)), workload, costs)  # 8 ranges or 1
    245.0

    """

    depends_on_order = True

    def terms(self, columns: int, workload: Workload, costs: UnitCosts) -> CostTerms:
        """Return the terms of equation 1, and the others."""
        has_column, shares = _patterns(columns, workload)
        searches = workload.requests * shares
        return CostTerms(
            has_column=has_column,
            column_ns=(workload.arrivals + searches @ has_column) * costs.hash_ns,
            compare_ns=searches * workload.rows * costs.compare_ns,
            visit_ns=searches * costs.visit_ns,
            ranges_max=max(workload.rows, 1.0),
            fixed_ns=workload.requests / workload.batch * costs.call_ns,
        )


def _patterns(columns: int, workload: Workload) -> tuple[BoolArray, FloatArray]:
    """Return which columns the patterns that occur have, and their frequencies."""
    occurring = {p: share for p, share in workload.frequencies.items() if share > 0}
    has_column = np.zeros((len(occurring), columns), dtype=bool)
    for line, pattern in enumerate(occurring):
        has_column[line, list(pattern)] = True
    return has_column, np.array(list(occurring.values()), dtype=np.float64)


paper_cost = PaperCost()
dependent_cost = DependentCost()
