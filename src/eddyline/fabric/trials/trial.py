"""A trial: what was in use and what replaced it, each with the evaluations that its rows took.

Evaluations are counted and priced at the end with the same costs for both sides, so that a better
estimate of what a predicate costs does not look like an effect of the change.
"""

from __future__ import annotations

import abc
from typing import ClassVar, Literal

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.journal.events import Names, TrialEnded, Verdict

BEFORE, AFTER = 0, 1


class Trial(abc.ABC):
    """Base of all trials: a subclass says how rows are compared and when that is over.

    Parameters
    ----------
    before, after
        What is compared, in words, for the event at the end.
    predicates
        Number of predicates.

    """

    subject: ClassVar[Literal["order", "classes", "attribute"]]
    method: ClassVar[Literal["before_after", "split"]]
    #: Factor by which a row may cost more after the change than before.
    worse_max: float

    def __init__(self, before: Names, after: Names, predicates: int) -> None:
        self.names = (before, after)
        #: Rows counted for what was in use before, and for what is on trial.
        self.rows = [0, 0]
        #: Cost of a row beyond the predicates, on each side.
        self.overhead_us = [0.0, 0.0]
        self._seen: FloatArray = np.zeros((2, predicates))

    @property
    @abc.abstractmethod
    def is_over(self) -> bool:
        """Whether enough rows were counted to decide."""

    @property
    def trial_rows(self) -> int:
        """Rows that took part in the trial: those with the change."""
        return self.rows[AFTER]

    def add(self, side: int, rows: int, seen: IntArray) -> None:
        """Count rows of one side, and the evaluations of each predicate that they took."""
        self.rows[side] += rows
        self._seen[side] += seen

    def row_costs_us(self, cost_us: FloatArray) -> tuple[float, float]:
        """Return the cost of a row before and after, at the given costs of the predicates."""
        before_us, after_us = (
            float(self._seen[side] @ cost_us) / max(self.rows[side], 1) + self.overhead_us[side]
            for side in (BEFORE, AFTER)
        )
        return before_us, after_us

    def verdict(self, cost_us: FloatArray) -> Verdict:
        """Return whether the change is to be kept, by what was counted so far."""
        before_us, after_us = self.row_costs_us(cost_us)
        return "kept" if after_us <= self.worse_max * before_us else "reverted"

    def ended(
        self, verdict: Verdict, cost_us: FloatArray, gain_ratio: float | None = None
    ) -> TrialEnded:
        """Return the event of the trial's end."""
        before_us, after_us = self.row_costs_us(cost_us)
        return TrialEnded(
            subject=self.subject,
            method=self.method,
            verdict=verdict,
            before=self.names[BEFORE],
            after=self.names[AFTER],
            rows=self.trial_rows,
            before_us=round(before_us, 4),
            after_us=round(after_us, 4),
            gain_ratio=gain_ratio,
        )
