"""The ledger of a segment: counts and times of each chunk, booked into totals and budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.fabric.totals import Totals
from eddyline.profile import Budget


@dataclass(frozen=True)
class ChunkOutcome:
    """What became of the rows of a chunk.

    Parameters
    ----------
    traces
        One for each ruster.
    rows
        Rows that entered the segment.
    seen, passed
        Rows that reached each predicate, and rows that it kept.

    """

    traces: Sequence[RouteTrace]
    rows: int
    seen: IntArray
    passed: IntArray


class Ledger:
    """Books what a segment does.

    Parameters
    ----------
    array
        The operators of the segment.
    totals
        The router's sums.
    budget
        Filled by useful work, emptied by profiling.

    """

    def __init__(self, array: OperatorArray, totals: Totals, budget: Budget) -> None:
        self.budget = budget
        #: Rows that have entered the segment so far.
        self.rows = 0
        self._array = array
        self._totals = totals
        self.open_chunk()

    def open_chunk(self) -> None:
        """Start to book a new chunk."""
        #: Time inside predicates, as measured and as booked to the budget.
        self.busy_us = self.booked_us = 0.0
        self._busy_by_operator_us = np.zeros(len(self._array))
        #: Time for evaluations that only serve learning and for class searches.
        self.profiling_us = 0.0
        #: Time for telling the policy, watching for drift and deciding.
        self.deciding_us = 0.0

    @property
    def chunk_us(self) -> float:
        """All time of this chunk that was booked."""
        return self.busy_us + self.profiling_us + self.deciding_us

    def book_traces(self, traces: Sequence[RouteTrace]) -> tuple[int, IntArray, IntArray]:
        """Book what the rusters of a chunk did; return rows entered, rows seen and passed."""
        counts = np.zeros((2, len(self._array)), dtype=np.int64)
        busy_us = np.zeros(len(self._array))
        for trace in traces:
            counts += trace.counts
            busy_us += trace.busy_us
        seen, passed = counts
        totals, places = self._totals, self._array.places
        totals.seen[places] += seen
        totals.passed[places] += passed
        totals.busy_us[places] += busy_us
        entered = sum(trace.entered_count for trace in traces)
        self.rows += entered
        self._busy_by_operator_us = busy_us
        self.busy_us = float(busy_us.sum())
        self.booked_us = self._array.booked_us(self.busy_us, seen)
        self.budget.earn(self.booked_us, float(self._array.cost_us().sum()))
        return entered, seen, passed

    def book_written(self, seen: IntArray) -> None:
        """Book the rows that reached each predicate of a chunk that took the written order."""
        totals, places = self._totals, self._array.places
        totals.written_seen[places] += seen
        totals.in_order_seen[places] += seen
        totals.in_order_us[places] += self._busy_by_operator_us

    def book_estimate(self, rows_reaching: FloatArray) -> None:
        """Book the rows that would have reached each predicate in the written order."""
        self._totals.written_seen[self._array.places] += rows_reaching

    def book_alone(self, rows: int, passed: int, failed: int, spent_us: float) -> None:
        """Book a chunk of a segment that has one predicate and nothing to learn."""
        at = self._array.places.start
        totals = self._totals
        self.busy_us = self.booked_us = spent_us
        totals.busy_us[at] += spent_us
        totals.failed[at] += failed
        totals.seen[at] += rows
        totals.written_seen[at] += rows
        totals.in_order_seen[at] += rows
        totals.in_order_us[at] += spent_us
        totals.passed[at] += passed

    def book_profiling(self, spent_us: float) -> None:
        """Book time for evaluations that only serve learning, or for a class search."""
        self.profiling_us += spent_us
        self._totals.profiling_us += spent_us

    def book_deciding(self, spent_us: float) -> None:
        """Book time for telling the policy, watching for drift and deciding."""
        self.deciding_us = max(0.0, spent_us)
        self._totals.deciding_us += self.deciding_us

    def profiled(self) -> IntArray:
        """Return the evaluations of each predicate, so far, that only served learning."""
        return self._totals.profiled[self._array.places].copy()
