"""One order for all rows, kept good by a policy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.errors import InvalidPolicyError
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.operator_array import Trail
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.segment import Segment, Write, WrittenOrderEstimate, merge
from eddyline.fabric.totals import Totals
from eddyline.fabric.trials.before_after import Refused, Trial
from eddyline.journal.events import (
    BudgetExhausted,
    DriftDetected,
    OrderChanged,
    TrialEnded,
    Verdict,
)
from eddyline.mesh import Progress
from eddyline.operators import Batch, Operator
from eddyline.ordering import Change, Evidence, Policy
from eddyline.ordering.static import reach_counts, static_greedy
from eddyline.profile import Budget, RateDrift

BURST_TUPLES = 128
BURST_TUPLES_MIN = 24


class OneOrder(Segment):
    """Sends every row along the policy's order, and shows the policy what became of them.

    Parameters
    ----------
    operators, first, budget, write, seed, costs_us
        As for `Segment`.
    policy
        Decides the order; already started.

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        first: int,
        policy: Policy,
        budget: Budget,
        write: Write,
        seed: int,
        costs_us: Sequence[float] | None = None,
    ) -> None:
        super().__init__(operators, first, budget, write, seed, costs_us)
        self.policy = policy
        self._drift = RateDrift()
        self._trial: Trial | None = None
        self._refused = Refused()
        self._written = WrittenOrderEstimate(len(operators))
        self._checked_order: tuple[int, ...] | None = None
        self._burst_due = policy.watches_drift
        self._is_cold = True
        self._learns = policy.learns and len(operators) > 1
        self._was_short = False
        #: Whether all rows of the last batch took the policy's order.
        self._is_one_order = True

    @property
    def order(self) -> tuple[int, ...]:
        """The policy's order; a policy that forgets a predicate must not go unnoticed."""
        order = self.policy.order
        if order is not self._checked_order:
            if sorted(order) != list(range(len(self.array))):
                raise InvalidPolicyError(
                    f"policy {self.policy.name!r} answered with {list(order)}, which is no order "
                    f"of {len(self.array)} predicates; it must name each of them once"
                )
            self._checked_order = order
        return order

    def run(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> Rows | None:
        """Return the rows, of those given, that no predicate of the segment drops."""
        order = self.order
        trails = self._travel(batch, alive, errors, totals)
        seen, passed = self._book(trails, totals)
        left = merge(trails)
        if self._learns:
            began = time.perf_counter()
            self._learn(batch, trails, seen, passed, totals)
            learning_us = (time.perf_counter() - began) * 1e6
            self._book_deciding(learning_us - self.profiling_us, totals)
            entered = sum(trail.entered_count for trail in trails)
            order = order if self._is_one_order else ()
            left_count = batch.rows if left is None else len(left)
            totals.written_seen[self.array.places] += self._written.seen(
                entered, left_count, order, seen, passed
            )
        else:
            totals.written_seen[self.array.places] += seen
        return left

    def knowledge(self) -> dict[str, Any]:
        """Return the order, costs, profile tuples, and what is expected of rows in this order."""
        return {
            "order": list(self.policy.order),
            "cost_us": self._known_costs(),
            "tuples": pack_tuples(self.policy.profile()),
            "expected": self._drift.to_dict(),
        }

    def resume(self, known: dict[str, Any]) -> None:
        """Start from what another segment of the same predicates has learnt."""
        self.policy.adopt(known["order"])
        self._resume_costs(known["cost_us"])
        tuples = unpack_tuples(known["tuples"], len(self.array))
        self.policy.load_profile(tuples)
        expected = known.get("expected")
        if expected is not None and len(tuples) >= BURST_TUPLES_MIN:
            # No need to look before the first row: if the rows have changed, the alarm will tell.
            self._drift.resume(expected)
            self._begin_warm()
            if _asks_all(self._wanted()):
                self._written.learn(tuples)

    def _begin_warm(self) -> None:
        """Save what it takes to know the first rows."""
        self._burst_due = self._is_cold = False
        self.budget.forgo_advance()

    def train(self, batch: Batch, totals: Totals, progress: Progress | None = None) -> None:
        """Begin with the order that is best for these rows."""
        if self._learns:
            self._learn_from(self._drops_of_all(batch, np.arange(batch.rows), totals))

    def _learn_from(self, drops: BoolArray) -> None:
        dropped = drops[drops.any(axis=1)]
        self.policy.adopt(static_greedy(drops, self.array.cost_us()))
        self.policy.load_profile(dropped)
        self._written.learn(dropped)

    def _travel(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> list[Trail]:
        """Send the rows on their way; return where they went, ruster by ruster."""
        return [self.array.follow(RToken(self.order), batch, alive, errors, totals)]

    # --- learning ---------------------------------------------------------------------------

    def _learn(
        self,
        batch: Batch,
        trails: list[Trail],
        seen: IntArray,
        passed: IntArray,
        totals: Totals,
    ) -> None:
        """Profile if it is time to, tell the policy, act on its answer."""
        order = self.policy.order
        in_order = self._counts_in_order(trails, seen, passed)
        if in_order is not None and self.policy.watches_drift:
            by_position = list(order)
            reached, left = in_order
            if self._drift.update(reached[by_position], (reached - left)[by_position]):
                self._notice_drift(DriftDetected(order=tuple(self.array.names(order))))
        tuples = self._profile(batch, trails, totals)
        if len(tuples) == 0 and self.policy.profile_probability > 0 and self._trial is None:
            return  # nothing new to learn from
        cost_us = self.array.cost_us()
        rows = sum(trail.entered_count for trail in trails)
        change = None
        if len(tuples) or self.policy.profile_probability == 0:
            evidence = Evidence(rows, order, seen, passed, cost_us, tuples)
            change = self.policy.learn(evidence)
        if change is not None:
            self._take_up(change, evidence)
        elif self._trial is not None and self._is_one_order:
            self._trial.add(rows, seen)
            if self._trial.is_over:
                self._end_trial("reverted" if self._trial.is_worse(cost_us) else "kept")

    def _counts_in_order(
        self, trails: list[Trail], seen: IntArray, passed: IntArray
    ) -> tuple[IntArray, IntArray] | None:
        """Return rows seen and passed of those that took the policy's order, if some did."""
        return (seen, passed) if self._is_one_order else None

    def _notice_drift(self, drift: DriftDetected) -> None:
        """Forget what no longer holds, and look at once at what does."""
        self._write(drift)
        self._end_trial("interrupted")
        self._refused.clear()
        self.policy.forget()
        self._written.forget()
        self._burst_due = True

    def _profile(self, batch: Batch, trails: list[Trail], totals: Totals) -> BoolArray:
        """Evaluate some dropped rows in full; return their profile tuples."""
        entered_count = sum(trail.entered_count for trail in trails)
        wanted_count = self._rows_to_profile(entered_count)
        if wanted_count == 0:
            return np.zeros((0, len(self.array)), dtype=bool)
        began = time.perf_counter()
        asked_before = totals.profiled.copy()
        found = []
        for trail in trails:
            count = wanted_count
            if len(trails) > 1:
                share = wanted_count * trail.entered_count / entered_count
                count = min(trail.entered_count, int(share + self._rng.random()))
            picked = np.sort(self._rng.choice(trail.entered_count, count, replace=False))
            rows = picked if trail.entered is None else trail.entered[picked]
            found.append(self._profile_ruster(batch, trail, rows, totals))
        tuples = np.concatenate(found)
        if len(tuples) >= BURST_TUPLES_MIN:
            self._burst_due = self._is_cold = False
        self.profiling_us = (time.perf_counter() - began) * 1e6
        totals.profiling_us += self.profiling_us
        asked = (totals.profiled - asked_before)[self.array.places]
        self.budget.pay(self.array.booked_us(self.profiling_us, asked))
        return tuples

    def _profile_ruster(self, batch: Batch, trail: Trail, rows: Rows, totals: Totals) -> BoolArray:
        """Return which predicates drop the given rows of a ruster, of those that were dropped."""
        filters = len(self.array)
        dropped_at = trail.positions_of_drop(rows)
        is_dropped = dropped_at < len(trail.order)
        self._collect_kept(batch, rows[~is_dropped])
        rows, dropped_at = rows[is_dropped], dropped_at[is_dropped]
        tuples = np.zeros((len(rows), filters), dtype=bool)
        if len(rows) == 0:
            return tuples
        # Whoever was not reached comes after all who were.
        rest = [number for number in self.order if number not in trail.order]
        order = np.array([*trail.order, *rest])
        tuples[np.arange(len(rows)), order[dropped_at]] = True
        wanted = self._wanted()
        for position in range(1, filters):
            asked = wanted[dropped_at, position]
            if asked.any():
                number = int(order[position])
                tuples[asked, number] = self.array.drops(number, batch, rows[asked], totals)
        if _asks_all(wanted):
            self._written.learn(tuples)
            self._collect_dropped(batch, rows, tuples)
        return tuples

    def _wanted(self) -> BoolArray:
        """Return who is asked about a row: a line for each position that may have dropped it."""
        wanted = np.zeros((len(self.array), len(self.array)), dtype=bool)
        for position in range(len(self.array)):
            wanted[position, list(self.policy.wanted(position))] = True
        return wanted

    def _collect_kept(self, batch: Batch, rows: Rows) -> None:
        """For subclasses: rows, picked at random, that nothing dropped."""

    def _collect_dropped(self, batch: Batch, rows: Rows, drops: BoolArray) -> None:
        """For subclasses: rows, picked at random, and who drops them."""

    def _rows_to_profile(self, entered_count: int) -> int:
        probability = self.policy.profile_probability
        if probability <= 0 or entered_count == 0:
            return 0
        # What is known of no order yet is worth half of the first, few, rows.
        share = 2 if self._is_cold else 8
        burst = min(BURST_TUPLES, entered_count // share) if self._burst_due else 0
        if burst:
            may = self.budget.allows_urgent(float(burst * self.array.cost_us().sum()))
            if may or self._is_cold:  # the first look is worth more than any budget
                return burst
        if self.budget.allows():
            return int(self._rng.binomial(entered_count, probability))
        if not self._was_short:
            self._write(BudgetExhausted(share=self.budget.share))
        self._was_short = True
        return 0

    # --- trials -----------------------------------------------------------------------------

    def _take_up(self, change: Change, evidence: Evidence) -> None:
        """Put a new order on trial, unless it was undone a short while ago."""
        if self.policy.on_trial and self._refused.bars(change.after, self._rows):
            self.policy.adopt(change.before)
            return
        self._end_trial("interrupted")
        self._drift.restart()
        names = self.array.names(range(len(self.array)))
        details = {
            name: round(number, 4) if isinstance(number, float) else number
            for name, number in change.numbers.items()
        }
        self._write(
            OrderChanged(
                before=tuple(self.array.names(change.before)),
                after=tuple(self.array.names(change.after)),
                cost_us=dict(zip(names, evidence.cost_us.round(3).tolist(), strict=True)),
                cost_before_us=details.pop("cost_before_us", None),
                cost_after_us=details.pop("cost_after_us", None),
                details=details,
            )
        )
        if self.policy.on_trial:
            expected = self._evaluations_in(change.before, evidence)
            self._trial = Trial(change.before, change.after, expected)

    def _evaluations_in(self, order: tuple[int, ...], evidence: Evidence) -> FloatArray:
        """Return the evaluations a row needs in an order, on the rows that spoke against it."""
        rows = max(evidence.rows, 1)
        in_last_batch = evidence.seen / rows
        tuples = self.policy.profile()
        if len(tuples) == 0:
            return in_last_batch
        kept_share = float(evidence.passed[order[-1]]) / rows
        needed = np.empty(len(order))
        needed[list(order)] = reach_counts(order, tuples) / len(tuples)
        # A small window may flatter the old order: what the last batch really took counts too.
        return np.maximum(kept_share + (1 - kept_share) * needed, in_last_batch)

    def _end_trial(self, verdict: Verdict) -> None:
        """End the trial, if there is one, and write down how."""
        trial, self._trial = self._trial, None
        if trial is None:
            return
        cost_us = self.array.cost_us()
        self._write(
            TrialEnded(
                subject="order",
                method="before_after",
                verdict=verdict,
                before=tuple(self.array.names(trial.before)),
                after=tuple(self.array.names(trial.after)),
                rows=trial.rows,
                before_us=round(trial.expected_us(cost_us), 4),
                after_us=round(trial.measured_us(cost_us), 4),
            )
        )
        if verdict == "reverted":
            self._refused.add(trial.after, self._rows)
            self.policy.adopt(trial.before)
            self._drift.restart()
            self._burst_due = self.policy.watches_drift


def _asks_all(wanted: BoolArray) -> bool:
    """Say whether a profile tuple tells what every predicate makes of the row."""
    return bool(wanted[np.triu_indices(len(wanted), 1)].all())


def pack_tuples(tuples: BoolArray) -> str:
    """Return profile tuples as text that fits into JSON.

    Examples
    --------
    >>> pack_tuples(np.array([[True, False], [True, True]]))
    '80c0'

    """
    return np.packbits(tuples, axis=1).tobytes().hex()


def unpack_tuples(packed: str, filters: int) -> BoolArray:
    """Read what `pack_tuples` wrote.

    Examples
    --------
    >>> unpack_tuples("80c0", filters=2).tolist()
    [[True, False], [True, True]]

    """
    bytes_per_tuple = (filters + 7) // 8
    raw = np.frombuffer(bytes.fromhex(packed), dtype=np.uint8).reshape(-1, bytes_per_tuple)
    return np.unpackbits(raw, axis=1, count=filters).astype(bool)
