"""Content-based routing: each row visits next the operator that drops most rows like it.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eddyline.arrays import BoolArray, Rows
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions
from eddyline.fabric.knowledge import ContentKnowledge, Knowledge, PairKnowledge
from eddyline.fabric.ledger import ChunkOutcome
from eddyline.fabric.operator_array import RouteTrace, Visit
from eddyline.fabric.profiler import Profile, ProfileDemand
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.tactics.content_check import BenefitCheck
from eddyline.fabric.tactics.content_counts import ContentCounts
from eddyline.fabric.tactics.content_detours import DetourRate
from eddyline.fabric.tactics.content_routes import (
    BatchPartitions,
    PartitionedAttributes,
    group_by_route,
)
from eddyline.fabric.tactics.tactic import Ruster, SegmentContext
from eddyline.mesh import Progress
from eddyline.operators import Batch

REGULAR, PROFILED = 0, 1
#: Rows that are routed before selectivities are updated: at least so many, and such a part of the
#: rows since they changed.
SLICE_ROWS, SLICE_SHARE = 512, 4
#: Classes of rows that could save no more a row are not searched for: finding partitions, counting
#: and sending smaller rusters takes half of it.
CLASSES_US = 0.4
CHANGED_TIMES = 1.1  # what the order in use must cost more than another for rows to have changed


class ContentTactic:
    """Runs Content-Learns over chunks of rows.

    The first rows are evaluated by all operators; then all operators are counted for a while
    (warm-up); then one operator at a time is profiled. A classifier attribute that counts or a
    profile suggest is put to use only if rows then cost less, the cost of routing by it included
    (the benefit check).

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
    Each predicate drops one sort of rows, so the sort classifies rows for one of them, and the
    other one follows if the first keeps a row:

    >>> import pyarrow as pa
    >>> from eddyline.fabric import Router, RouterOptions
    >>> from eddyline.operators import ColumnReader, RowPredicate
    >>> own = [RowPredicate(n, (0,), lambda sort, n=n: sort != n) for n in ("even", "odd")]
    >>> router = Router(
    ...     own, [ColumnReader("sort")], "content", attributes={"sort": 0},
    ...     options=RouterOptions(costs_us=(5.0, 5.0), seed=0))
    >>> _ = router.route([pa.array(["even", "odd"] * 5_000)], rows=10_000)
    >>> set(router.snapshot()[0].pairs.values())
    {'sort'}

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
        self._attributes = PartitionedAttributes(attributes, options)
        self.check = BenefitCheck(self.content, self._attributes, context)
        self._counts = ContentCounts(self.content, self._attributes, self.check, context, options)
        self._rows_since_change = 0
        self._restored_rows = 0
        self._is_surprised = False  # by what an operator did to the rows of the last slice
        self._is_idle = False
        self._detours = DetourRate(len(context.array), options)
        # The attributes that the last profile of each operator suggested.
        self._suggested: dict[int, int] = {}
        self._regular_traces: list[RouteTrace] = []
        self._profiled_traces: list[RouteTrace] = []
        self._traces_to_observe: list[RouteTrace] = []

    # --- rows --------------------------------------------------------------------------------

    def assign(self, batch: Batch, rows: Rows | None) -> Iterator[Ruster]:
        """Yield the rows to profile, then a ruster for each route that partitions call for."""
        rows = np.arange(batch.rows) if rows is None else rows
        self._regular_traces, self._profiled_traces = [], []
        self._partitions = BatchPartitions(self._attributes, batch, rows)
        self._counts.look(batch, rows)
        self._is_idle = not self._can_pay()
        if self._is_idle:
            yield from self._assign_slices(rows)
            return
        self._counts.evaluate_first(batch, rows)
        is_warming_up = self._counts.is_warming_up
        if not is_warming_up:
            is_profiled = self._pick_profiled(len(rows))
            if is_profiled is not None:
                operator = self.content.profiled
                rest = tuple(number for number in self.order if number != operator)
                yield Ruster(RToken((operator, *rest)), rows[is_profiled], PROFILED)
                self._observe_visits(is_usual=False)
                rows = rows[~is_profiled]
        yield from self._assign_slices(rows)
        if is_warming_up:
            self._counts.warm_up(batch, self._regular_traces, len(rows))
            return
        counts_usual = self._options.counts_all_rows and not self.check.is_running
        usual = self._regular_traces if counts_usual else []
        self._counts.count_visits(batch, usual, [self.content.profiled], self._profiled_traces)

    def _can_pay(self) -> bool:
        """Whether classes of rows could save more than it takes to find them and route by them.

        At best they save all evaluations but that of the cheapest operator.
        """
        if self.check.attributes_in_use() or not self._array.costs_are_known:
            return True
        cost_us = self._array.cost_us()
        return float(cost_us.sum() - cost_us.min()) > CLASSES_US

    def _assign_slices(self, rows: Rows) -> Iterator[Ruster]:
        """Route rows slice by slice, so that each follows what the one before has shown."""
        begin = 0
        while begin < len(rows):
            if self._update_order() and self._is_surprised:
                self._rows_since_change = 0
            own = rows[begin : begin + max(SLICE_ROWS, self._rows_since_change // SLICE_SHARE)]
            yield from self._assign_regular(own)
            self._rows_since_change += len(own)
            self._observe_visits()
            self.check.conclude()
            begin += len(own)

    def _update_order(self) -> bool:
        """Order the operators by overall selectivity; return True if that saves much."""
        selectivity, cost_us = self.content.overall, self._array.cost_us()
        rank = (1.0 - selectivity) / cost_us
        before, self.order = self.order, tuple(np.argsort(-rank, kind="stable").tolist())
        if before == self.order:
            return False
        before_us, after_us = (
            float(cost_us[list(order)] @ np.r_[1.0, selectivity[list(order)].cumprod()[:-1]])
            for order in (before, self.order)
        )
        return before_us > CHANGED_TIMES * after_us

    def _assign_regular(self, rows: Rows) -> Iterator[Ruster]:
        cost_us = self._array.cost_us()
        classifiers = self.check.classifiers()
        attributes = self.check.attributes_in_use()
        for side, own in enumerate(self.check.deal(rows)):
            partitions = {number: self._partitions.by(number)[own] for number in attributes}
            groups = group_by_route(
                self.content, classifiers[side], partitions, own, cost_us, self.order
            )
            for route, members in groups:
                yield Ruster(RToken(route), members, REGULAR, side)

    def observe(self, batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
        """Count what a ruster showed; selectivities are updated when its slice is through."""
        if ruster.label == PROFILED:
            self._profiled_traces.append(trace)
            self._detours.add(trace)
        else:
            self._regular_traces.append(trace)
            self.check.add(ruster.side, trace)
        self._traces_to_observe.append(trace)

    def _observe_visits(self, is_usual: bool = True) -> None:
        """Update running selectivities with all visits since the last update."""
        visits: dict[int, list[Visit]] = {}
        for trace in self._traces_to_observe:
            for visit in trace.visits:
                visits.setdefault(visit.operator, []).append(visit)
        self._traces_to_observe = []
        pairs = self._attributes_by_operator()
        self._is_surprised = False
        for operator, own in visits.items():
            seen, passed = sum(visit.seen for visit in own), sum(visit.passed for visit in own)
            differs = self.content.observe(operator, seen, passed, is_usual)
            # Pairs change which rows reach an operator: no surprise where one is used or tried.
            self._is_surprised |= differs and pairs[operator] == {NO_ATTRIBUTE}
        for attribute in self.check.attributes_in_use():
            judged = [number for number in visits if attribute in pairs[number]]
            own = [visit for number in judged for visit in visits[number]]
            if own and self._observe_pairs(attribute, own):
                self._rows_since_change = 0

    def _observe_pairs(self, attribute: int, visits: Sequence[Visit]) -> bool:
        """Update running selectivities by an attribute; return True if the rows have changed."""
        asked = np.concatenate([visit.asked for visit in visits if visit.asked is not None])
        passed = np.concatenate([visit.answers for visit in visits])
        operators = np.repeat([v.operator for v in visits], [v.seen for v in visits])
        partitions = self._partitions.by(attribute)[asked]
        return self.content.observe_pair(operators, attribute, passed, partitions)

    def _attributes_by_operator(self) -> list[set[int]]:
        """Return what judges each operator, on both sides of a trial; `NO_ATTRIBUTE` for W."""
        sides = [classifier.tolist() for classifier in self.check.classifiers()]
        return [set(attributes) for attributes in zip(*sides, strict=True)]

    def _pick_profiled(self, rows: int) -> BoolArray | None:
        """Return which rows are sent to the profiled operator first; None for none."""
        if self.check.is_running or not self._counts.candidates():
            return None
        if self._options.stops_before_profiling:
            self.content.use(self.content.profiled, NO_ATTRIBUTE)
        if not self._counts.is_affordable():
            return None
        picked = self._context.rng.random(rows) < self._detours.probability[self.content.profiled]
        return picked if picked.any() else None

    # --- learning ----------------------------------------------------------------------------

    def watch(self, outcome: ChunkOutcome) -> None:
        """Do nothing: running selectivities follow the rows by themselves."""

    def profile_demand(self) -> ProfileDemand | None:
        """Ask for nothing: profiled rows are routed to the profiled operator first."""
        return None

    def learn(self, batch: Batch, outcome: ChunkOutcome, profile: Profile) -> None:
        """Pay for detours; conclude the operator's profile and go to the next."""
        self._counts.add_useful(self._context.ledger.booked_us)
        if self._is_idle or self._counts.is_warming_up:
            return
        self._pay_detours()
        if self.check.is_running or not self._counts.candidates():
            return
        if self.content.is_sampled:
            self._conclude_profile(self.content.profiled)
            self._profile_next()

    def _pay_detours(self) -> None:
        """Pay from the budget what detours cost more than the usual routes of this chunk."""
        cost_us = self._array.cost_us()
        for trace in self._regular_traces:
            self._detours.add_usual(trace)
        extra_us = self._detours.extra_us(self._profiled_traces, cost_us)
        if extra_us > 0:
            self._context.ledger.budget.pay(extra_us)

    def _conclude_profile(self, operator: int) -> None:
        """Try the attribute that the profile suggests, or check the one in use again."""
        in_use = int(self.content.classifier[operator])
        chosen = self.content.conclude()
        self._suggested.pop(operator, None)
        if chosen != NO_ATTRIBUTE:
            self._suggested[operator] = chosen
        if self._options.stops_before_profiling:
            self.check.propose({op: a for op, a in self._suggested.items() if op == operator})
        elif chosen not in (NO_ATTRIBUTE, in_use):
            # With those of other operators: what many pairs save together is easier to see.
            self.check.propose(self._suggested)
        else:
            self.check.check_again(operator)

    def _profile_next(self) -> None:
        cost_us = self._array.cost_us()
        self._detours.adjust(self.content.profiled, cost_us)
        operator = self.content.next_operator(cost_us)
        self.content.begin(operator)

    # --- knowledge ---------------------------------------------------------------------------

    def train(self, batch: Batch, drops: BoolArray, progress: Progress | None) -> None:
        """Start with the classifier attributes that these rows call for."""
        self._counts.train(batch, drops)

    def snapshot(self) -> ContentKnowledge:
        """Return the matrices that routing needs, how attributes are partitioned, and costs."""
        pairs = [
            self._pair_knowledge(operator, attribute)
            for operator, attribute in enumerate(self.content.classifier.tolist())
        ]
        return ContentKnowledge(
            self.order,
            self._context.known_costs_us(),
            tuple(pairs),
            tuple(self.content.overall.round(4).tolist()),
            self._restored_rows + self._context.ledger.rows,
            dict(self._counts.rejected),
            self._counts.pairs(),
        )

    def _pair_knowledge(self, operator: int, attribute: int) -> PairKnowledge | None:
        if attribute == NO_ATTRIBUTE:
            return None
        layout = self._attributes.layout(attribute)
        assert layout is not None, "an attribute in use has partitions"
        detailed = tuple(self.content.detailed[operator, attribute].round(4).tolist())
        return PairKnowledge(self._attributes.names[attribute], layout, detailed)

    def restore(self, knowledge: Knowledge) -> None:
        """Start from what a tactic for the same predicates has learnt."""
        self._context.restore_costs(knowledge.cost_us)
        if not isinstance(knowledge, ContentKnowledge):
            return  # learnt where there was no column to classify by
        self.order = knowledge.order
        self._restored_rows = knowledge.rows
        places = {name: number for number, name in enumerate(self._attributes.names)}
        for operator, pair in enumerate(knowledge.classifier):
            attribute = NO_ATTRIBUTE if pair is None else places.get(pair.attribute, NO_ATTRIBUTE)
            self.content.use(operator, NO_ATTRIBUTE)
            if pair is None or attribute == NO_ATTRIBUTE:
                continue
            if self._attributes.restore(attribute, pair.layout):
                self.content.use(operator, attribute)
                self.content.detailed[operator, attribute] = pair.detailed
        self.content.overall[:] = knowledge.overall
        self._counts.skip_start()
