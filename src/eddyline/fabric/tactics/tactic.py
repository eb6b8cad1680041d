"""The interface between the driver of a segment and the tactic that routes its rows.

The driver (`Segment`) owns booking, budget, profiling and errors. A tactic only assigns rows to
routes and observes what became of them. For each chunk the driver calls, in this order: `assign`,
`observe` for each ruster, then, if the tactic learns, `watch`, `profile_demand` and `learn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from eddyline.arrays import BoolArray, Rows
from eddyline.fabric.baseline import BaselineEstimate
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.ledger import ChunkOutcome, Ledger
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.fabric.profiler import Profile, ProfileDemand, Profiler
from eddyline.fabric.rtoken import RToken
from eddyline.journal import Event
from eddyline.mesh import Progress
from eddyline.operators import Batch

RESTORED_ROWS = 4_096  # weight of a restored cost beside measured ones


class Ruster(NamedTuple):
    """Rows that share a route.

    Parameters
    ----------
    token
        The route.
    rows
        The rows; None for all rows of the batch.
    label
        Which class or kind of rows this is; its meaning is the tactic's own.
    side
        Which side of a split trial the rows are on.

    """

    token: RToken
    rows: Rows | None
    label: int = 0
    side: int = 0


@dataclass(frozen=True)
class SegmentContext:
    """What the driver of a segment shares with its tactic.

    Parameters
    ----------
    array
        The operators and their costs.
    ledger
        Books time, and has the budget.
    profiler
        Can be asked for a burst of profiles.
    baseline
        Estimates the cost of the written order; to be told when the rows have changed.
    rng
        For everything random.
    write
        Called with each decision.

    """

    array: OperatorArray
    ledger: Ledger
    profiler: Profiler
    baseline: BaselineEstimate
    rng: np.random.Generator
    write: Callable[[Event], None]

    def known_costs_us(self) -> tuple[float | None, ...]:
        """Return the measured costs, to hand on; None where nothing was measured."""
        measured = self.array.costs.per_row_us()
        return tuple(None if us is None else round(us, 4) for us in measured)

    def restore_costs(self, cost_us: tuple[float | None, ...]) -> None:
        """Start from costs that another router has measured."""
        for number, us in enumerate(cost_us):
            if us is not None:
                self.array.costs.add(number, RESTORED_ROWS, us * RESTORED_ROWS)


class Tactic(Protocol):
    """Assigns rows to routes and observes what became of them."""

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn."""

    @property
    def order(self) -> tuple[int, ...]:
        """The order of rows without a route of their own."""

    @property
    def common_order(self) -> tuple[int, ...]:
        """The order that all rows of the last chunk took; empty if they took several."""

    def assign(self, batch: Batch, rows: Rows | None) -> Iterator[Ruster]:
        """Yield rusters; the next one may depend on what became of the one before."""

    def observe(self, batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
        """Take note of what became of a ruster, before the next one is assigned."""

    def watch(self, outcome: ChunkOutcome) -> None:
        """Look for drift in the counts of a chunk, before rows of it are profiled."""

    def profile_demand(self) -> ProfileDemand | None:
        """Return what to profile in this chunk; None for nothing."""

    def learn(self, batch: Batch, outcome: ChunkOutcome, profile: Profile) -> None:
        """Decide about the routes of the chunks to come."""

    def train(self, batch: Batch, drops: BoolArray, progress: Progress | None) -> None:
        """Learn from rows for which the answer of every predicate is known."""

    def snapshot(self) -> Knowledge:
        """Return what was learnt."""

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what a tactic for the same predicates has learnt."""
