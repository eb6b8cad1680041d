"""The operator array: the operators of a segment, and how rows travel among them.

There is no central router: a ruster carries its own route as a stack of operators, the array sends
it from one to the next, and what each drops is gone for the rest of the way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.totals import Totals
from eddyline.operators import Batch, Operator
from eddyline.operators.operator import BoolArray, Rows
from eddyline.ordering.policy import FloatArray, IntArray
from eddyline.profile import CostModel


@dataclass(slots=True)
class Trail:
    """Where a ruster went, and what became of its rows.

    Parameters
    ----------
    entered
        The rows at the start; None for all rows of the batch.
    entered_count
        How many these are.
    order
        The operators visited, in the order of the visits.
    seen, passed
        Rows that reached each operator, and that it let through.
    asked
        The rows that each visited operator was asked about.
    answers
        What it said about them: True keeps the row.
    alive
        The rows that are left in the end.
    """

    entered: Rows | None
    entered_count: int
    seen: IntArray
    passed: IntArray
    order: list[int] = field(default_factory=list)
    asked: list[Rows | None] = field(default_factory=list)
    answers: list[BoolArray] = field(default_factory=list)
    alive: Rows | None = None
    busy_us: float = 0.0

    def positions_of_drop(self, rows: Rows) -> IntArray:
        """Return at which visit each row was dropped; the number of visits if at none."""
        dropped_at = np.full(len(rows), len(self.order), dtype=np.int64)
        survivors = [*self.asked[1:], self.alive]
        for position in range(len(survivors) - 1, -1, -1):
            left = survivors[position]
            if left is None:  # nothing dropped up to here
                break
            where = np.searchsorted(left, rows)
            inside = where < len(left)
            inside[inside] = left[where[inside]] == rows[inside]
            dropped_at[~inside] = position
        return dropped_at


class OperatorArray:
    """Operators by number, what they cost, and the way through them.

    Parameters
    ----------
    operators
        In written order.
    indices
        Their positions among all operators of the router, for its totals.
    costs_us
        What the operators cost, if that is not to be measured.

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        indices: Sequence[int],
        costs_us: Sequence[float] | None = None,
    ) -> None:
        self.operators = list(operators)
        self.indices = np.array(indices)
        self.costs = [CostModel() for _ in self.operators]
        self._given_costs_us = None if costs_us is None else np.array(costs_us, dtype=float)

    def __len__(self) -> int:
        return len(self.operators)

    def names(self, order: Iterable[int]) -> list[str]:
        """Return an order as the names of its operators."""
        return [self.operators[number].name for number in order]

    def cost_us(self) -> FloatArray:
        """Return what each operator costs for one more row; a guess where nothing was seen."""
        if self._given_costs_us is not None:
            return self._given_costs_us
        known = [cost.per_row_us for cost in self.costs if cost.known]
        guess = sum(known) / len(known) if known else 1.0
        return np.array(
            [max(cost.per_row_us if cost.known else guess, 1e-4) for cost in self.costs]
        )

    def booked_us(self, measured_us: float, evaluations: IntArray) -> float:
        """Return the time for the budget: as measured, or by the given costs if there are any."""
        given = self._given_costs_us
        return measured_us if given is None else float(evaluations @ given)

    def follow(
        self,
        token: RToken,
        batch: Batch,
        rows: Rows | None,
        errors: HeldErrors,
        totals: Totals,
    ) -> Trail:
        """Send rows along the token's route until nothing is left of one or the other."""
        operators = len(self.operators)
        count = batch.rows if rows is None else len(rows)
        trail = Trail(
            rows, count, np.zeros(operators, dtype=np.int64), np.zeros(operators, dtype=np.int64)
        )
        seen, passed, indices, clock = trail.seen, trail.passed, self.indices, time.perf_counter
        busy_us = [0.0] * operators
        alive = rows
        while count and token:
            number = token.pop()
            converting_us = batch.converting_us
            began = clock()
            outcome, failed = errors.ask(self.operators[number], batch, alive)
            elapsed_us = (clock() - began) * 1e6
            own_us = elapsed_us - (batch.converting_us - converting_us)
            self.costs[number].add(count, own_us)
            answers = outcome.passed
            kept = answers.nonzero()[0]
            left = len(kept)
            token.feed_back(number, count, count - left, own_us / count)
            trail.order.append(number)
            trail.asked.append(alive)
            trail.answers.append(answers)
            seen[number], passed[number] = count, left
            busy_us[number] = elapsed_us
            if failed:
                totals.failed[indices[number]] += failed
            if left < count:
                alive = kept if alive is None else alive[kept]
            count = left
        trail.alive = alive
        trail.busy_us = sum(busy_us)
        totals.busy_us[indices] += busy_us
        totals.seen[indices] += seen
        totals.passed[indices] += passed
        return trail

    def drops(self, number: int, batch: Batch, rows: Rows, totals: Totals) -> BoolArray:
        """Ask an operator about rows only to learn; an error of theirs is no error."""
        converting_us = batch.converting_us
        began = time.perf_counter()
        try:
            dropped = ~self.operators[number].evaluate(batch, rows).passed
        except Exception:
            return np.zeros(len(rows), dtype=bool)
        elapsed_us = (time.perf_counter() - began) * 1e6
        self.costs[number].add(len(rows), elapsed_us - (batch.converting_us - converting_us))
        totals.profiled[self.indices[number]] += len(rows)
        return dropped
