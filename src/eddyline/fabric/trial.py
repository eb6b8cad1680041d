"""A new order is on trial until it has shown that it is no worse than the one it replaced."""

from __future__ import annotations

from dataclasses import dataclass

TRIAL_ROWS = 8_192
WORSE_MIN = 1.15


@dataclass(slots=True)
class Trial:
    """Compares what the new order costs with what the old one would have cost.

    Parameters
    ----------
    before, after
        The order that was replaced, and the order on trial.
    expected_us
        What a row would have cost in the old order, on the rows the decision was made on.

    Examples
    --------
    >>> trial = Trial((0, 1), (1, 0), expected_us=2.0)
    >>> trial.add(rows=10_000, spent_us=30_000.0)
    >>> trial.is_over, trial.is_worse
    (True, True)

    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    expected_us: float
    rows: int = 0
    spent_us: float = 0.0

    def add(self, rows: int, spent_us: float) -> None:
        """Count rows that took the new order."""
        self.rows += rows
        self.spent_us += spent_us

    @property
    def measured_us(self) -> float:
        """What a row has cost in the new order."""
        return self.spent_us / max(self.rows, 1)

    @property
    def is_over(self) -> bool:
        """Whether enough rows were seen to decide."""
        return self.rows >= TRIAL_ROWS

    @property
    def is_worse(self) -> bool:
        """Whether the new order costs clearly more than the old one would have."""
        return self.measured_us > WORSE_MIN * self.expected_us
