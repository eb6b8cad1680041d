"""EPrune: leaves out join columns that cannot pay for being indexed."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.index.cost import UnitCosts, Workload


def eprune(
    columns: int,
    bits: int | Sequence[int],
    workload: Workload,
    costs: UnitCosts,
) -> list[int]:
    """Return the columns for which the maximum benefit of an index is not negative.

    ``MB(x) = λ_r Σ_ap λ_d W F_ap (1 - 1/2^bits) C_c - (Σ_ap F_ap λ_r + λ_d) C_h``, with sums over
    the patterns that contain column x. No column of the best configuration is left out.

    The equation as printed adds λ_d once for each pattern; the sentence before it, once. Only the
    sentence is safe: a row is hashed once for each indexed column when it arrives.

    Parameters
    ----------
    columns
        Number of join columns.
    bits
        Most bits that a column can have; or, for each column.
    workload, costs
        As for `paper_cost`.

    Examples
    --------
    >>> workload = Workload({(0,): 0.99, (1,): 0.01}, requests=10, arrivals=100, window=1)
    >>> eprune(3, 4, workload, UnitCosts(hash_ns=1, compare_ns=1))
    [0]

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 6.1, equation 2.

    """
    most_bits = [bits] * columns if isinstance(bits, int) else bits
    kept = []
    for column in range(columns):
        share = sum(f for pattern, f in workload.frequencies.items() if column in pattern)
        searches = workload.requests * share
        saved = searches * workload.rows * (1 - 0.5 ** most_bits[column]) * costs.compare_ns
        if saved >= (searches + workload.arrivals) * costs.hash_ns:
            kept.append(column)
    return kept
