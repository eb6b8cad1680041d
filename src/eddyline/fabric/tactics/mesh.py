"""Classes of rows, each with a route of its own, where they pay; one order where they do not.

The single order keeps learning in the background. It is the default route of rows that belong to no
class, what a mesh is compared with, and what is left when classes no longer pay.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 5.1 to 5.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, Rows
from eddyline.fabric.knowledge import Knowledge, MeshKnowledge
from eddyline.fabric.ledger import ChunkOutcome
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.profiler import Profile, ProfileDemand
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.tactics.class_search import ClassSearch
from eddyline.fabric.tactics.classes import (
    UNCLASSIFIED,
    UNKNOWN_VALUES,
    ClassesInUse,
    route_words_of,
)
from eddyline.fabric.tactics.search_schedule import SearchSchedule
from eddyline.fabric.tactics.single_order import SingleOrder
from eddyline.fabric.tactics.tactic import Ruster, SegmentContext
from eddyline.fabric.trials import SplitTrial
from eddyline.journal.events import (
    ClassesConfirmed,
    ClassesDoubted,
    ClassesDropped,
    ClassesFound,
    ClassSearchFailed,
    NoClassesFound,
    Verdict,
)
from eddyline.mesh import Mesh, MeshOptions, Progress
from eddyline.operators import Batch
from eddyline.ordering import Policy

SEARCH_SECONDS_MAX = 0.25  # while rows are waiting
SPARE_ROWS = 64


class MeshTactic:
    """Sends rows along the route of their class, and watches whether that keeps its promise.

    Parameters
    ----------
    context
        Shared with the driver of the segment.
    policy
        Orders the default route; already started.
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    options
        Of the search for a mesh.
    seed
        Of searches and of uncertain routes.

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
    >>> print(*router.segments[0].tactic.mesh.words(["p", "q"]), sep="\\n")
    kind = a -> p, q
    kind != a -> q, p

    """

    learns = True

    def __init__(
        self,
        context: SegmentContext,
        policy: Policy,
        attributes: Mapping[str, int],
        options: MeshOptions,
        seed: int,
    ) -> None:
        self.default = SingleOrder(context, policy)
        self.class_search = ClassSearch(attributes, options, seed)
        self._context = context
        self._array = context.array
        self._options = options
        self._seed = seed
        self.classes = self._classes_of(None)
        self._trial: SplitTrial | None = None
        self._tried = self.classes
        self._schedule = SearchSchedule(context)
        self._is_promise_broken = False
        self._default_trace: RouteTrace | None = None
        self._took_single_order = True

    @property
    def mesh(self) -> Mesh | None:
        """The mesh in use; None while all rows take one order."""
        return self.classes.mesh

    @property
    def order(self) -> tuple[int, ...]:
        """The order of rows that belong to no class."""
        return self.default.order

    @property
    def common_order(self) -> tuple[int, ...]:
        """The order that all rows of the last chunk took; empty if they took several."""
        return self.default.common_order if self._took_single_order else ()

    @property
    def _is_single_order(self) -> bool:
        return self._trial is None and self.mesh is None

    # --- rows --------------------------------------------------------------------------------

    def assign(self, batch: Batch, rows: Rows | None) -> Iterator[Ruster]:
        """Classify the rows and yield a ruster for each class; in a trial, for both sides."""
        self._default_trace = None
        self._took_single_order = self._is_single_order
        self.classes.begin_chunk()
        if self._took_single_order:
            yield from self.default.assign(batch, rows)
        elif self._trial is None:
            yield from self._assign_classes(self.classes, batch, rows, side=0)
        else:
            all_rows = np.arange(batch.rows) if rows is None else rows
            dealt = self._trial.deal(all_rows, self._context.rng)
            for side, classes in enumerate((self.classes, self._tried)):
                yield from self._assign_classes(classes, batch, dealt[side], side)

    def _assign_classes(
        self, classes: ClassesInUse, batch: Batch, rows: Rows | None, side: int
    ) -> Iterator[Ruster]:
        try:
            groups = classes.group(batch, rows)
        except (pa.ArrowException, KeyError, OverflowError) as error:
            # The columns are not those that the classes were found with.
            self._context.write(ClassesDropped(reason=f"{type(error).__name__}: {error}"))
            self._end_trial("interrupted")
            self._adopt(None)
            groups, side = [(UNCLASSIFIED, rows)], 0
        for label, own in groups:
            default = RToken(self.default.order) if label == UNCLASSIFIED else None
            yield Ruster(default or classes.token(label), own, label, side)

    def observe(self, batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
        """Count the rows of a class, and of a side of the trial."""
        if ruster.side == 0:
            label = UNCLASSIFIED if self.mesh is None else ruster.label
            self.classes.count(label, trace)
            self._default_trace = trace if self._trial is not None else None
        else:
            self.classes.count_others(trace)
        if self._trial is not None:
            self._trial.add(ruster.side, trace.entered_count, trace.seen)

    # --- learning ----------------------------------------------------------------------------

    def watch(self, outcome: ChunkOutcome) -> None:
        """Look for drift along the default route, where whole kinds of rows take it."""
        self._schedule.add_useful(self._context.ledger.booked_us)
        # In a trial of the first classes: of the side that does not try them.
        counts = outcome if self._took_single_order else self._default_trace
        if self.mesh is not None or counts is None:
            return
        if self.default.detect_drift(counts.seen, counts.passed):
            self._discard_rows()

    def profile_demand(self) -> ProfileDemand | None:
        """Ask for what the default route needs; for more while a search is short of rows."""
        demand = self.default.profile_demand()
        if demand is None:
            return None
        spare_rows = SPARE_ROWS if self.class_search.is_short_of_rows else 0
        return replace(demand, spare_rows=spare_rows)

    def learn(self, batch: Batch, outcome: ChunkOutcome, profile: Profile) -> None:
        """Improve the default route, end trials, watch the classes, search for new ones."""
        self.class_search.add(batch, profile.rows, profile.drops)
        self.default.learn_order(outcome, profile, is_for_all=self._is_single_order)
        if self._trial is not None and self._trial.is_over:
            self._decide(self._trial)
        drift = None
        if self.mesh is not None and not self._is_promise_broken:
            drift = self.classes.broken_promise(self._array)
        if drift is not None:
            if drift.row_class == UNKNOWN_VALUES:
                self._context.write(drift)
            else:
                self.default.forget(drift)
                self._discard_rows()
            self._schedule.note_drift()
            # Else the mesh stays in use until something better has won its trial.
            self._is_promise_broken = True
            if reason := self.classes.why_one_order_is_better(self._array):
                self._context.write(ClassesDropped(reason=reason))
                self._adopt(None)
                self._schedule.note_dropped()
        if self._trial is None and self._schedule.allows(self.class_search):
            self._search(SEARCH_SECONDS_MAX)

    def _discard_rows(self) -> None:
        """Discard the rows collected so far: a mix of old and new rows is not a class."""
        self.class_search.clear()
        self._end_trial("interrupted")

    def _search(self, seconds_max: float | None, progress: Progress | None = None) -> None:
        """Search the profiled rows for classes; put the result on trial."""
        self._schedule.begin()
        try:
            training = self.class_search.training_set(self._array.cost_us())
            result = self.class_search.search(training, seconds_max, self.mesh, progress)
        except (pa.ArrowException, OverflowError, ValueError) as error:
            # Rows that cannot be learnt from must not stop the query.
            self._context.write(ClassSearchFailed(reason=f"{type(error).__name__}: {error}"))
            self.class_search.clear()
            self._is_promise_broken = False
            return
        self._schedule.end()
        rejected = dict(self.class_search.rejected)
        numbers: dict[str, Any] = {"rows": training.rows, **result.numbers(), "rejected": rejected}
        if result.mesh is not None and self.mesh is not None and result.mesh.is_like(self.mesh):
            self._context.write(ClassesConfirmed(**numbers))
            if self._is_promise_broken:  # the same routes, but rows cost something else now
                self._adopt(result.mesh)
        elif result.mesh is not None:
            classes = route_words_of(result.mesh, self._array, self.order)
            self._context.write(ClassesFound(classes=classes, **numbers))
            self._start_trial(result.mesh)
        elif self.mesh is not None:
            self._context.write(ClassesDoubted(**numbers))
            self._start_trial(None)
        else:
            self._context.write(NoClassesFound(**numbers))

    # --- trials ------------------------------------------------------------------------------

    def _start_trial(self, mesh: Mesh | None) -> None:
        before = route_words_of(self.mesh, self._array, self.order)
        after = route_words_of(mesh, self._array, self.order)
        self._trial = SplitTrial(before, after, len(self._array), (self.mesh, mesh))
        self._tried = self._classes_of(mesh)

    def _decide(self, trial: SplitTrial) -> None:
        """Keep the better of two ways to route."""
        verdict, tried = trial.verdict(self._array.cost_us()), self._tried.mesh
        self._end_trial(verdict)
        self._schedule.note_trial(verdict == "kept")
        if verdict == "kept":
            self._adopt(tried)

    def _end_trial(self, verdict: Verdict) -> None:
        if self._trial is not None:
            self._context.write(self._trial.ended(verdict, self._array.cost_us()))
        self._trial, self._tried = None, self.classes
        self._is_promise_broken = False

    def _adopt(self, mesh: Mesh | None) -> None:
        """Route by a mesh from now on, or by one order."""
        self.default.end_trial("interrupted")
        self.classes = self._tried = self._classes_of(mesh)
        self._is_promise_broken = False
        self.default.reset_drift()

    def _classes_of(self, mesh: Mesh | None) -> ClassesInUse:
        attributes = self.class_search.attributes
        return ClassesInUse(mesh, attributes, len(self._array), self._seed, self._options)

    # --- knowledge ---------------------------------------------------------------------------

    def train(self, batch: Batch, drops: BoolArray, progress: Progress | None) -> None:
        """Start with the mesh that is best for these rows, if classes pay."""
        self.default.train(batch, drops, progress)
        self.class_search.add(batch, np.arange(batch.rows), drops)
        self._search(None, progress)
        if self._trial is not None:  # trusted without a trial: its rows are the training set
            tried = self._tried.mesh
            self._trial, self._tried = None, self.classes
            self._adopt(tried)

    def snapshot(self) -> MeshKnowledge:
        """Return the mesh, what its classes cost, and what is known of the default route."""
        return MeshKnowledge(
            self.default.snapshot(),
            self.mesh,
            tuple(self.classes.rows.tolist()),
            tuple(map(tuple, self.classes.seen.tolist())),
            dict(self.class_search.rejected),
            self.class_search.searches,
            self.class_search.searched_rows,
        )

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what a tactic for the same predicates has learnt."""
        self.default.restore(knowledge)
        if not isinstance(knowledge, MeshKnowledge):
            return
        self.class_search.restore(knowledge.searches, knowledge.searched_rows)
        self.class_search.rejected.update(knowledge.rejected)
        if knowledge.mesh and set(knowledge.attributes) <= set(self.class_search.attributes):
            self._adopt(knowledge.mesh)
            self.class_search.postpone()
            # Each class has a detector of its own, so no burst is needed for the first rows.
            self._context.profiler.start_warm()
