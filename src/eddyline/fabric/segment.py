"""A segment: predicates that may be reordered among themselves, and the policy that does it.

The property correctness rests on: whatever the order, a row leaves the segment exactly if no
predicate of the segment drops it. Everything else here is about doing that with less work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eddyline.errors import InvalidPolicyError
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.totals import Totals
from eddyline.fabric.trial import Refused, Trial
from eddyline.operators import Batch, Operator
from eddyline.operators.operator import BoolArray, Rows
from eddyline.ordering import Change, Evidence, Policy
from eddyline.ordering.policy import FloatArray, IntArray
from eddyline.ordering.static import reach_counts
from eddyline.profile import Budget, CostModel, RateDrift

BURST_TUPLES = 128
BURST_TUPLES_MIN = 24
WRITTEN_MEMORY_TUPLES = 200


class Segment:
    """Runs batches through its predicates and learns from them.

    Parameters
    ----------
    operators
        The predicates, in written order.
    indices
        Their positions among all predicates of the router.
    policy
        Decides the order; already started.
    budget
        Limits the time spent on profiling.
    write
        Called with the kind and the numbers of each decision.
    seed
        For the choice of rows to profile.
    costs_us
        What the predicates cost, if that is not to be measured.

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        indices: Sequence[int],
        policy: Policy,
        budget: Budget,
        write: Callable[[str, dict[str, Any]], None],
        seed: int,
        costs_us: Sequence[float] | None = None,
    ) -> None:
        self.operators = list(operators)
        self.indices = np.array(indices)
        self.policy = policy
        self.budget = budget
        self.costs = [CostModel() for _ in self.operators]
        # Of the last batch: time inside predicates, the same as booked, time for profiling.
        self.busy_us = self.booked_us = self.profiling_us = 0.0
        self._given_costs_us = None if costs_us is None else np.array(costs_us, dtype=float)
        self._write = write
        self._rng = np.random.default_rng(seed)
        self._drift = RateDrift()
        self._trial: Trial | None = None
        self._refused = Refused()
        self._rows = 0
        self._checked_order: tuple[int, ...] | None = None
        self._written_reach: FloatArray | None = None
        self._burst_due = policy.watches_drift
        self._is_cold = True
        self._learns = policy.learns and len(self.operators) > 1
        self._was_short = False

    def names(self, order: Sequence[int]) -> list[str]:
        """Return an order as the names of its predicates."""
        return [self.operators[filter_].name for filter_ in order]

    def cost_us(self) -> FloatArray:
        """Return what each predicate costs for one more row; a guess where nothing was seen."""
        if self._given_costs_us is not None:
            return self._given_costs_us
        known = [cost.per_row_us for cost in self.costs if cost.known]
        guess = sum(known) / len(known) if known else 1.0
        return np.array(
            [max(cost.per_row_us if cost.known else guess, 1e-4) for cost in self.costs]
        )

    def run(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> Rows | None:
        """Return the rows, of those given, that no predicate of the segment drops."""
        order = self._valid_order()
        filters = len(self.operators)
        seen = np.zeros(filters, dtype=np.int64)
        passed = np.zeros(filters, dtype=np.int64)
        entered, entered_count = alive, batch.rows if alive is None else len(alive)
        count = entered_count
        survivors: list[Rows | None] = []
        busy_us = 0.0
        for filter_ in order:
            if count == 0:
                break
            operator = self.operators[filter_]
            converting_us = batch.converting_us
            asked = time.perf_counter()
            outcome, failed = errors.ask(operator, batch, alive)
            elapsed_us = (time.perf_counter() - asked) * 1e6
            busy_us += elapsed_us
            self.costs[filter_].add(count, elapsed_us - (batch.converting_us - converting_us))
            passed_count = int(np.count_nonzero(outcome.passed))
            seen[filter_], passed[filter_] = count, passed_count
            index = self.indices[filter_]
            totals.busy_us[index] += elapsed_us
            totals.failed[index] += failed
            if passed_count < count:
                alive = outcome.passed.nonzero()[0] if alive is None else alive[outcome.passed]
            survivors.append(alive)
            count = passed_count
        self._rows += entered_count
        totals.seen[self.indices] += seen
        totals.passed[self.indices] += passed
        self.busy_us, self.booked_us = busy_us, self._booked_us(busy_us, seen)
        self.budget.earn(self.booked_us)
        self.profiling_us = 0.0
        if self._learns:
            self._learn(batch, entered, entered_count, survivors, seen, passed, totals)
            self._estimate_written_order(entered_count, count, seen, passed, totals)
        else:
            totals.written_seen[self.indices] += seen
        return alive

    def judge_alone(self, batch: Batch, errors: HeldErrors, totals: Totals) -> BoolArray:
        """Return the verdict of the only predicate there is: nothing to order, nothing to learn."""
        began = time.perf_counter()
        outcome, failed = errors.ask(self.operators[0], batch, None)
        self.busy_us = self.booked_us = (time.perf_counter() - began) * 1e6
        totals.busy_us[0] += self.busy_us
        totals.failed[0] += failed
        totals.seen[0] += batch.rows
        totals.written_seen[0] += batch.rows
        totals.passed[0] += int(np.count_nonzero(outcome.passed))
        return outcome.passed

    def _valid_order(self) -> tuple[int, ...]:
        """Return the policy's order; a policy that forgets a predicate must not go unnoticed."""
        order = self.policy.order
        if order is not self._checked_order:
            if sorted(order) != list(range(len(self.operators))):
                raise InvalidPolicyError(
                    f"policy {self.policy.name!r} answered with {list(order)}, which is no order "
                    f"of {len(self.operators)} predicates; it must name each of them once"
                )
            self._checked_order = order
        return order

    # --- learning ---------------------------------------------------------------------------

    def _learn(
        self,
        batch: Batch,
        entered: Rows | None,
        entered_count: int,
        survivors: list[Rows | None],
        seen: IntArray,
        passed: IntArray,
        totals: Totals,
    ) -> None:
        """Profile if it is time to, tell the policy, act on its answer."""
        order = self.policy.order
        by_position = list(order)
        if self.policy.watches_drift and self._drift.update(
            seen[by_position], (seen - passed)[by_position]
        ):
            self._write("drift", {"order": self.names(order)})
            self._end_trial("cut short")
            self._refused.clear()
            self.policy.forget()
            self._burst_due = True
        tuples = self._profile(batch, entered, entered_count, survivors, totals)
        if len(tuples) == 0 and self.policy.profile_probability > 0 and self._trial is None:
            return  # nothing new to learn from
        cost_us = self.cost_us()
        change = None
        if len(tuples) or self.policy.profile_probability == 0:
            evidence = Evidence(entered_count, order, seen, passed, cost_us, tuples)
            change = self.policy.learn(evidence)
        if change is not None:
            self._take_up(change, evidence)
        elif self._trial is not None:
            self._trial.add(entered_count, seen)
            if self._trial.is_over:
                self._end_trial("reverted" if self._trial.is_worse(cost_us) else "kept")

    def _profile(
        self,
        batch: Batch,
        entered: Rows | None,
        entered_count: int,
        survivors: list[Rows | None],
        totals: Totals,
    ) -> BoolArray:
        """Evaluate some dropped rows in full; return their profile tuples."""
        filters = len(self.operators)
        nothing: BoolArray = np.zeros((0, filters), dtype=bool)
        wanted_count = self._rows_to_profile(entered_count)
        if wanted_count == 0:
            return nothing
        began = time.perf_counter()
        picked = np.sort(self._rng.choice(entered_count, wanted_count, replace=False))
        rows = picked if entered is None else entered[picked]
        dropped_at = _positions_of_drop(rows, survivors)
        is_dropped = dropped_at < len(survivors)
        rows, dropped_at = rows[is_dropped], dropped_at[is_dropped]
        if len(rows) == 0:
            return nothing
        order = np.array(self.policy.order)
        tuples = np.zeros((len(rows), filters), dtype=bool)
        tuples[np.arange(len(rows)), order[dropped_at]] = True
        wanted = np.zeros((filters, filters), dtype=bool)
        for position in range(filters):
            wanted[position, list(self.policy.wanted(position))] = True
        asked_counts = np.zeros(filters, dtype=np.int64)
        for position in range(1, filters):
            asked = wanted[dropped_at, position]
            if asked.any():
                filter_ = int(order[position])
                tuples[asked, filter_] = self._drops(filter_, batch, rows[asked], totals)
                asked_counts[filter_] = np.count_nonzero(asked)
        if len(tuples) >= BURST_TUPLES_MIN:
            self._burst_due = self._is_cold = False
        if wanted[np.triu_indices(filters, 1)].all():
            self._remember_written_order(tuples)
        self.profiling_us = (time.perf_counter() - began) * 1e6
        totals.profiling_us += self.profiling_us
        self.budget.pay(self._booked_us(self.profiling_us, asked_counts))
        return tuples

    def _booked_us(self, measured_us: float, evaluations: IntArray) -> float:
        """Return the time for the budget: as measured, or by the given costs if there are any."""
        given = self._given_costs_us
        return measured_us if given is None else float(evaluations @ given)

    def _rows_to_profile(self, entered_count: int) -> int:
        probability = self.policy.profile_probability
        if probability <= 0 or entered_count == 0:
            return 0
        burst = min(BURST_TUPLES, entered_count // 8) if self._burst_due else 0
        if burst:
            may = self.budget.allows_urgent(float(burst * self.cost_us().sum()))
            if may or self._is_cold:  # the first look is worth more than any budget
                return burst
        if self.budget.allows():
            return int(self._rng.binomial(entered_count, probability))
        if not self._was_short:
            self._write("budget", {"share": self.budget.share})
        self._was_short = True
        return 0

    def _drops(self, filter_: int, batch: Batch, rows: Rows, totals: Totals) -> BoolArray:
        """Ask a predicate about rows that are dropped already; an error of theirs is no error."""
        operator = self.operators[filter_]
        converting_us = batch.converting_us
        asked = time.perf_counter()
        try:
            dropped = ~operator.evaluate(batch, rows).passed
        except Exception:
            return np.zeros(len(rows), dtype=bool)
        elapsed_us = (time.perf_counter() - asked) * 1e6
        self.costs[filter_].add(len(rows), elapsed_us - (batch.converting_us - converting_us))
        totals.profiled[self.indices[filter_]] += len(rows)
        return dropped

    # --- trials -----------------------------------------------------------------------------

    def _take_up(self, change: Change, evidence: Evidence) -> None:
        """Put a new order on trial, unless it was undone a short while ago."""
        if self.policy.on_trial and self._refused.bars(change.after, self._rows):
            self.policy.adopt(change.before)
            return
        self._end_trial("cut short")
        self._drift.restart()
        names = self.names(range(len(self.operators)))
        self._write(
            "reorder",
            {
                "before": self.names(change.before),
                "after": self.names(change.after),
                "cost_us": dict(zip(names, evidence.cost_us.round(3).tolist(), strict=True)),
                **{
                    name: round(number, 4) if isinstance(number, float) else number
                    for name, number in change.numbers.items()
                },
            },
        )
        if self.policy.on_trial:
            expected = self._evaluations_in(change.before, evidence)
            self._trial = Trial(change.before, change.after, expected)

    def _evaluations_in(self, order: tuple[int, ...], evidence: Evidence) -> FloatArray:
        """Return the evaluations a row needs in an order, on the rows that spoke against it."""
        rows = max(evidence.rows, 1)
        in_last_batch = evidence.seen / rows
        tuples = self.policy.evidence()
        if len(tuples) == 0:
            return in_last_batch
        kept_share = float(evidence.passed[order[-1]]) / rows
        needed = np.empty(len(order))
        needed[list(order)] = reach_counts(order, tuples) / len(tuples)
        # A small window may flatter the old order: what the last batch really took counts too.
        return np.maximum(kept_share + (1 - kept_share) * needed, in_last_batch)

    def _end_trial(self, verdict: str) -> None:
        """End the trial, if there is one, and write down how."""
        trial, self._trial = self._trial, None
        if trial is None:
            return
        cost_us = self.cost_us()
        self._write(
            verdict,
            {
                "before": self.names(trial.before),
                "after": self.names(trial.after),
                "rows": trial.rows,
                "expected_us": round(trial.expected_us(cost_us), 4),
                "measured_us": round(trial.measured_us(cost_us), 4),
            },
        )
        if verdict == "reverted":
            self._refused.add(trial.after, self._rows)
            self.policy.adopt(trial.before)
            self._drift.restart()
            self._burst_due = self.policy.watches_drift

    # --- what the written order would have done ----------------------------------------------

    def _remember_written_order(self, tuples: BoolArray) -> None:
        reach = np.ones(len(self.operators))
        reach[1:] = (~np.logical_or.accumulate(tuples, axis=1))[:, :-1].mean(axis=0)
        if self._written_reach is None:
            self._written_reach = reach
        else:
            weight = len(tuples) / (len(tuples) + WRITTEN_MEMORY_TUPLES)
            self._written_reach = (1 - weight) * self._written_reach + weight * reach

    def _estimate_written_order(
        self, entered: int, left: int, seen: IntArray, passed: IntArray, totals: Totals
    ) -> None:
        """Estimate how many rows would have reached each predicate in the written order."""
        if self.policy.order == tuple(range(len(self.operators))):
            totals.written_seen[self.indices] += seen
            return
        if self._written_reach is not None:
            written = left + (entered - left) * self._written_reach
        else:  # no profile that tells: as if the predicates were independent
            rates = np.where(seen > 0, passed / np.maximum(seen, 1), 1.0)
            written = entered * np.concatenate([[1.0], np.cumprod(rates)[:-1]])
        totals.written_seen[self.indices] += written


def _positions_of_drop(rows: Rows, survivors: list[Rows | None]) -> IntArray:
    """Return the position at which each row was dropped; len(survivors) if it was not."""
    dropped_at = np.full(len(rows), len(survivors), dtype=np.int64)
    for position in range(len(survivors) - 1, -1, -1):
        left = survivors[position]
        if left is None:  # nothing dropped up to here
            break
        where = np.searchsorted(left, rows)
        inside = where < len(left)
        inside[inside] = left[where[inside]] == rows[inside]
        dropped_at[~inside] = position
    return dropped_at
