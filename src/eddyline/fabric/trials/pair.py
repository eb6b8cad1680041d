"""The benefit check: routing without and with classifier attributes, at the same time.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.1.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from eddyline.arrays import FloatArray, IntArray, Rows
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.trials.trial import AFTER, BEFORE, Trial
from eddyline.journal.events import Names, Verdict

SIDE_ROWS_MIN = 256
SIDE_ROWS = 4_096
SIDE_ROWS_MAX = 16_384  # where the change seems to save something, but not clearly
CLEAR_ERRORS = 4.0  # a difference of so many standard errors ends a trial early
ADOPT_ERRORS = 2.5  # what a pair that is new must save, in standard errors
HOPE_ERRORS = 1.0  # what it must save for its trial to be prolonged
RUSTER_US = 10.0  # what one more ruster of a chunk costs


class PairTrial(Trial):
    """Compares routing without and with pairs of an operator and its classifier attribute.

    The paper measures one after the other. Here the rows of a chunk are dealt to both sides at
    random, so that rows that change with time do not look like a benefit. What it costs to find the
    partition of a row is added to the side that does so.

    Parameters
    ----------
    before, after
        Both in words.
    predicates
        Number of predicates.
    is_new
        Whether the pairs were not in use before: they must save more than chance would show. Pairs
        in use stay if they save anything at all.

    Examples
    --------
    >>> trial = PairTrial(("calm",), ("calm by site",), predicates=2, is_new=False)
    >>> trial.add(BEFORE, 5_000, np.array([5_000, 2_500]))
    >>> trial.add(AFTER, 5_000, np.array([4_000, 2_000]))
    >>> trial.is_over, trial.verdict(np.ones(2))
    (True, 'kept')

    """

    subject: ClassVar[Literal["attribute"]] = "attribute"
    method: ClassVar[Literal["split"]] = "split"
    worse_max = 1.0

    def __init__(self, before: Names, after: Names, predicates: int, is_new: bool) -> None:
        super().__init__(before, after, predicates)
        self.is_new = is_new
        self.rusters = [0, 0]
        # Rows of a side that visited both of two predicates.
        self._visited_both: IntArray = np.zeros((2, predicates, predicates), dtype=np.int64)
        # Rows that are checked again lose what the pair saves, so only some of them are.
        self._share_before = 0.5 if is_new else 0.25

    def deal(self, rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Return the rows of each side."""
        is_before = rng.random(len(rows)) < self._share_before
        return rows[is_before], rows[~is_before]

    def add_trace(self, side: int, trace: RouteTrace) -> None:
        """Count a ruster of one side."""
        self.add(side, trace.entered_count, trace.seen)
        self.rusters[side] += 1
        # A row visited both of two operators if it reached the later one.
        self._visited_both[side] += np.minimum.outer(trace.seen, trace.seen)

    def set_partitioning(self, before_us: float, after_us: float) -> None:
        """Set what it costs to find the partitions of a row, on each side."""
        rows = max(sum(self.rows), 1)
        self.overhead_us = [
            us + RUSTER_US * self.rusters[side] / rows
            for side, us in enumerate((before_us, after_us))
        ]

    def errors(self, cost_us: FloatArray) -> float:
        """Return by how many standard errors a row costs more with the change; negative: less."""
        before_us, after_us = self.row_costs_us(cost_us)
        variance = 0.0
        for side in (BEFORE, AFTER):
            rows = max(self.rows[side], 1)
            mean = float(self._seen[side] @ cost_us) / rows
            squares = float(cost_us @ self._visited_both[side] @ cost_us) / rows
            variance += max(squares - mean**2, 0.0) / rows
        if variance == 0.0:
            return math.copysign(math.inf, after_us - before_us) if after_us != before_us else 0.0
        return (after_us - before_us) / math.sqrt(variance)

    @property
    def is_over(self) -> bool:
        """Whether enough rows were counted for any decision."""
        return min(self.rows) >= (SIDE_ROWS_MAX if self.is_new else SIDE_ROWS // 2)

    def is_decided(self, cost_us: FloatArray) -> bool:
        """Whether the difference is clear, or enough rows were counted."""
        if self.is_over or min(self.rows) < SIDE_ROWS_MIN:
            return self.is_over
        errors = self.errors(cost_us)
        if min(self.rows) >= SIDE_ROWS and errors > -HOPE_ERRORS:
            return True
        return abs(errors) >= CLEAR_ERRORS

    def verdict(self, cost_us: FloatArray) -> Verdict:
        """Keep what saves more than it costs; a new pair must do so beyond chance."""
        before_us, after_us = self.row_costs_us(cost_us)
        if after_us >= before_us or (self.is_new and self.errors(cost_us) > -ADOPT_ERRORS):
            return "reverted"
        return "kept"
