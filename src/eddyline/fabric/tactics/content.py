"""Content-based routing: each row visits next the operator that drops most rows like it.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eddyline.arrays import BoolArray, IntArray, Rows
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions
from eddyline.fabric.knowledge import ContentKnowledge, Knowledge
from eddyline.fabric.ledger import ChunkOutcome
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.profiler import Profile, ProfileDemand
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.tactics.content_counts import ContentCounts
from eddyline.fabric.tactics.content_detours import DetourRate
from eddyline.fabric.tactics.content_routes import PartitionedAttributes, group_by_route
from eddyline.fabric.tactics.tactic import Ruster, SegmentContext
from eddyline.fabric.trials import AFTER, BEFORE, AlternatingTrial
from eddyline.mesh import Progress
from eddyline.operators import Batch

REGULAR, PROFILED = 0, 1


class ContentTactic:
    """Runs Content-Learns over chunks of rows.

    The first rows are evaluated by all operators; then all operators are counted for a while
    (warm-up); then one operator at a time is profiled, and a classifier attribute that its profile
    suggests stays in use only if rows then cost at most 1.005 times as much (the benefit check, an
    alternating trial).

    Parameters
    ----------
    context
        Shared with the driver of the segment.
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    options
        Parameters of Content-Learns.

    Examples
    --------
    Each predicate drops one sort of rows, so the sort classifies rows for both:

    >>> import pyarrow as pa
    >>> from eddyline.fabric import Router
    >>> from eddyline.operators import ColumnReader, RowPredicate
    >>> own = [RowPredicate(n, (0,), lambda sort, n=n: sort != n) for n in ("even", "odd")]
    >>> router = Router(own, [ColumnReader("sort")], "content", attributes={"sort": 0})
    >>> router.train([pa.array(["even", "odd"] * 500)], rows=1_000)
    >>> router.snapshot()[0].pairs
    {'even': 'sort', 'odd': 'sort'}

    """

    learns = True

    def __init__(
        self, context: SegmentContext, attributes: Mapping[str, int], options: ContentOptions
    ) -> None:
        self.content = ContentLearns(len(context.array), len(attributes), options)
        #: The order of rows about which no attribute says anything.
        self.order = tuple(range(len(context.array)))
        #: Rows of a chunk take several orders.
        self.common_order: tuple[int, ...] = ()
        self._context = context
        self._array = context.array
        self._options = options
        self._attributes = PartitionedAttributes(attributes, options.partitions)
        self._counts = ContentCounts(self.content, self._attributes, context, options)
        self._trial = self._new_trial()
        self._is_trying = False
        self._detours = DetourRate(options)
        # Of the rows partitioned last: partitions by attribute, and where each row is in them.
        self._partitions: IntArray = np.zeros((len(attributes), 0), dtype=np.int64)
        self._places: IntArray = np.zeros(0, dtype=np.int64)
        self._regular_traces: list[RouteTrace] = []

    # --- rows --------------------------------------------------------------------------------

    def assign(self, batch: Batch, rows: Rows | None) -> Iterator[Ruster]:
        """Yield the rows to profile, then a ruster for each route that partitions call for."""
        rows = np.arange(batch.rows) if rows is None else rows
        self._counts.prepare(batch, rows)
        self._regular_traces = []
        is_warming_up = self._counts.is_warming_up
        if not is_warming_up:
            is_profiled = self._pick_profiled(len(rows))
            if is_profiled.any():
                operator = self.content.profiled
                rest = tuple(number for number in self.order if number != operator)
                yield Ruster(RToken((operator, *rest)), rows[is_profiled], PROFILED)
            rows = rows[~is_profiled]
        if len(rows):
            self.order = self._default_order()
            self._partition(batch, rows, self.content.attributes_in_use())
            cost_us = self._array.cost_us()
            for route, own in group_by_route(self.content, self._partitions, cost_us, self.order):
                yield Ruster(RToken(route), rows[own], REGULAR)
        if is_warming_up:
            self._counts.warm_up(batch, self._regular_traces, len(rows))
            self._regular_traces = []
        elif self._options.counts_all_rows and not self._is_trying:
            self._counts.add_usual_visits(batch, self._regular_traces, self.content.profiled)

    def observe(self, batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
        """Update running selectivities with what a ruster showed."""
        if ruster.label == PROFILED:
            assert ruster.rows is not None
            self._partition(batch, ruster.rows, self._counts.candidates())
            self.content.sample(self._partitions, trace.visits[0].answers)
            self._detours.add(trace)
        else:
            self._regular_traces.append(trace)
        for visit in trace.visits:
            attribute = int(self.content.classifier[visit.operator])
            of_rows = None
            if attribute != NO_ATTRIBUTE and visit.asked is not None:
                of_rows = self._partitions[attribute][self._places[visit.asked]]
            self.content.observe(visit.operator, visit.answers, of_rows)

    def _partition(self, batch: Batch, rows: Rows, attributes: Sequence[int]) -> None:
        """Partition rows by some attributes, for routing them and for observing the result."""
        self._partitions = self._attributes.partition(batch, rows, attributes)
        self._places = np.zeros(batch.rows, dtype=np.int64)
        self._places[rows] = np.arange(len(rows))

    def _default_order(self) -> tuple[int, ...]:
        rank = (1.0 - self.content.overall) / self._array.cost_us()
        return tuple(np.argsort(-rank, kind="stable").tolist())

    def _pick_profiled(self, rows: int) -> BoolArray:
        if self._is_trying or not self._counts.candidates():
            return np.zeros(rows, dtype=bool)
        return self._context.rng.random(rows) < self._detours.probability

    # --- learning ----------------------------------------------------------------------------

    def watch(self, outcome: ChunkOutcome) -> None:
        """Do nothing: running selectivities follow the rows by themselves."""

    def profile_demand(self) -> ProfileDemand | None:
        """Ask for nothing: profiled rows are routed to the profiled operator first."""
        return None

    def learn(self, batch: Batch, outcome: ChunkOutcome, profile: Profile) -> None:
        """Conclude the operator's profile, check the benefit of its attribute, go to the next."""
        if self._counts.is_warming_up:
            return
        side = AFTER if self._is_trying else BEFORE
        for trace in self._regular_traces:
            self._trial.add(side, trace.entered_count, trace.seen)
        if not self._counts.candidates():
            return
        operator = self.content.profiled
        if self._is_trying:
            if self._trial.is_over:
                self._end_trial(operator)
        elif self.content.is_sampled:
            before = int(self.content.classifier[operator])
            chosen = self.content.conclude()
            if chosen in (NO_ATTRIBUTE, before):
                self._profile_next()
            else:
                self._is_trying = True

    def _end_trial(self, operator: int) -> None:
        """Keep the attribute only if rows cost no more with it than without."""
        attribute = int(self.content.classifier[operator])
        name = self._array.operators[operator].name
        self._trial.names = ((name,), (f"{name} by {self._attributes.names[attribute]}",))
        cost_us = self._array.cost_us()
        verdict = self._trial.verdict(cost_us)
        gain_ratio = round(float(self.content.gain_ratios[operator, attribute]), 4)
        self._context.write(self._trial.ended(verdict, cost_us, gain_ratio))
        if verdict == "reverted":
            self.content.stop_using(operator)
        self._profile_next()

    def _profile_next(self) -> None:
        cost_us = self._array.cost_us()
        if self._trial.rows[BEFORE]:
            self._detours.adjust(self._trial.row_costs_us(cost_us)[BEFORE], cost_us)
        self._is_trying = False
        self._trial = self._new_trial()
        self._detours.reset()
        operator = self.content.next_operator(cost_us)
        # After a round, attributes that seemed useless in some rows are screened again.
        self._counts.is_screened = operator > self.content.profiled
        self.content.begin(operator)

    def _new_trial(self) -> AlternatingTrial:
        return AlternatingTrial((), (), len(self._array))

    # --- knowledge ---------------------------------------------------------------------------

    def train(self, batch: Batch, drops: BoolArray, progress: Progress | None) -> None:
        """Start with the classifier attributes that these rows call for."""
        self._counts.train(batch, drops)

    def snapshot(self) -> ContentKnowledge:
        """Return the matrices that routing needs, and costs."""
        classifier = self.content.classifier.tolist()
        return ContentKnowledge(
            self.order,
            self._context.known_costs_us(),
            tuple(self._attributes.name(attribute) for attribute in classifier),
            tuple(map(tuple, self.content.detailed.round(4).tolist())),
            tuple(self.content.overall.round(4).tolist()),
            dict(self._counts.rejected),
            self._counts.pairs(),
        )

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what a tactic for the same predicates has learnt."""
        self._context.restore_costs(knowledge.cost_us)
        if not isinstance(knowledge, ContentKnowledge):
            return  # learnt where there was no column to classify by
        places = {name: number for number, name in enumerate(self._attributes.names)}
        for operator, name in enumerate(knowledge.classifier):
            attribute = NO_ATTRIBUTE if name is None else places.get(name, NO_ATTRIBUTE)
            self.content.classifier[operator] = attribute
        self.content.detailed[:] = knowledge.detailed
        self.content.overall[:] = knowledge.overall
        self._counts.skip_start()
