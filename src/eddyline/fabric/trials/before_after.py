"""A new order is on trial until it has shown that it is no worse than the one it replaced."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import FloatArray, IntArray

TRIAL_ROWS = 8_192
WORSE_MIN = 1.15

Order = tuple[int, ...]


@dataclass(slots=True)
class Trial:
    """Compares what the new order costs with what the old one would have cost.

    Both are kept as evaluations and priced in the end with the same costs, so that a better
    estimate of what a predicate costs does not look like a change of the order's worth.

    Parameters
    ----------
    before, after
        The order that was replaced, and the order on trial.
    expected
        Evaluations of each filter that a row would have needed in the old order, on the rows
        that the decision was made on.

    Examples
    --------
    >>> trial = Trial((0, 1), (1, 0), expected=np.array([1.0, 0.5]))
    >>> trial.add(rows=10_000, seen=np.array([9_000, 10_000]))
    >>> trial.is_over, trial.is_worse(np.ones(2))
    (True, True)

    """

    before: Order
    after: Order
    expected: FloatArray
    rows: int = 0
    seen: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.before))

    def add(self, rows: int, seen: IntArray) -> None:
        """Count rows that took the new order, and the evaluations they needed."""
        self.rows += rows
        self.seen += seen

    @property
    def is_over(self) -> bool:
        """Whether enough rows were seen to decide."""
        return self.rows >= TRIAL_ROWS

    def expected_us(self, cost_us: FloatArray) -> float:
        """Return what a row would have cost in the old order."""
        return float(self.expected @ cost_us)

    def measured_us(self, cost_us: FloatArray) -> float:
        """Return what a row has cost in the new order."""
        return float(self.seen @ cost_us) / max(self.rows, 1)

    def is_worse(self, cost_us: FloatArray) -> bool:
        """Say whether the new order costs clearly more than the old one would have."""
        return self.measured_us(cost_us) > WORSE_MIN * self.expected_us(cost_us)


class Refused:
    """Remembers orders that were undone, so that they are not tried again and again.

    Each time an order is undone, it is barred for twice as many rows as the time before.

    Examples
    --------
    >>> refused = Refused()
    >>> refused.add((1, 0), at_rows=0)
    >>> refused.bars((1, 0), at_rows=10_000), refused.bars((1, 0), at_rows=1_000_000)
    (True, False)

    """

    _ORDERS_MAX = 64

    def __init__(self) -> None:
        self._until: dict[Order, tuple[int, int]] = {}

    def add(self, order: Order, at_rows: int) -> None:
        """Bar the order for a while."""
        times = self._until.pop(order, (0, 0))[1] + 1
        self._until[order] = (at_rows + 2 * TRIAL_ROWS * 2 ** min(times, 20), times)
        if len(self._until) > self._ORDERS_MAX:
            self._until.pop(next(iter(self._until)))

    def bars(self, order: Order, at_rows: int) -> bool:
        """Say whether the order is still barred."""
        return order in self._until and at_rows < self._until[order][0]

    def clear(self) -> None:
        """Forget everything, because the rows are no longer what they were."""
        self._until.clear()
