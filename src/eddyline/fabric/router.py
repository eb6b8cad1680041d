"""The router: rows in, verdicts out, learning on the way."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, Rows
from eddyline.fabric.baseline import BaselineEstimate
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.ledger import Ledger
from eddyline.fabric.operator_array import OperatorArray
from eddyline.fabric.options import RouterOptions
from eddyline.fabric.pinned import runs_between_pinned
from eddyline.fabric.profiler import Profiler
from eddyline.fabric.segment import Segment
from eddyline.fabric.tactics.choose import RoutingPolicy, is_content, make_tactic
from eddyline.fabric.tactics.tactic import SegmentContext
from eddyline.fabric.totals import Totals
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import DriftDetected, KnowledgeRestored, TrialEnded
from eddyline.mesh import Progress
from eddyline.operators import Batch, ColumnReader, Operator, SharedValue
from eddyline.ordering import AsWritten
from eddyline.profile import Budget

CHUNK_ROWS_MIN = 256
CHUNK_ROWS_AFTER_DRIFT = 512
FIRST_CHUNK_ROWS = 64
CHUNK_US = 100_000.0
STEADY_SHARE = 16
STEADY_FACTOR = 4
DRIFT_SHARE = 8
ADVANCE_US = 20_000.0
REST_SHARE = 1.5  # of a chunk: what is left of a batch and is less goes into one chunk


class Router:
    """Sends each row through predicates until one drops it.

    Predicates that may be reordered stand together in segments; a pinned predicate (one that is
    not deterministic) keeps its written place and so ends one segment and begins another.

    Parameters
    ----------
    operators
        The predicates in written order.
    readers
        One for each column of the batches to come.
    policy
        Name or example of the policy, or options of a tactic that finds classes; every segment
        gets its own copy.
    pinned
        Positions of predicates that must stay where they are written.
    options
        See `RouterOptions`.
    process
        Which process this is, for the journal.
    attributes
        Columns that may classify rows: names, and positions in the batches to come.
    shared
        Values that predicates share.

    Examples
    --------
    >>> from eddyline.operators import RowPredicate
    >>> router = Router(
    ...     [RowPredicate("even", (0,), lambda a: a % 2 == 0),
    ...      RowPredicate("big", (0,), lambda a: a > 2)],
    ...     [ColumnReader("a")])
    >>> router.route([pa.array([1, 2, 3, 4])], rows=4)
    array([False, False, False,  True])
    >>> router.totals.seen.tolist()  # "big" saw only the even ones
    [4, 2]

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        readers: Sequence[ColumnReader],
        policy: RoutingPolicy = "auto",
        pinned: Collection[int] = (),
        options: RouterOptions | None = None,
        process: str = "",
        attributes: Mapping[str, int] | None = None,
        shared: Sequence[SharedValue] = (),
    ) -> None:
        self.operators = list(operators)
        self.readers = list(readers)
        self.options = options or RouterOptions()
        self.totals = Totals(len(self.operators))
        self.journal = Journal()
        self._shared = tuple(shared)
        self._process = process
        self._rows = 0
        self._rows_at_decision = 0
        # None: what is known is older than the first row, or the rows are not watched for drift.
        self._rows_at_drift = None if attributes and is_content(policy) else 0
        self._rows_next = min(FIRST_CHUNK_ROWS, self.options.chunk_rows)
        self.segments = self._make_segments(policy, pinned, attributes or {})

    def route(self, columns: Sequence[pa.Array], rows: int) -> BoolArray:
        """Return a verdict for each row: True keeps it."""
        if rows < REST_SHARE * self._rows_next or len(self.operators) == 1:
            return self._route_chunk(Batch(columns, self.readers, rows, self._shared))
        verdicts = []
        start = 0
        while start < rows:
            length = self._rows_next
            if rows - start < REST_SHARE * length:
                length = rows - start
            chunk = [column.slice(start, length) for column in columns]
            verdicts.append(self._route_chunk(Batch(chunk, self.readers, length, self._shared)))
            start += length
        return np.concatenate(verdicts)

    def order(self) -> list[str]:
        """Return the order in use, as names of predicates."""
        return [name for s in self.segments for name in s.array.names(s.order)]

    def close(self) -> None:
        """Close what a task has opened; the router itself can be used again."""
        for operator in self.operators:
            operator.close()

    # --- knowledge ---------------------------------------------------------------------------

    def snapshot(self) -> tuple[Knowledge, ...]:
        """Return what each segment has learnt."""
        return tuple(segment.snapshot() for segment in self.segments)

    def restore(self, knowledge: Sequence[Knowledge]) -> None:
        """Start from what another router of the same predicates has learnt."""
        for segment, part in zip(self.segments, knowledge, strict=True):
            segment.restore(part)
        self._rows_next = self.options.chunk_rows
        self._rows_at_drift = None
        self._write(KnowledgeRestored(order=tuple(self.order())))

    def train(
        self, columns: Sequence[pa.Array], rows: int, progress: Progress | None = None
    ) -> None:
        """Learn from rows that every predicate may judge, without a verdict on them."""
        batch = Batch(columns, self.readers, rows, self._shared)
        for segment in self.segments:
            segment.train(batch, progress)

    # --- inside ------------------------------------------------------------------------------

    def _make_segments(
        self, policy: RoutingPolicy, pinned: Collection[int], attributes: Mapping[str, int]
    ) -> list[Segment]:
        runs = runs_between_pinned([index in pinned for index in range(len(self.operators))])
        seeds = np.random.SeedSequence(self.options.seed).generate_state(2 * len(runs) or 1)
        return [
            self._make_segment(
                AsWritten() if run[0] in pinned else policy,
                run,
                (int(seeds[2 * number]), int(seeds[2 * number + 1])),
                attributes,
            )
            for number, run in enumerate(runs)
        ]

    def _make_segment(
        self,
        policy: RoutingPolicy,
        run: range,
        seeds: tuple[int, int],
        attributes: Mapping[str, int],
    ) -> Segment:
        costs_us = self.options.costs_us
        array = OperatorArray(
            self.operators[run.start : run.stop],
            run.start,
            self.totals,
            None if costs_us is None else costs_us[run.start : run.stop],
        )
        rng = np.random.default_rng(seeds[1])
        ledger = Ledger(array, self.totals, Budget(self.options.budget, ADVANCE_US))
        context = SegmentContext(
            array,
            ledger,
            Profiler(array, ledger, rng, self._write),
            BaselineEstimate(len(array)),
            rng,
            self._write,
        )
        return Segment(context, make_tactic(policy, context, attributes, seeds))

    def _route_chunk(self, batch: Batch) -> BoolArray:
        began = time.perf_counter()
        errors = HeldErrors()
        if len(self.operators) == 1:
            verdict = self.segments[0].run_alone(batch, errors)
            if errors:
                verdict = self._settle(errors, batch, np.flatnonzero(verdict))
        else:
            alive: Rows | None = None
            for segment in self.segments:
                alive = segment.run(batch, alive, errors)
            if errors:
                survivors = np.arange(batch.rows) if alive is None else alive
                verdict = self._settle(errors, batch, survivors)
            else:
                verdict = _to_verdict(batch.rows, alive)
            self._rows_next = self._size_of_next_chunk(batch.rows)
        self._rows += batch.rows
        self.totals.rows += batch.rows
        self.totals.kept += int(np.count_nonzero(verdict))
        booked_us = sum(segment.ledger.chunk_us for segment in self.segments)
        self.totals.routing_us += max(0.0, (time.perf_counter() - began) * 1e6 - booked_us)
        return verdict

    def _settle(self, errors: HeldErrors, batch: Batch, alive: Rows) -> BoolArray:
        kept = errors.settle(batch, alive, self.options.on_error)
        self.totals.at_fault += errors.at_fault
        for operator, dropped, failed in errors.judged_again:
            place = next(i for i, own in enumerate(self.operators) if own is operator)
            self.totals.passed[place] -= dropped
            self.totals.failed[place] += failed
        return _to_verdict(batch.rows, kept)

    def _size_of_next_chunk(self, rows: int) -> int:
        """Small while nothing is known or rows are expensive, so that an order comes early."""
        busy_us = sum(segment.ledger.booked_us for segment in self.segments)
        rows_max = self.options.chunk_rows
        steady = (self._rows - self._rows_at_decision) // STEADY_SHARE
        rows_max = min(max(steady, rows_max), STEADY_FACTOR * rows_max)
        if self._rows_at_drift is not None:
            since_drift = (self._rows - self._rows_at_drift) // DRIFT_SHARE
            rows_max = min(rows_max, max(since_drift, CHUNK_ROWS_AFTER_DRIFT))
        affordable = CHUNK_US * rows / busy_us if busy_us else rows_max
        wanted = min(2 * self._rows_next, int(affordable), rows_max)
        return max(wanted, min(CHUNK_ROWS_MIN, 2 * self._rows_next, self.options.chunk_rows))

    def _write(self, event: Event) -> None:
        if event.changes_routes or isinstance(event, TrialEnded):
            self._rows_at_decision = self._rows
        if isinstance(event, DriftDetected):
            self._rows_at_drift = self._rows
        self.journal.write(Record(event, self._rows, self._process))


def _to_verdict(rows: int, alive: Rows | None) -> BoolArray:
    if alive is None:
        return np.ones(rows, dtype=bool)
    verdict = np.zeros(rows, dtype=bool)
    verdict[alive] = True
    return verdict
