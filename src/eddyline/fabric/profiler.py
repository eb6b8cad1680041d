"""The profiler of a segment: evaluates some rows by all predicates, within the budget.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 4.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, IntArray, Rows
from eddyline.fabric.ledger import ChunkOutcome, Ledger
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.journal import Event
from eddyline.journal.events import BudgetExhausted
from eddyline.operators import Batch

BURST_TUPLES = 128
BURST_TUPLES_MIN = 24
LENT_ROWS = 192  # profiled before they are earned, for a search for classes
LENT_US = 30_000.0


@dataclass(frozen=True)
class ProfileDemand:
    """What a tactic wants to know about the rows of a chunk.

    Parameters
    ----------
    probability
        Share of the rows to profile.
    order
        Default order: operators that a ruster did not visit follow in this order.
    wanted
        Returns the later positions to evaluate on a row that was dropped at a position.
    spare_rows
        Rows to profile where the probability asks for none, for class searches.

    """

    probability: float
    order: tuple[int, ...]
    wanted: Callable[[int], Sequence[int]]
    spare_rows: int = 0

    def asked_positions(self) -> BoolArray:
        """Return the positions to evaluate: a line for each that may have dropped the row."""
        asked = np.zeros((len(self.order), len(self.order)), dtype=bool)
        for position in range(len(self.order)):
            asked[position, list(self.wanted(position))] = True
        return asked

    @property
    def is_complete(self) -> bool:
        """Whether every predicate is evaluated on a profiled row."""
        return _asks_all(self.asked_positions())


@dataclass(frozen=True)
class Profile:
    """Rows that were profiled.

    Parameters
    ----------
    tuples
        Which predicates drop each profiled row that was dropped at all.
    rows, drops
        Positions in the batch of all profiled rows, kept ones included, and the same for them.
        Empty where the demand was not complete.

    """

    tuples: BoolArray
    rows: Rows
    drops: BoolArray

    @classmethod
    def empty(cls, predicates: int) -> Profile:
        """Return a profile of no rows."""
        nothing = np.zeros((0, predicates), dtype=bool)
        return cls(nothing, np.zeros(0, dtype=np.int64), nothing)


class Profiler:
    """Decides how many rows of a chunk to profile, and profiles them.

    Parameters
    ----------
    array
        The operators of the segment.
    ledger
        Books the time; has the budget.
    rng
        Picks rows.
    write
        Called with each event.

    """

    def __init__(
        self,
        array: OperatorArray,
        ledger: Ledger,
        rng: np.random.Generator,
        write: Callable[[Event], None],
    ) -> None:
        self._array = array
        self._ledger = ledger
        self._rng = rng
        self._write = write
        self._is_burst_due = False
        self._is_cold = True
        self._was_exhausted = False

    def request_burst(self) -> None:
        """Profile many rows at once as soon as possible, because nothing valid is known."""
        self._is_burst_due = True

    def start_warm(self) -> None:
        """Start without a burst and without an advance: another router's profile is known."""
        self._is_burst_due = self._is_cold = False
        self._ledger.budget.forgo_advance()

    def collect(self, batch: Batch, outcome: ChunkOutcome, demand: ProfileDemand) -> Profile:
        """Profile rows of a chunk, picked at random from every ruster in proportion."""
        wanted_count = self._rows_wanted(outcome.rows, demand)
        if wanted_count == 0:
            return Profile.empty(len(self._array))
        began = time.perf_counter()
        evaluated_before = self._ledger.profiled()
        asked = demand.asked_positions()
        parts = [Profile.empty(len(self._array))]
        for trace in outcome.traces:
            count = wanted_count
            if len(outcome.traces) > 1:
                share = wanted_count * trace.entered_count / outcome.rows
                count = min(trace.entered_count, int(share + self._rng.random()))
            # A burst follows a change of the rows, and the last ones are the newest.
            pool = trace.entered_count
            if self._is_burst_due:
                pool = min(pool, max(2 * count, pool // 4))
            if count:
                sampled = trace.sample(count, trace.entered_count - pool, self._rng)
                parts.append(self._profile_ruster(batch, trace, *sampled, demand.order, asked))
        profile = Profile(
            np.concatenate([part.tuples for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.drops for part in parts]),
        )
        if len(profile.tuples) >= BURST_TUPLES_MIN:
            self._is_burst_due = self._is_cold = False
        spent_us = (time.perf_counter() - began) * 1e6
        self._ledger.book_profiling(spent_us)
        evaluations = self._ledger.profiled() - evaluated_before
        self._ledger.budget.pay(self._array.booked_us(spent_us, evaluations))
        return profile

    def _rows_wanted(self, entered_count: int, demand: ProfileDemand) -> int:
        wanted = self._rows_wanted_regularly(entered_count, demand.probability)
        if wanted or not demand.spare_rows:
            return wanted
        spare = min(demand.spare_rows, entered_count // 8)
        each_us = float(self._array.cost_us().sum())
        debt_max_us = min(LENT_ROWS * each_us, LENT_US)
        return self._ledger.budget.affordable_on_loan(each_us, spare, debt_max_us)

    def _rows_wanted_regularly(self, entered_count: int, probability: float) -> int:
        if probability <= 0 or entered_count == 0:
            return 0
        budget = self._ledger.budget
        # While no order is known yet, half of the first few rows are worth profiling.
        divisor = 2 if self._is_cold else 8
        burst = min(BURST_TUPLES, entered_count // divisor) if self._is_burst_due else 0
        if burst:
            affordable = budget.affordable_urgent(float(self._array.cost_us().sum()), burst)
            if self._is_cold:  # the first profile is made whatever the budget says
                return burst
            if affordable >= min(BURST_TUPLES_MIN, burst):
                return affordable
        if budget.allows():
            return int(self._rng.binomial(entered_count, probability))
        if not self._was_exhausted:
            self._write(BudgetExhausted(share=budget.share))
        self._was_exhausted = True
        return 0

    def _profile_ruster(
        self,
        batch: Batch,
        trace: RouteTrace,
        rows: Rows,
        dropped_at: IntArray,
        default: tuple[int, ...],
        asked_positions: BoolArray,
    ) -> Profile:
        """Return which predicates drop the given rows of a ruster."""
        predicates = len(self._array)
        is_dropped = dropped_at < len(trace.visits)
        kept_rows = rows[~is_dropped]
        rows, dropped_at = rows[is_dropped], dropped_at[is_dropped]
        tuples = np.zeros((len(rows), predicates), dtype=bool)
        if len(rows):
            visited = trace.order
            not_reached = [number for number in default if number not in visited]
            order = np.array([*visited, *not_reached])
            tuples[np.arange(len(rows)), order[dropped_at]] = True
            for position in range(1, predicates):
                asked = asked_positions[dropped_at, position]
                if asked.any():
                    number = int(order[position])
                    tuples[asked, number] = self._array.drops(number, batch, rows[asked])
        if not _asks_all(asked_positions):
            return Profile(tuples, kept_rows[:0], tuples[:0])
        kept = np.zeros((len(kept_rows), predicates), dtype=bool)
        return Profile(tuples, np.concatenate([kept_rows, rows]), np.concatenate([kept, tuples]))


def _asks_all(asked_positions: BoolArray) -> bool:
    return bool(asked_positions[np.triu_indices(len(asked_positions), 1)].all())
