"""The router: rows in, verdicts out, learning on the way."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, Rows
from eddyline.errors import EddylineError
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.segment import Segment
from eddyline.fabric.strategy import RoutingPolicy, make_segment
from eddyline.fabric.totals import Totals
from eddyline.journal import Event, Journal, Record
from eddyline.journal.events import KnowledgeRestored
from eddyline.mesh import Progress
from eddyline.operators import Batch, ColumnReader, Operator
from eddyline.ordering import AsWritten
from eddyline.profile import Budget

OnError = Literal["raise", "drop", "keep"]

CHUNK_ROWS = 4_096
CHUNK_ROWS_MIN = 256
FIRST_CHUNK_ROWS = 64
CHUNK_US = 100_000.0
STEADY_CHUNKS = 8
STEADY_FACTOR = 4
ADVANCE_US = 10_000.0


@dataclass(frozen=True)
class RouterOptions:
    """How a router treats errors and how much it may spend on learning.

    Parameters
    ----------
    on_error
        What becomes of a row on which a predicate raised and which no other drops.
    budget
        Time for profiling, as a share of the time inside predicates. None: unlimited.
    chunk_rows
        Larger batches are cut, so that a change of the rows is noticed within one chunk. Chunks
        are made smaller still, down to 256 rows, where predicates are expensive, and up to four
        times as large while there is nothing to decide for long.
    costs_us
        What each predicate costs, in microseconds a row. None: measured. Given costs make a run
        repeatable to the last decision.
    seed
        For everything random. None: different each time.

    """

    on_error: OnError = "raise"
    budget: float | None = 0.01
    chunk_rows: int = CHUNK_ROWS
    costs_us: tuple[float, ...] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(OnError):
            raise EddylineError(
                f"on_error is {self.on_error!r}; it must be 'raise', 'drop' or 'keep'"
            )
        if self.budget is not None and not 0 <= self.budget < 1:
            raise EddylineError(f"budget is {self.budget}; it must be at least 0 and below 1")
        if self.chunk_rows < 1:
            raise EddylineError(f"chunk_rows is {self.chunk_rows}; it must be at least 1")
        if self.seed is not None and self.seed < 0:
            raise EddylineError(f"seed is {self.seed}; it must not be negative")


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
        Name or example of the policy, or options of a search for classes; every segment gets its
        own copy.
    pinned
        Positions of predicates that must stay where they are written.
    attributes
        Columns that may tell classes of rows apart: names, and positions in the batches to come.
    options
        See `RouterOptions`.
    where
        Which process this is, for the journal.

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
        where: str = "",
        attributes: Mapping[str, int] | None = None,
    ) -> None:
        self.operators = list(operators)
        self.readers = list(readers)
        self.options = options or RouterOptions()
        self.totals = Totals(len(self.operators))
        self.journal = Journal()
        self._where = where
        self._rows = 0
        self._rows_at_decision = 0
        self._rows_next = min(FIRST_CHUNK_ROWS, self.options.chunk_rows)
        self.segments = self._make_segments(policy, set(pinned), attributes or {})

    def route(self, columns: Sequence[pa.Array], rows: int) -> BoolArray:
        """Return a verdict for each row: True keeps it."""
        if rows <= self._rows_next or len(self.operators) == 1:
            return self._route_chunk(Batch(columns, self.readers, rows))
        verdicts = []
        start = 0
        while start < rows:
            length = min(self._rows_next, rows - start)
            chunk = [column.slice(start, length) for column in columns]
            verdicts.append(self._route_chunk(Batch(chunk, self.readers, length)))
            start += length
        return np.concatenate(verdicts)

    @property
    def next_chunk_rows(self) -> int:
        """How many rows of a larger batch will be judged at once."""
        return self._rows_next

    def order(self) -> list[str]:
        """Return the order in use, as names of predicates."""
        return [name for s in self.segments for name in s.array.names(s.order)]

    def close(self) -> None:
        """End what a task has opened; the router itself can go on."""
        for operator in self.operators:
            operator.close()

    # --- what was learnt, to hand on ---------------------------------------------------------

    def knowledge(self) -> list[dict[str, Any]]:
        """Return what each segment has learnt, as plain values."""
        return [segment.knowledge() for segment in self.segments]

    def resume(self, knowledge: Sequence[dict[str, Any]]) -> None:
        """Start from what another router of the same predicates has learnt."""
        for segment, known in zip(self.segments, knowledge, strict=True):
            segment.resume(known)
        self._rows_next = self.options.chunk_rows
        self._write(KnowledgeRestored(order=tuple(self.order())))

    def train(
        self, columns: Sequence[pa.Array], rows: int, progress: Progress | None = None
    ) -> None:
        """Learn from rows that every predicate may judge, without a verdict on them."""
        batch = Batch(columns, self.readers, rows)
        for segment in self.segments:
            segment.train(batch, self.totals, progress)

    # --- inside ------------------------------------------------------------------------------

    def _make_segments(
        self, policy: RoutingPolicy, pinned: set[int], attributes: Mapping[str, int]
    ) -> list[Segment]:
        runs: list[list[int]] = []
        for index in range(len(self.operators)):
            if index in pinned or not runs or runs[-1][-1] in pinned:
                runs.append([index])
            else:
                runs[-1].append(index)
        seeds = np.random.SeedSequence(self.options.seed).generate_state(2 * len(runs) or 1)
        costs_us = self.options.costs_us
        return [
            make_segment(
                AsWritten() if run[0] in pinned else policy,
                [self.operators[index] for index in run],
                run[0],
                Budget(self.options.budget, ADVANCE_US),
                self._write,
                (int(seeds[2 * number]), int(seeds[2 * number + 1])),
                costs_us and [costs_us[index] for index in run],
                attributes,
            )
            for number, run in enumerate(runs)
        ]

    def _route_chunk(self, batch: Batch) -> BoolArray:
        began = time.perf_counter()
        errors = HeldErrors()
        if len(self.operators) == 1:
            verdict = self.segments[0].judge_alone(batch, errors, self.totals)
            if errors:
                verdict = self._settle(errors, batch, np.flatnonzero(verdict))
        else:
            alive: Rows | None = None
            for segment in self.segments:
                alive = segment.run(batch, alive, errors, self.totals)
            if errors:
                survivors = np.arange(batch.rows) if alive is None else alive
                verdict = self._settle(errors, batch, survivors)
            else:
                verdict = _to_verdict(batch.rows, alive)
            self._rows_next = self._size_of_next_chunk(batch.rows)
        self._rows += batch.rows
        self.totals.rows += batch.rows
        self.totals.kept += int(np.count_nonzero(verdict))
        booked_us = sum(s.busy_us + s.profiling_us + s.deciding_us for s in self.segments)
        self.totals.routing_us += max(0.0, (time.perf_counter() - began) * 1e6 - booked_us)
        return verdict

    def _settle(self, errors: HeldErrors, batch: Batch, alive: Rows) -> BoolArray:
        return _to_verdict(batch.rows, errors.settle(batch, alive, self.options.on_error))

    def _size_of_next_chunk(self, rows: int) -> int:
        """Small while nothing is known or rows are expensive, so that an order comes early."""
        busy_us = sum(segment.booked_us for segment in self.segments)
        rows_max = self.options.chunk_rows
        if self._rows - self._rows_at_decision >= STEADY_CHUNKS * rows_max:
            rows_max *= STEADY_FACTOR
        affordable = CHUNK_US * rows / busy_us if busy_us else rows_max
        wanted = min(2 * self._rows_next, int(affordable), rows_max)
        return max(wanted, min(CHUNK_ROWS_MIN, 2 * self._rows_next, self.options.chunk_rows))

    def _write(self, event: Event) -> None:
        if event.changes_routes:
            self._rows_at_decision = self._rows
        self.journal.write(Record(event, self._rows, self._where))


def _to_verdict(rows: int, alive: Rows | None) -> BoolArray:
    if alive is None:
        return np.ones(rows, dtype=bool)
    verdict = np.zeros(rows, dtype=bool)
    verdict[alive] = True
    return verdict
