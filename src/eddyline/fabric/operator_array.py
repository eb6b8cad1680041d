"""The operator array: the operators of a segment, and how rows travel among them.

There is no central router. A ruster carries its route as a stack of operators, the array sends it
from one to the next, and the rows that one of them drops do not reach the rest.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 5.1 and 5.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.totals import Totals
from eddyline.operators import Batch, Operator
from eddyline.profile import Costs


class Visit(NamedTuple):
    """What an operator did to a ruster.

    Parameters
    ----------
    operator
        Its number.
    asked
        The rows it was asked about; None for all rows of the batch.
    answers
        Its answer for each of them: True keeps the row.
    seen, passed
        Number of rows asked about, and of rows kept.
    busy_us
        Time inside the operator.
    own_us
        The same without the conversion to Python objects, which later operators reuse.

    """

    operator: int
    asked: Rows | None
    answers: BoolArray
    seen: int
    passed: int
    busy_us: float
    own_us: float


@dataclass(slots=True)
class RouteTrace:
    """Where a ruster went, and what became of its rows.

    Parameters
    ----------
    entered
        The rows at the start; None for all rows of the batch.
    entered_count
        Number of rows at the start.
    visits
        The operators visited, one after the other.
    alive
        The rows left at the end; None for all rows of the batch.
    counts
        Rows that reached each operator (first line) and rows that it kept (second line).
    busy_us
        Time inside each operator.

    """

    entered: Rows | None
    entered_count: int
    visits: list[Visit]
    alive: Rows | None
    counts: IntArray
    busy_us: FloatArray

    @property
    def order(self) -> list[int]:
        """The operators visited, in the order of the visits."""
        return [visit.operator for visit in self.visits]

    @property
    def seen(self) -> IntArray:
        """Rows that reached each operator."""
        seen: IntArray = self.counts[0]
        return seen

    @property
    def passed(self) -> IntArray:
        """Rows that each operator kept."""
        passed: IntArray = self.counts[1]
        return passed

    def sample(self, count: int, since: int, rng: np.random.Generator) -> tuple[Rows, IntArray]:
        """Pick rows at random, in proportion to the rows dropped at each visit.

        Which share of the rows each visit dropped is known from the counts, so a sample need not be
        off in that by chance. An order learnt from it is as good as from twice as many rows picked
        without regard to what became of them (docs/decisions/0040).

        Parameters
        ----------
        count
            Number of rows to pick.
        since
            Position among the rows at the start before which none is picked.
        rng
            Picks the rows.

        Returns
        -------
        rows
            In ascending order.
        dropped_at
            For each the number of the visit that dropped it; the number of visits if none did.

        """
        first = since if self.entered is None else int(self.entered[since])
        strata = [self._dropped_since(visit, first) for visit in self.visits]
        alive = np.arange(self.entered_count) if self.alive is None else self.alive
        strata.append(alive[np.searchsorted(alive, first) :])
        ends = np.cumsum([len(rows) for rows in strata])
        points = (rng.random() + np.arange(count)) * (ends[-1] / count)
        shares = np.diff(np.searchsorted(points, ends), prepend=0)
        rows = np.concatenate(
            [
                rng.choice(stratum, share, replace=False)
                for stratum, share in zip(strata, shares.tolist(), strict=True)
                if share
            ]
        )
        arrival = np.argsort(rows)
        return rows[arrival], np.repeat(np.arange(len(strata)), shares)[arrival]

    @staticmethod
    def _dropped_since(visit: Visit, first: int) -> Rows:
        """Return the rows dropped at a visit, from a row on."""
        if visit.asked is None:
            return (~visit.answers[first:]).nonzero()[0] + first
        start = int(np.searchsorted(visit.asked, first))
        return visit.asked[start:][~visit.answers[start:]]


def surviving_rows(traces: Sequence[RouteTrace]) -> Rows | None:
    """Return the rows that are left of several rusters, ascending; None for all of the batch."""
    if len(traces) == 1:
        return traces[0].alive
    parts = [trace.alive for trace in traces if trace.alive is not None]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


class OperatorArray:
    """Operators by number, their costs, and the way through them.

    Parameters
    ----------
    operators
        In written order.
    first
        Position of the first of them among all operators of the router.
    totals
        The router's sums.
    costs_us
        Cost of each operator, if it is not to be measured.

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        first: int,
        totals: Totals,
        costs_us: Sequence[float] | None = None,
    ) -> None:
        self.operators = list(operators)
        #: Where the operators stand among those of the router, and so in its totals.
        self.places = slice(first, first + len(self.operators))
        self.costs = Costs(len(self.operators))
        self._totals = totals
        self._given_costs_us = None if costs_us is None else np.array(costs_us, dtype=float)

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def has_given_costs(self) -> bool:
        """Whether costs are given rather than measured, so that runs can be repeated exactly."""
        return self._given_costs_us is not None

    @property
    def costs_are_known(self) -> bool:
        """Whether the cost of every operator is given, or was measured in several calls."""
        return self.has_given_costs or self.costs.are_settled

    def names(self, order: Iterable[int]) -> tuple[str, ...]:
        """Return an order as the names of its operators."""
        return tuple(self.operators[number].name for number in order)

    def cost_us(self) -> FloatArray:
        """Return the cost of one more row for each operator; the mean where none was measured."""
        if self._given_costs_us is not None:
            return self._given_costs_us
        measured = self.costs.per_row_us()
        known = [us for us in measured if us is not None]
        guess = sum(known) / len(known) if known else 1.0
        return np.array([max(guess if us is None else us, 1e-4) for us in measured])

    def booked_us(self, measured_us: float, evaluations: IntArray) -> float:
        """Return the time for the budget: as measured, or by the given costs if there are any."""
        given = self._given_costs_us
        return measured_us if given is None else float(evaluations @ given)

    def follow(
        self, token: RToken, batch: Batch, rows: Rows | None, errors: HeldErrors
    ) -> RouteTrace:
        """Send rows along the token's route until no rows or no operators are left."""
        entered_count = count = batch.rows if rows is None else len(rows)
        alive, clock = rows, time.perf_counter
        visits: list[Visit] = []
        while count and token:
            number = token.pop()
            converting_us = batch.converting_us
            began = clock()
            outcome, failed = errors.ask(self.operators[number], batch, alive)
            busy_us = (clock() - began) * 1e6
            own_us = busy_us - (batch.converting_us - converting_us)
            answers = outcome.passed
            kept = answers.nonzero()[0]
            left = len(kept)
            visits.append(Visit(number, alive, answers, count, left, busy_us, own_us))
            if failed:
                self._totals.failed[self.places.start + number] += failed
            if left < count:
                alive = kept if alive is None else alive[kept]
            count = left
        counts, busy_by_operator_us = self._sum_up(token, visits)
        return RouteTrace(rows, entered_count, visits, alive, counts, busy_by_operator_us)

    def _sum_up(self, token: RToken, visits: Sequence[Visit]) -> tuple[IntArray, FloatArray]:
        """Return rows seen and passed, and times; tell the token, if its route learns."""
        operators = len(self.operators)
        seen, passed, busy_us = [0] * operators, [0] * operators, [0.0] * operators
        for visit in visits:
            number = visit.operator
            seen[number], passed[number] = visit.seen, visit.passed
            busy_us[number] = visit.busy_us
        if token.learns:
            given_us = self._given_costs_us
            for number, _, _, rows, kept, _, own_us in visits:
                cost_us = own_us / rows if given_us is None else float(given_us[number])
                token.feed_back(number, rows, rows - kept, cost_us)
        return np.array((seen, passed), dtype=np.int64), np.array(busy_us)

    def learn_costs(self, traces: Sequence[RouteTrace]) -> None:
        """Update the cost of each operator by all its calls for the rusters of a chunk."""
        rows, own_us = [0] * len(self.operators), [0.0] * len(self.operators)
        for trace in traces:
            for visit in trace.visits:
                rows[visit.operator] += visit.seen
                own_us[visit.operator] += visit.own_us
        self.costs.add_batch(list(zip(range(len(rows)), rows, own_us, strict=True)))

    def drops(self, number: int, batch: Batch, rows: Rows) -> BoolArray:
        """Evaluate an operator on rows only to learn: True where it drops the row.

        A row on which the operator raises counts as not dropped, and its error is ignored.
        """
        converting_us = batch.converting_us
        began = time.perf_counter()
        try:
            dropped = ~self.operators[number].evaluate(batch, rows).passed
        except Exception:
            return np.zeros(len(rows), dtype=bool)
        elapsed_us = (time.perf_counter() - began) * 1e6
        own_us = elapsed_us - (batch.converting_us - converting_us)
        self.costs.add(number, len(rows), own_us)
        self._totals.profiled[self.places.start + number] += len(rows)
        self._totals.profiled_us[self.places.start + number] += own_us
        return dropped

    def all_drops(self, batch: Batch, rows: Rows) -> BoolArray:
        """Evaluate every operator on all the rows; one column for each operator."""
        return np.stack([self.drops(number, batch, rows) for number in range(len(self))], axis=1)
