"""Before and after: a new order against what the old one would have cost on the same rows."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.fabric.trials.trial import AFTER, BEFORE, Trial
from eddyline.journal.events import Names, Verdict

TRIAL_ROWS = 8_192
WORSE_MAX = 1.15

Order = tuple[int, ...]


class BeforeAfterTrial(Trial):
    """Compares a new order with the expectation for the order it replaced.

    The old order is not run any more. Its side is what a row would have needed in it, on the rows
    that the decision was made on.

    Parameters
    ----------
    order
        The order that was replaced, to go back to.
    tried
        The order on trial.
    expected
        Evaluations of each predicate that a row would have needed in the old order.
    before, after
        Both orders in words.

    Examples
    --------
    >>> import numpy as np
    >>> trial = BeforeAfterTrial((0, 1), (1, 0), np.array([1.0, 0.5]), ("a", "b"), ("b", "a"))
    >>> trial.count(10_000, seen=np.array([9_000, 10_000]), passed=np.array([900, 9_000]))
    >>> trial.is_over, trial.verdict(np.ones(2))
    (True, 'reverted')

    """

    subject: ClassVar[Literal["order"]] = "order"
    method: ClassVar[Literal["before_after"]] = "before_after"
    worse_max = WORSE_MAX

    def __init__(
        self, order: Order, tried: Order, expected: FloatArray, before: Names, after: Names
    ) -> None:
        super().__init__(before, after, len(order))
        self.order = order
        self.tried = tried
        self.rows[BEFORE] = 1
        self._seen[BEFORE] = expected
        self._passed: IntArray = np.zeros(len(order), dtype=np.int64)

    def count(self, rows: int, seen: IntArray, passed: IntArray) -> None:
        """Count rows that took the new order, and what each predicate did to them."""
        self.add(AFTER, rows, seen)
        self._passed += passed

    @property
    def is_over(self) -> bool:
        """Whether enough rows have taken the new order."""
        return self.rows[AFTER] >= TRIAL_ROWS

    def verdict(self, cost_us: FloatArray) -> Verdict:
        """Revert if a row costs clearly more, unless the old order would cost these rows more too.

        The rows may have become more expensive in every order since the decision. What the old
        order would cost them is estimated from the rates at which the predicates passed them, as if
        these were independent.
        """
        if super().verdict(cost_us) == "kept":
            return "kept"
        rates = self._passed / np.maximum(self._seen[AFTER], 1)
        reach = np.cumprod([1.0, *rates[list(self.order[:-1])]])
        estimated_us = float(reach @ cost_us[list(self.order)])
        return "kept" if self.row_costs_us(cost_us)[AFTER] <= estimated_us else "reverted"


class OrderCooldown:
    """Keeps orders that were reverted from being tried again soon.

    Each time an order is reverted, it is barred for twice as many rows as the time before, up to
    262,144 rows.

    Examples
    --------
    >>> cooldown = OrderCooldown()
    >>> cooldown.add((1, 0), at_rows=0)
    >>> cooldown.bars((1, 0), at_rows=10_000), cooldown.bars((1, 0), at_rows=1_000_000)
    (True, False)

    """

    _ORDERS_MAX = 64
    _DOUBLINGS_MAX = 4

    def __init__(self) -> None:
        self._barred: dict[Order, tuple[int, int]] = {}  # until how many rows, how many times

    def add(self, order: Order, at_rows: int) -> None:
        """Bar the order for a while."""
        times = self._barred.pop(order, (0, 0))[1] + 1
        self._barred[order] = (
            at_rows + 2 * TRIAL_ROWS * 2 ** min(times, self._DOUBLINGS_MAX),
            times,
        )
        if len(self._barred) > self._ORDERS_MAX:
            self._barred.pop(next(iter(self._barred)))

    def bars(self, order: Order, at_rows: int) -> bool:
        """Whether the order is still barred."""
        return order in self._barred and at_rows < self._barred[order][0]

    def clear(self) -> None:
        """Bar nothing any more, because the rows have changed."""
        self._barred.clear()
