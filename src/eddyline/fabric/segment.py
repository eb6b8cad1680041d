"""A segment: predicates that may be reordered among themselves, and the driver of their tactic.

The property correctness rests on: whatever routes the tactic chooses, a row leaves the segment
exactly if no predicate of the segment drops it. Everything else only reduces work.
"""

from __future__ import annotations

import time

import numpy as np

from eddyline.arrays import BoolArray, Rows
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.ledger import ChunkOutcome
from eddyline.fabric.operator_array import RouteTrace, surviving_rows
from eddyline.fabric.profiler import Profile
from eddyline.fabric.tactics.tactic import SegmentContext, Tactic
from eddyline.mesh import Progress
from eddyline.operators import Batch


class Segment:
    """Drives a tactic: sends its rusters on their routes, books, profiles and lets it learn.

    Parameters
    ----------
    context
        Operators, ledger, profiler and baseline, shared with the tactic.
    tactic
        Assigns rows to routes.

    """

    def __init__(self, context: SegmentContext, tactic: Tactic) -> None:
        self.tactic = tactic
        self.array = context.array
        self.ledger = context.ledger
        self._profiler = context.profiler
        self._baseline = context.baseline

    @property
    def order(self) -> tuple[int, ...]:
        """The order of rows without a route of their own."""
        return self.tactic.order

    def run(self, batch: Batch, rows: Rows | None, errors: HeldErrors) -> Rows | None:
        """Return the rows, of those given, that no predicate of the segment drops."""
        tactic = self.tactic
        self.ledger.open_chunk()
        traces: list[RouteTrace] = []
        for ruster in tactic.assign(batch, rows):
            trace = self.array.follow(ruster.token, batch, ruster.rows, errors)
            tactic.observe(batch, ruster, trace)
            traces.append(trace)
        self.array.learn_costs(traces)
        entered, seen, passed = self.ledger.book_traces(traces)
        left = surviving_rows(traces)
        if not tactic.learns:
            self.ledger.book_written(seen)
            return left
        kept = batch.rows if left is None else len(left)
        common_order = tactic.common_order
        self._learn(batch, ChunkOutcome(traces, entered, seen, passed))
        if self._baseline.is_written(common_order):
            self.ledger.book_written(seen)
        else:
            self.ledger.book_estimate(
                self._baseline.rows_reaching(entered, kept, common_order, seen, passed)
            )
        return left

    def _learn(self, batch: Batch, outcome: ChunkOutcome) -> None:
        tactic, ledger = self.tactic, self.ledger
        profiling_before_us = ledger.profiling_us
        began = time.perf_counter()
        tactic.watch(outcome)
        demand = tactic.profile_demand()
        if demand is None:
            profile = Profile.empty(len(self.array))
        else:
            profile = self._profiler.collect(batch, outcome, demand)
            if len(profile.drops):
                self._baseline.learn(profile.tuples)
        tactic.learn(batch, outcome, profile)
        learning_us = (time.perf_counter() - began) * 1e6
        ledger.book_deciding(learning_us - (ledger.profiling_us - profiling_before_us))

    def run_alone(self, batch: Batch, errors: HeldErrors) -> BoolArray:
        """Return the verdict of the only predicate there is: nothing to order or to learn."""
        self.ledger.open_chunk()
        began = time.perf_counter()
        outcome, failed = errors.ask(self.array.operators[0], batch, None)
        spent_us = (time.perf_counter() - began) * 1e6
        passed = int(np.count_nonzero(outcome.passed))
        self.ledger.book_alone(batch.rows, passed, failed, spent_us)
        return outcome.passed

    def train(self, batch: Batch, progress: Progress | None = None) -> None:
        """Learn from rows that are not to be judged: every predicate is evaluated on all."""
        if self.tactic.learns:
            drops = self.array.all_drops(batch, np.arange(batch.rows))
            self.tactic.train(batch, drops, progress)

    def snapshot(self) -> Knowledge:
        """Return what was learnt."""
        return self.tactic.snapshot()

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what another segment of the same predicates has learnt."""
        self.tactic.restore(knowledge)
