"""One order for all rows, kept good by a policy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.fabric.checked_order import CheckedOrder
from eddyline.fabric.knowledge import ContentKnowledge, Knowledge, MeshKnowledge, OrderKnowledge
from eddyline.fabric.ledger import ChunkOutcome
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.profiler import BURST_TUPLES_MIN, Profile, ProfileDemand
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.tactics.tactic import Ruster, SegmentContext
from eddyline.fabric.trials import BeforeAfterTrial, OrderCooldown
from eddyline.journal.events import DefaultRouteChanged, DriftDetected, OrderChanged, Verdict
from eddyline.mesh import Progress
from eddyline.operators import Batch
from eddyline.ordering import Change, Evidence, Policy
from eddyline.ordering.static import reach_counts, static_greedy
from eddyline.profile import DropRateDetector


class SingleOrder:
    """Sends every row along the policy's order, and tells the policy what became of them.

    Parameters
    ----------
    context
        Shared with the driver of the segment.
    policy
        Decides the order; already started.

    Examples
    --------
    The second predicate drops every row, so it comes first after the first rows:

    >>> import pyarrow as pa
    >>> from eddyline.fabric import Router
    >>> from eddyline.operators import ColumnReader, RowPredicate
    >>> router = Router(
    ...     [RowPredicate("keeps", (0,), lambda a: True),
    ...      RowPredicate("drops", (0,), lambda a: False)],
    ...     [ColumnReader("a")], "agreedy")
    >>> _ = router.route([pa.array(range(1_000))], rows=1_000)
    >>> router.order()
    ['drops', 'keeps']

    """

    def __init__(self, context: SegmentContext, policy: Policy) -> None:
        self.policy = policy
        self.learns = policy.learns and len(context.array) > 1
        self._context = context
        self._array = context.array
        self._drift = DropRateDetector()
        self._trial: BeforeAfterTrial | None = None
        self._cooldown = OrderCooldown()
        self._checked_order = CheckedOrder(policy)
        self._taken_order: tuple[int, ...] = ()
        if policy.watches_drift:
            context.profiler.request_burst()

    @property
    def order(self) -> tuple[int, ...]:
        """The policy's order, checked to be a permutation of the predicates."""
        return self._checked_order.read(len(self._array))

    @property
    def common_order(self) -> tuple[int, ...]:
        """The order that all rows of the last chunk took."""
        return self._taken_order

    # --- rows --------------------------------------------------------------------------------

    def assign(self, batch: Batch, rows: Rows | None) -> Iterator[Ruster]:
        """Yield all rows with one route."""
        self._taken_order = self.order
        yield Ruster(RToken(self._taken_order), rows)

    def observe(self, batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
        """Do nothing: the counts of the whole chunk tell everything."""

    # --- learning ----------------------------------------------------------------------------

    def watch(self, outcome: ChunkOutcome) -> None:
        """Look for drift along the order that all rows took."""
        self.detect_drift(outcome.seen, outcome.passed)

    def detect_drift(self, seen: IntArray, passed: IntArray) -> bool:
        """Look for drift in the counts of rows that took the policy's order; return the answer."""
        if not self.policy.watches_drift:
            return False
        by_position = list(self.policy.order)
        cost_us = self._array.cost_us()[by_position]
        self._drift.update(seen[by_position], (seen - passed)[by_position], cost_us)
        if self._drift.detected:
            self.forget(DriftDetected(order=self._array.names(self.policy.order)))
        return self._drift.detected

    def forget(self, drift: DriftDetected) -> None:
        """Discard what no longer holds, and ask for a burst of profiles."""
        self._context.write(drift)
        self.end_trial("interrupted")
        self._cooldown.clear()
        self.policy.forget()
        self._context.baseline.forget()
        self._context.profiler.request_burst()

    def profile_demand(self) -> ProfileDemand | None:
        """Ask for profile tuples as the policy does."""
        probability = self.policy.profile_probability
        if probability <= 0:
            return None
        return ProfileDemand(probability, self.order, self.policy.wanted)

    def learn(self, batch: Batch, outcome: ChunkOutcome, profile: Profile) -> None:
        """Tell the policy what the chunk showed, and act on its answer."""
        self.learn_order(outcome, profile, is_for_all=True)

    def learn_order(self, outcome: ChunkOutcome, profile: Profile, is_for_all: bool) -> None:
        """Tell the policy what the chunk showed, and act on its answer.

        Parameters
        ----------
        outcome, profile
            Of the chunk.
        is_for_all
            Whether all rows take the policy's order. Otherwise it is only the default route, and
            a new order cannot be tried.

        """
        is_new = bool(len(profile.tuples)) or self.policy.profile_probability <= 0
        if not is_new and self._trial is None and not self._drift.detected:
            return
        cost_us = self._array.cost_us()
        evidence = Evidence(
            outcome.rows,
            self.policy.order,
            outcome.seen,
            outcome.passed,
            cost_us,
            profile.tuples,
        )
        change = self.policy.learn(evidence) if is_new else None
        if self._drift.detected and change is None:
            if len(profile.tuples) < BURST_TUPLES_MIN:
                change = self._change_to_counted_order(profile)
            else:
                self._drift.back_off()
        if change is not None:
            if is_for_all:
                self._start_trial(change, evidence)
            else:
                self._change_default(change)
        elif self._trial is not None and is_for_all:
            self._trial.count(outcome.rows, outcome.seen, outcome.passed)
            if self._trial.is_over:
                self.end_trial(self._trial.verdict(cost_us))

    # --- changes of the order ----------------------------------------------------------------

    def _change_to_counted_order(self, profile: Profile) -> Change:
        """Take the order that is best by the counts of the chunk, where no burst was affordable."""
        before = self.policy.order
        after = tuple(before[position] for position in self._drift.counted_order)
        self.policy.adopt(after)
        self.policy.load_profile(profile.tuples)
        cost_before_us, cost_after_us = self._drift.counted_cost_us
        numbers = {"cost_before_us": cost_before_us, "cost_after_us": cost_after_us}
        return Change(before, after, numbers)

    def _start_trial(self, change: Change, evidence: Evidence) -> None:
        """Put a new order on trial, unless it was reverted a short while ago."""
        if self.policy.on_trial and self._cooldown.bars(change.after, self._context.ledger.rows):
            self.policy.decline(change)
            return
        self.end_trial("interrupted")
        self._expect_rates_in(change)
        self._context.write(self._order_changed(change, evidence))
        if self.policy.on_trial:
            self._trial = BeforeAfterTrial(
                change.before,
                change.after,
                self._evaluations_in(change.before, evidence),
                self._array.names(change.before),
                self._array.names(change.after),
            )

    def _expect_rates_in(self, change: Change) -> None:
        """Keep of the reference what holds for a new order; right after drift, nothing."""
        if self._drift.detected:
            self._drift.reset()
        else:
            self._drift.reorder(change.before, change.after)

    def _change_default(self, change: Change) -> None:
        self._expect_rates_in(change)
        before, after = self._array.names(change.before), self._array.names(change.after)
        self._context.write(DefaultRouteChanged(before=before, after=after))

    def _order_changed(self, change: Change, evidence: Evidence) -> OrderChanged:
        names = self._array.names(range(len(self._array)))
        details = {
            name: round(number, 4) if isinstance(number, float) else number
            for name, number in change.numbers.items()
        }
        return OrderChanged(
            before=self._array.names(change.before),
            after=self._array.names(change.after),
            cost_us=dict(zip(names, evidence.cost_us.round(3).tolist(), strict=True)),
            cost_before_us=details.pop("cost_before_us", None),
            cost_after_us=details.pop("cost_after_us", None),
            details=details,
        )

    def _evaluations_in(self, order: tuple[int, ...], evidence: Evidence) -> FloatArray:
        """Return the evaluations a row needs in an order, on the rows it was given up for."""
        rows = max(evidence.rows, 1)
        in_last_chunk = evidence.seen / rows
        tuples = self.policy.profile()
        if len(tuples) == 0:
            return in_last_chunk
        kept_share = float(evidence.passed[order[-1]]) / rows
        needed = np.empty(len(order))
        needed[list(order)] = reach_counts(order, tuples) / len(tuples)
        # A small window may make the old order look better than the last chunk showed it to be.
        return np.maximum(kept_share + (1 - kept_share) * needed, in_last_chunk)

    def end_trial(self, verdict: Verdict) -> None:
        """End the trial, if there is one; go back to the old order if it was reverted."""
        trial, self._trial = self._trial, None
        if trial is None:
            return
        self._context.write(trial.ended(verdict, self._array.cost_us()))
        if verdict == "reverted":
            self._cooldown.add(trial.tried, self._context.ledger.rows)
            self.policy.adopt(trial.order)
            self._drift.reset()
            self._drift.back_off()
            if self.policy.watches_drift:
                self._context.profiler.request_burst()

    def reset_drift(self) -> None:
        """Start a new reference, because other rows take this order from now on."""
        self._drift.reset()

    # --- knowledge ---------------------------------------------------------------------------

    def train(self, batch: Batch, drops: BoolArray, progress: Progress | None) -> None:
        """Start with the order that is best for these rows."""
        dropped = drops[drops.any(axis=1)]
        self.policy.adopt(static_greedy(drops, self._array.cost_us()))
        self.policy.load_profile(dropped)
        self._context.baseline.learn(dropped)

    def snapshot(self) -> OrderKnowledge:
        """Return the order, costs, profile tuples, and the drop rates expected along it."""
        return OrderKnowledge(
            tuple(self.policy.order),
            self._context.known_costs_us(),
            self.policy.profile(),
            self._drift.snapshot(),
        )

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what a tactic for the same predicates has learnt."""
        if isinstance(knowledge, MeshKnowledge):
            knowledge = knowledge.default
        self.policy.adopt(knowledge.order)
        self._context.restore_costs(knowledge.cost_us)
        if isinstance(knowledge, ContentKnowledge):
            return
        self.policy.load_profile(knowledge.tuples)
        if knowledge.expected is not None and len(knowledge.tuples) >= BURST_TUPLES_MIN:
            # No burst for the first rows: if they have changed, the detector will notice.
            self._drift.restore(knowledge.expected)
            self._context.profiler.start_warm()
            demand = self.profile_demand()
            if demand is not None and demand.is_complete:
                self._context.baseline.learn(knowledge.tuples)
