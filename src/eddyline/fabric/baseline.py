"""What the written order would have cost: the baseline that savings are reported against."""

from __future__ import annotations

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray


class BaselineEstimate:
    """Estimates how many rows would have reached each predicate in the written order.

    Parameters
    ----------
    predicates
        Number of predicates.

    Examples
    --------
    >>> baseline = BaselineEstimate(2)
    >>> baseline.learn(np.array([[True, False], [False, True]]))
    >>> seen, passed = np.array([50, 100]), np.array([20, 50])
    >>> baseline.rows_reaching(100, 20, (1, 0), seen, passed)  # 20 kept, half of the others
    array([100.,  60.])

    """

    _MEMORY_TUPLES = 400

    def __init__(self, predicates: int) -> None:
        self._written = tuple(range(predicates))
        self._reach: FloatArray | None = None

    def learn(self, drops: BoolArray) -> None:
        """Add dropped rows for which the answer of every predicate is known."""
        if len(drops) == 0:
            return
        reach = np.ones(len(self._written))
        reach[1:] = (~np.logical_or.accumulate(drops, axis=1))[:, :-1].mean(axis=0)
        if self._reach is None:
            self._reach = reach
        else:
            weight = len(drops) / (len(drops) + self._MEMORY_TUPLES)
            self._reach = (1 - weight) * self._reach + weight * reach

    def forget(self) -> None:
        """Discard what was learnt, because the rows have changed."""
        self._reach = None

    def is_written(self, order: tuple[int, ...]) -> bool:
        """Whether rows that took an order took the written one; it is empty for several."""
        return order == self._written

    def rows_reaching(
        self, entered: int, kept: int, order: tuple[int, ...], seen: IntArray, passed: IntArray
    ) -> FloatArray:
        """Return the estimate for some rows.

        Parameters
        ----------
        entered, kept
            Number of rows, and of those that every predicate kept.
        order
            The order they took; empty if they took several.
        seen, passed
            Rows that reached each predicate, and rows that it kept.

        """
        if self.is_written(order):
            return seen.astype(float)
        if self._reach is not None:
            return kept + (entered - kept) * self._reach
        # Without a profile: as if the predicates were independent.
        rates = np.where(seen > 0, passed / np.maximum(seen, 1), 1.0)
        return entered * np.concatenate([[1.0], np.cumprod(rates)[:-1]])
