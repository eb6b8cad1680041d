"""A segment: predicates that may be reordered among themselves, and how rows go through them.

The property correctness rests on: whatever the order, a row leaves the segment exactly if no
predicate of the segment drops it. Everything else is about doing that with less work.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.operator_array import OperatorArray, Trail
from eddyline.fabric.totals import Totals
from eddyline.journal import Event
from eddyline.mesh import Progress
from eddyline.operators import Batch, Operator
from eddyline.profile import Budget

RESUMED_ROWS = 4_096  # what a cost handed on counts for beside those measured

Write = Callable[[Event], None]


class Segment(abc.ABC):
    """Runs batches through its predicates; how rows are told apart is for subclasses to say.

    Parameters
    ----------
    operators
        The predicates, in written order.
    first
        The position of the first of them among all predicates of the router.
    budget
        Limits the time spent on profiling.
    write
        Called with each decision.
    seed
        For everything random.
    costs_us
        What the predicates cost, if that is not to be measured.

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        first: int,
        budget: Budget,
        write: Write,
        seed: int,
        costs_us: Sequence[float] | None = None,
    ) -> None:
        self.array = OperatorArray(operators, first, costs_us)
        self.budget = budget
        # Of the last batch: time inside predicates, the same as booked, for profiling, deciding.
        self.busy_us = self.booked_us = self.profiling_us = self.deciding_us = 0.0
        self._write = write
        self._rng = np.random.default_rng(seed)
        self._rows = 0

    @property
    @abc.abstractmethod
    def order(self) -> tuple[int, ...]:
        """The order of most rows."""

    @abc.abstractmethod
    def run(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> Rows | None:
        """Return the rows, of those given, that no predicate of the segment drops."""

    @abc.abstractmethod
    def knowledge(self) -> dict[str, Any]:
        """Return what was learnt, as plain values."""

    @abc.abstractmethod
    def resume(self, known: dict[str, Any]) -> None:
        """Start from what another segment of the same predicates has learnt."""

    @abc.abstractmethod
    def train(self, batch: Batch, totals: Totals, progress: Progress | None = None) -> None:
        """Learn from rows that are not to be judged: every predicate may be evaluated on all."""

    def judge_alone(self, batch: Batch, errors: HeldErrors, totals: Totals) -> BoolArray:
        """Return the verdict of the only predicate there is: nothing to order, nothing to learn."""
        began = time.perf_counter()
        outcome, failed = errors.ask(self.array.operators[0], batch, None)
        self.busy_us = self.booked_us = (time.perf_counter() - began) * 1e6
        totals.busy_us[0] += self.busy_us
        totals.failed[0] += failed
        totals.seen[0] += batch.rows
        totals.written_seen[0] += batch.rows
        totals.passed[0] += int(np.count_nonzero(outcome.passed))
        return outcome.passed

    def _book_deciding(self, spent_us: float, totals: Totals) -> None:
        self.deciding_us = max(0.0, spent_us)
        totals.deciding_us += self.deciding_us

    def _book(self, trails: Sequence[Trail], totals: Totals) -> tuple[IntArray, IntArray]:
        """Add up what the rusters of a batch did; fill the budget; return rows seen and passed."""
        counts = np.zeros((2, len(self.array)), dtype=np.int64)
        busy_us = np.zeros(len(self.array))
        for trail in trails:
            counts += trail.counts
            busy_us += trail.busy_us
        seen, passed = counts
        places = self.array.places
        totals.seen[places] += seen
        totals.passed[places] += passed
        totals.busy_us[places] += busy_us
        self._rows += sum(trail.entered_count for trail in trails)
        self.busy_us = float(busy_us.sum())
        self.booked_us = self.array.booked_us(self.busy_us, seen)
        self.budget.earn(self.booked_us)
        self.profiling_us = 0.0
        return seen, passed

    def _drops_of_all(self, batch: Batch, rows: Rows, totals: Totals) -> BoolArray:
        """Evaluate every predicate on all the given rows."""
        return np.stack(
            [self.array.drops(number, batch, rows, totals) for number in range(len(self.array))],
            axis=1,
        )

    def _known_costs(self) -> list[float | None]:
        return [None if us is None else round(us, 4) for us in self.array.costs.per_row_us()]

    def _resume_costs(self, cost_us: Sequence[float | None]) -> None:
        for number, us in enumerate(cost_us):
            if us is not None:
                self.array.costs.add(number, RESUMED_ROWS, us * RESUMED_ROWS)


class WrittenOrderEstimate:
    """Estimates how many rows would have reached each predicate in the written order.

    Parameters
    ----------
    predicates
        How many there are.

    """

    _MEMORY_TUPLES = 400

    def __init__(self, predicates: int) -> None:
        self._written = tuple(range(predicates))
        self._reach: FloatArray | None = None

    def learn(self, drops: BoolArray) -> None:
        """Take dropped rows into account of which every predicate's verdict is known."""
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
        """Begin anew, because the rows are no longer what they were."""
        self._reach = None

    def seen(
        self, entered: int, left: int, order: tuple[int, ...], seen: IntArray, passed: IntArray
    ) -> FloatArray:
        """Return the estimate for a batch that was run in some order, or in several (empty)."""
        if order == self._written:
            return seen.astype(float)
        if self._reach is not None:
            return left + (entered - left) * self._reach
        # No profile that tells: as if the predicates were independent.
        rates = np.where(seen > 0, passed / np.maximum(seen, 1), 1.0)
        return entered * np.concatenate([[1.0], np.cumprod(rates)[:-1]])


def merge(trails: Sequence[Trail]) -> Rows | None:
    """Return the rows that are left of several rusters, ascending."""
    if len(trails) == 1:
        return trails[0].alive
    parts = [trail.alive for trail in trails if trail.alive is not None]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
