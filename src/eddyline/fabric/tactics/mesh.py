"""Classes of rows, each with a route of its own, where they pay; one adaptive order where not.

The one order goes on learning in the background: it is the default route of rows of no known class,
what a mesh is compared with, and what is left when classes stop paying.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 5.1 to 5.4.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.operator_array import Trail
from eddyline.fabric.rtoken import RToken, Wheel
from eddyline.fabric.segment import Write
from eddyline.fabric.tactics.class_finder import ClassFinder
from eddyline.fabric.tactics.single_order import OneOrder
from eddyline.fabric.totals import Totals
from eddyline.fabric.trials.split import SideBySide
from eddyline.journal.events import (
    ClassesDoubted,
    ClassesDropped,
    ClassesFound,
    ClassSearchFailed,
    DefaultRouteChanged,
    DriftDetected,
    NoClassesFound,
    TrialEnded,
)
from eddyline.mesh import Mesh, MeshOptions, Progress
from eddyline.operators import Batch, Operator
from eddyline.ordering import Change, Evidence, Policy
from eddyline.profile import Budget
from eddyline.profile.drift.cusum import BrokenPromise

RUSTER_ROWS_MIN = 100
LOOK_US = 20_000.0  # what a look takes, until one was timed
LOOK_ROWS_A_BATCH = 64
CHEAP_LOOK_US = 10_000.0
SEARCH_SECONDS = 0.25  # while rows are waiting
DEFAULT = -1
UNKNOWN_SHARE_MAX = 0.1


class ByMesh(OneOrder):
    """Sends rows along their class's route, and watches whether that keeps its promise.

    Parameters
    ----------
    operators, first, policy, budget, write, seed, costs_us
        As for `OneOrder`.
    attributes
        Columns that may tell classes apart: their names, and where they stand in a batch.
    options
        Of the search for a mesh.

    Examples
    --------
    Rows of one kind are dropped by the first predicate, rows of the other by the second:

    >>> from eddyline.fabric import Router, RouterOptions
    >>> from eddyline.operators import ArrowPredicate, ColumnReader
    >>> columns = [
    ...     pa.array([False, True] * 500),
    ...     pa.array([True, False] * 500),
    ...     pa.array(["a", "b"] * 500)]
    >>> router = Router(
    ...     [ArrowPredicate("p", (0,), lambda answer: answer),
    ...      ArrowPredicate("q", (1,), lambda answer: answer)],
    ...     [ColumnReader("p"), ColumnReader("q"), ColumnReader("kind")],
    ...     "mesh",
    ...     options=RouterOptions(costs_us=(10.0, 10.0), seed=0),
    ...     attributes={"kind": 2})
    >>> router.train(columns, rows=1_000)
    >>> print(*router.segments[0].mesh.words(["p", "q"]), sep="\\n")
    kind = a -> p, q
    kind != a -> q, p

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        first: int,
        policy: Policy,
        budget: Budget,
        write: Write,
        seed: int,
        costs_us: Sequence[float] | None,
        attributes: Mapping[str, int],
        options: MeshOptions,
    ) -> None:
        super().__init__(operators, first, policy, budget, write, seed, costs_us)
        self.mesh: Mesh | None = None
        self.finder = ClassFinder(attributes, options, seed)
        #: Rows and evaluations of each class of the mesh in use; the default route is the last.
        self.class_rows: IntArray = np.zeros(1, dtype=np.int64)
        self.class_seen: IntArray = np.zeros((1, len(operators)), dtype=np.int64)
        self._wheels: dict[tuple[int, int], Wheel] = {}
        self._promises: list[BrokenPromise] = []
        self._visits: list[FloatArray] = []
        self._unknown = BrokenPromise()
        self._swap: SideBySide | None = None
        self._refusals = 0
        self._barred_until_rows = 0
        self._look_us = LOOK_US
        self._useful_since_look_us = 0.0
        self._is_refreshing = False
        self._labels: list[int] = []
        self._unknown_rows = 0
        self._seed = seed

    def knowledge(self) -> dict[str, Any]:
        """Return what one order needs, the mesh, and what its classes have cost."""
        return {
            **super().knowledge(),
            "mesh": None if self.mesh is None else self.mesh.to_dict(),
            "class_rows": self.class_rows.tolist(),
            "class_seen": self.class_seen.tolist(),
            "rejected": self.finder.rejected,
            "looked": self.finder.looked,
        }

    def resume(self, known: dict[str, Any]) -> None:
        """Start from what another segment of the same predicates has learnt."""
        super().resume(known)
        self.finder.resume(*known.get("looked", (0, 0)))
        self.finder.rejected.update(known.get("rejected", {}))
        if known.get("mesh"):
            mesh = Mesh.from_dict(known["mesh"])
            if all(name in self.finder.attributes for name in mesh.tree.attributes):
                self._adopt(mesh)
                self.finder.defer()
                self._begin_warm()  # each class will tell when its rows have changed

    def train(self, batch: Batch, totals: Totals, progress: Progress | None = None) -> None:
        """Begin with the mesh that is best for these rows, if classes pay."""
        rows = np.arange(batch.rows)
        drops = self._drops_of_all(batch, rows, totals)
        self._learn_from(drops)
        self.finder.add(batch, rows, drops)
        self._look(totals, None, progress)
        if self._swap is not None:
            self._adopt(self._swap.after)
            self._swap = None

    # --- routing ----------------------------------------------------------------------------

    def _travel(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> list[Trail]:
        self._labels = []
        self._unknown_rows = 0
        self._is_one_order = self._swap is None and self.mesh is None
        if self._swap is None:
            return self._send(self.mesh, batch, alive, errors, totals)
        rows = np.arange(batch.rows) if alive is None else alive
        swap, trails = self._swap, []
        sides = zip((swap.before, swap.after), swap.deal(rows, self._rng), strict=True)
        for side, (mesh, own) in enumerate(sides):
            sent = self._send(mesh, batch, own, errors, totals)
            swap.add(side, sent)
            trails += sent
        return trails

    def _send(
        self,
        mesh: Mesh | None,
        batch: Batch,
        alive: Rows | None,
        errors: HeldErrors,
        totals: Totals,
    ) -> list[Trail]:
        """Classify the rows once, and send each ruster along its class's route."""
        if mesh is None:
            self._labels.append(DEFAULT)
            return [self.array.follow(RToken(self.order), batch, alive, errors, totals)]
        try:
            rusters = self._rusters(mesh, batch, alive)
        except (pa.ArrowException, KeyError, OverflowError) as error:
            return self._without_classes(error, batch, alive, errors, totals)
        trails = []
        for label, rows in rusters:
            if label == DEFAULT:
                token = RToken(self.order)
            else:
                token = RToken(mesh.classes[label].route, self._wheel(mesh, label))
            self._labels.append(label if mesh is self.mesh else DEFAULT)
            trails.append(self.array.follow(token, batch, rows, errors, totals))
        return trails

    def _without_classes(
        self,
        error: Exception,
        batch: Batch,
        alive: Rows | None,
        errors: HeldErrors,
        totals: Totals,
    ) -> list[Trail]:
        """Go on in one order: the columns are not those that the classes were found with."""
        self._write(ClassesDropped(reason=f"{type(error).__name__}: {error}"))
        self._swap = None
        self._adopt(None)
        self._labels.append(DEFAULT)
        return [self.array.follow(RToken(self.order), batch, alive, errors, totals)]

    def _rusters(
        self, mesh: Mesh, batch: Batch, alive: Rows | None
    ) -> list[tuple[int, Rows | None]]:
        """Group the rows by class; classes with too few rows here take the default route.

        If that leaves few rows for the default route too, they go along with the largest class:
        any route is right for them, and a ruster of their own would cost more than it saves.
        """
        columns = {
            name: batch.arrow(self.finder.attributes[name], alive) for name in mesh.tree.attributes
        }
        labels = mesh.classify(columns)
        rows_min = min(RUSTER_ROWS_MIN, len(labels) // 16)
        unknown, *counts = np.bincount(labels + 1, minlength=len(mesh.classes) + 1).tolist()
        self._unknown_rows += unknown
        large = [label for label, count in enumerate(counts) if count and count >= rows_min]
        rest = len(labels) - sum(counts[label] for label in large)
        if rest:
            is_few = bool(large) and rest < rows_min
            taken_by = np.full(len(counts) + 1, DEFAULT)
            taken_by[[label + 1 for label in large]] = large
            taken_by[taken_by == DEFAULT] = (
                max(large, key=counts.__getitem__) if is_few else DEFAULT
            )
            labels = taken_by[labels + 1]
            large += [] if is_few else [DEFAULT]
        if len(large) == 1:
            return [(large[0], alive)]
        rusters: list[tuple[int, Rows | None]] = []
        for label in large:
            own = (labels == label).nonzero()[0]
            rusters.append((label, own if alive is None else alive[own]))
        return rusters

    def _wheel(self, mesh: Mesh, label: int) -> Wheel | None:
        if all(isinstance(step, int) for step in mesh.classes[label].route):
            return None
        key = (id(mesh), label)
        if key not in self._wheels:
            self._wheels[key] = Wheel(len(self.array), self._seed + label)
        return self._wheels[key]

    # --- learning ---------------------------------------------------------------------------

    def _learn(
        self,
        batch: Batch,
        trails: list[Trail],
        seen: IntArray,
        passed: IntArray,
        totals: Totals,
    ) -> None:
        self._count_classes(trails)
        self._useful_since_look_us += self.booked_us
        super()._learn(batch, trails, seen, passed, totals)
        if self._swap is not None:
            if self._swap.is_over:
                self._decide(self._swap)
        elif self.mesh is not None and not self._is_refreshing:
            self._watch(self.mesh, trails)
        if self._may_look():
            self._look(totals)

    def _may_look(self) -> bool:
        """Say whether there is something new to look at, and time for it."""
        if self._swap is not None or not self.finder.is_due:
            return False
        if self._rows < self._barred_until_rows:
            return False
        if self.finder.looks == 0:
            return True
        if self._is_pressing:
            return self.budget.allows_urgent(self._booked_look_us)
        return self.budget.allows_deferrable(self._booked_look_us, self._useful_since_look_us)

    @property
    def _is_pressing(self) -> bool:
        """Whether to look soon: not if classes keep their promise, or were looked for in vain."""
        return self._is_refreshing or self.finder.is_beginning

    def _collect_kept(self, batch: Batch, rows: Rows) -> None:
        self.finder.add(batch, rows, np.zeros((len(rows), len(self.array)), dtype=bool))

    def _collect_dropped(self, batch: Batch, rows: Rows, drops: BoolArray) -> None:
        self.finder.add(batch, rows, drops)

    def _rows_to_profile(self, entered_count: int) -> int:
        wanted = super()._rows_to_profile(entered_count)
        if wanted or not self.finder.is_short_of_rows:
            return wanted
        look = min(LOOK_ROWS_A_BATCH, entered_count // 8)
        expected_us = float(look * self.array.cost_us().sum())
        may = expected_us < CHEAP_LOOK_US or self.budget.allows_urgent(expected_us)
        return look if look and may else 0

    def _take_up(self, change: Change, evidence: Evidence) -> None:
        if self.mesh is None and self._swap is None:
            super()._take_up(change, evidence)
        else:  # it is only the default route: nothing to try it on
            self._drift.restart()
            before, after = self.array.names(change.before), self.array.names(change.after)
            self._write(DefaultRouteChanged(before=tuple(before), after=tuple(after)))

    def _count_classes(self, trails: list[Trail]) -> None:
        for label, trail in zip(self._labels, trails, strict=True):
            self.class_rows[label] += trail.entered_count
            self.class_seen[label] += trail.seen

    @property
    def _booked_look_us(self) -> float:
        return self.array.booked_us(self._look_us, np.zeros(len(self.array), dtype=np.int64))

    def _look(
        self,
        totals: Totals,
        seconds_max: float | None = SEARCH_SECONDS,
        progress: Progress | None = None,
    ) -> None:
        """Search the profiled rows for classes; put what is found beside what is in use."""
        # One debt of that size, at the start or for nothing, would leave the order unwatched.
        is_paid = self.finder.looks > 0 and self._is_pressing
        self._is_refreshing = False
        self._useful_since_look_us = 0.0
        began = time.perf_counter()
        try:
            training = self.finder.training(self.array.cost_us())
            found = self.finder.look(training, seconds_max, self.mesh, progress)
        except (pa.ArrowException, OverflowError, ValueError) as error:
            # What cannot be learnt from must not stop the query.
            self._write(ClassSearchFailed(reason=f"{type(error).__name__}: {error}"))
            self.finder.forget()
            return
        self._look_us = spent_us = (time.perf_counter() - began) * 1e6
        self.profiling_us += spent_us
        totals.profiling_us += spent_us
        if is_paid:
            self.budget.pay(self._booked_look_us)
        numbers: dict[str, Any] = {
            "rows": training.rows,
            **found.numbers(),
            "rejected": dict(self.finder.rejected),
        }
        if found.mesh is not None:
            self._write(ClassesFound(classes=self._say(found.mesh), **numbers))
            self._swap = SideBySide(self.mesh, found.mesh)
        elif self.mesh is not None:
            self._write(ClassesDoubted(**numbers))
            self._swap = SideBySide(self.mesh, None)
        else:
            self._write(NoClassesFound(**numbers))

    def _decide(self, swap: SideBySide) -> None:
        """Keep the better of two ways to route."""
        self._swap = None
        before_us, after_us = swap.costs_us(self.array.cost_us())
        # What is simpler need not be better.
        is_better = after_us < before_us if swap.after is not None else after_us < 1.02 * before_us
        self._write(
            TrialEnded(
                subject="classes",
                method="split",
                verdict="kept" if is_better else "reverted",
                before=self._say(swap.before),
                after=self._say(swap.after),
                before_us=round(before_us, 4),
                after_us=round(after_us, 4),
                rows=sum(swap.rows),
            )
        )
        if is_better:
            self._refusals = 0
            self._adopt(swap.after)
        else:
            self._refusals += 1
            self._barred_until_rows = self._rows + 16_384 * 2 ** min(self._refusals, 16)

    def _adopt(self, mesh: Mesh | None) -> None:
        self._end_trial("interrupted")
        self.mesh = mesh
        classes = 0 if mesh is None else len(mesh.classes)
        self._promises = [BrokenPromise() for _ in range(classes)]
        self._visits = [np.array(own.visits) for own in mesh.classes] if mesh else []
        self._unknown = BrokenPromise()
        self.class_rows = np.zeros(classes + 1, dtype=np.int64)
        self.class_seen = np.zeros((classes + 1, len(self.array)), dtype=np.int64)
        self._wheels.clear()
        self._drift.restart()

    def _watch(self, mesh: Mesh, trails: list[Trail]) -> None:
        """Compare what each class costs with what the mesh promised."""
        if self._is_mostly_unknown(trails):
            self._refresh(DriftDetected(row_class="rows unlike all that the classes were found in"))
            return
        cost_us = self.array.cost_us()
        for label, trail in zip(self._labels, trails, strict=True):
            if label == DEFAULT:
                continue
            promised_us = float(self._visits[label] @ cost_us)
            promised_us *= trail.entered_count
            measured_us = float(trail.seen @ cost_us)
            if self._promises[label].add(trail.entered_count, measured_us, promised_us):
                self._refresh(
                    DriftDetected(
                        row_class=mesh.words(self.array.names(range(len(self.array))))[
                            [leaf for leaf, _ in mesh.tree.paths()].index(label)
                        ],
                        expected_us=round(promised_us / trail.entered_count, 4),
                        measured_us=round(measured_us / trail.entered_count, 4),
                    )
                )
                return

    def _refresh(self, drift: DriftDetected) -> None:
        """Collect new rows to look for classes in; the mesh in use stays until then."""
        self._notice_drift(drift)
        self._is_refreshing = True

    def _notice_drift(self, drift: DriftDetected) -> None:
        """Forget the old rows, and what was found in them: old and new are no classes."""
        super()._notice_drift(drift)
        self.finder.forget()
        self._swap = None

    def _counts_in_order(
        self, trails: list[Trail], seen: IntArray, passed: IntArray
    ) -> tuple[IntArray, IntArray] | None:
        if self._swap is not None and self._swap.before is None:
            return trails[0].seen, trails[0].passed  # the half that does not try the classes
        return super()._counts_in_order(trails, seen, passed)

    def _is_mostly_unknown(self, trails: list[Trail]) -> bool:
        """Say whether many rows, for some time, have been of no known class."""
        rows = sum(trail.entered_count for trail in trails)
        return self._unknown.add(rows, float(self._unknown_rows), UNKNOWN_SHARE_MAX * rows)

    def _say(self, mesh: Mesh | None) -> tuple[str, ...]:
        if mesh is None:
            return (f"all rows -> {', '.join(self.array.names(self.order))}",)
        return tuple(mesh.words(self.array.names(range(len(self.array)))))
