"""The matrix view of A-Greedy: the conditional drop counts that the Greedy Invariant is read from.

``V[i, j]`` is the number of profile tuples that the filter at position j drops among those that
no filter at positions 0..i-1 drops. Correctness rests on one property: after every insert, delete
and correction the matrix equals the matrix computed from all tuples in the window.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 4.2, figures 3-5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray


class MatrixView:
    """An upper triangular matrix of drop counts, in the order of the filters.

    Parameters
    ----------
    order
        The filters, first to be evaluated first.
    prior_drops
        Tuples that every filter is taken to drop, at every position, besides those that were
        counted. With 1, a cheap filter that dropped none of few tuples does not end up behind an
        expensive one. With 0, as in the paper, rates are those of the window.
    prior_tuples
        Tuples that are taken to reach every position besides, on which each filter drops as many
        as of all tuples.

    Examples
    --------
    >>> view = MatrixView([0, 1])
    >>> view.insert(np.array([[True, True], [False, True]]))
    >>> view.matrix.tolist()
    [[1, 2], [0, 1]]
    >>> view.violation(np.ones(2), alpha=1.0)  # filter 1 drops more than filter 0 at position 0
    0

    """

    def __init__(
        self, order: Sequence[int], prior_drops: float = 0.0, prior_tuples: float = 0.0
    ) -> None:
        self.order = list(order)
        self.prior_drops = prior_drops
        self.prior_tuples = prior_tuples
        #: Number of tuples counted.
        self.tuples = 0
        self.matrix: IntArray = np.zeros((len(self.order), len(self.order)), dtype=np.int64)

    def copy(self) -> MatrixView:
        """Return a view of its own with the same order and counts."""
        other = MatrixView(self.order, self.prior_drops, self.prior_tuples)
        other.matrix, other.tuples = self.matrix.copy(), self.tuples
        return other

    def insert(self, tuples: BoolArray) -> None:
        """Count tuples that entered the window (figure 3, for many tuples at once)."""
        self.matrix += self._counts(tuples)
        self.tuples += len(tuples)

    def delete(self, tuples: BoolArray) -> None:
        """Discount tuples that left the window."""
        self.matrix -= self._counts(tuples)
        self.tuples -= len(tuples)

    def violation(self, cost_us: FloatArray, alpha: float) -> int | None:
        """Return the first position where the Greedy Invariant is violated (equation 4)."""
        rates = np.triu(self.matrix + self._prior()) / cost_us[self.order]
        beaten = np.diagonal(rates) < alpha * rates.max(axis=1)
        return int(np.argmax(beaten)) if beaten.any() else None

    def restore(self, tuples: BoolArray, cost_us: FloatArray, alpha: float) -> int:
        """Correct every violation; return the scans of the window that it took.

        One correction leaves the positions behind the last one it moved as they were, and one
        batch of tuples may have caused violations in several parts of the order.
        """
        scans = 0
        while (position := self.violation(cost_us, alpha)) is not None:
            scans += self.correct(position, tuples, cost_us)
        return scans

    def correct(self, position: int, tuples: BoolArray, cost_us: FloatArray) -> int:
        """Reorder so that the invariant holds again (figure 5); return the scans it took.

        Positions before `position` are right already. Each position from there on takes the
        filter that drops most per unit time among the tuples that reach it; the work ends at the
        last position that a filter was moved from, since behind it nothing has changed.
        """
        filters = len(self.order)
        alive = ~tuples[:, self.order[:position]].any(axis=1)
        last_moved = position
        row = position
        while row <= last_moved:
            counts = tuples[alive][:, self.order[row:]].sum(axis=0)
            drops = counts + self._prior()[row:]
            best = row + int(np.argmax(drops / cost_us[self.order[row:]]))
            last_moved = max(last_moved, best)
            self.matrix[row, :] = 0
            self.matrix[row, row:] = counts
            if best != row:
                self.order[row], self.order[best] = self.order[best], self.order[row]
                self.matrix[: row + 1, [row, best]] = self.matrix[: row + 1, [best, row]]
            alive &= ~tuples[:, self.order[row]]
            row += 1
        return min(row, filters) - position

    def expected_cost_us(self, cost_us: FloatArray) -> float:
        """Return what a tuple like those in the window costs in the order."""
        expected_us, reach, left = 0.0, 1.0, float(self.tuples)
        prior = self.prior_tuples
        for position, drops in enumerate(self.matrix.diagonal().tolist()):
            expected_us += reach * float(cost_us[self.order[position]])
            share = self.matrix[0, position] / max(self.tuples, 1)
            reach *= 1.0 - (drops + prior * share) / max(left + prior, 1.0)
            left -= drops
        return expected_us

    def _prior(self) -> FloatArray:
        """Return what each filter is taken to drop at a position besides what was counted there."""
        prior: FloatArray = self.prior_drops + self.prior_tuples * self.matrix[0] / max(
            self.tuples, 1
        )
        return prior

    def _counts(self, tuples: BoolArray) -> IntArray:
        filters = len(self.order)
        if len(tuples) == 0:
            return np.zeros((filters, filters), dtype=np.int64)
        by_position = tuples[:, self.order]
        first_drop = by_position.argmax(axis=1)
        # Tuples first dropped at d count in the rows 0..d: sum them by d, then add up from below.
        is_first = (first_drop[:, None] == np.arange(filters)).astype(np.float32)
        by_first_drop = np.rint(is_first.T @ by_position.astype(np.float32)).astype(np.int64)
        return np.triu(np.cumsum(by_first_drop[::-1], axis=0)[::-1])
