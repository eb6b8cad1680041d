"""How Content-Learns gets its counts: from the first rows, from a warm-up, from usual visits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, IntArray, Rows
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.content_check import BenefitCheck
from eddyline.fabric.tactics.content_routes import PartitionedAttributes
from eddyline.fabric.tactics.tactic import SegmentContext
from eddyline.journal.events import AttributesScreened, BudgetExhausted, ClassifiersChosen
from eddyline.operators import Batch

COUNTED_ROWS_MAX = 1_024  # rows of a chunk that are counted on their usual routes
WARM_UP_ROWS = 12_000
LOOK_SHARE = 0.0025  # of the useful work: what judging the attributes may take, after an advance
LOOK_ADVANCE_US = 3_000.0
#: Rows that are evaluated by all operators whatever the budget says: to learn what that costs, and
#: then at least so many more.
FIRST_ROWS_TIMED, FIRST_ROWS_MIN = 8, 24


class FirstRows:
    """The first rows, which every operator is evaluated on, until there are enough of them.

    Parameters
    ----------
    rows_wanted
        Number of rows; 0 for none.

    """

    def __init__(self, rows_wanted: int) -> None:
        self.rows_left = rows_wanted
        self._parts: list[tuple[IntArray, BoolArray]] = []

    @property
    def is_wanted(self) -> bool:
        """Whether more rows are wanted."""
        return self.rows_left > 0

    @property
    def is_begun(self) -> bool:
        """Whether there are any rows yet."""
        return bool(self._parts)

    def add(self, partitions: IntArray, drops: BoolArray) -> None:
        """Add evaluated rows."""
        self.rows_left -= len(drops)
        self._parts.append((partitions, drops))

    def take(self) -> tuple[IntArray, BoolArray]:
        """Return the partitions of all rows by attribute, and which operators drop them."""
        partitions = np.concatenate([part for part, _ in self._parts], axis=1)
        drops = np.concatenate([part for _, part in self._parts])
        self._parts.clear()
        return partitions, drops


class ContentCounts:
    """Feeds Content-Learns with counts of rows by partition, within the budget.

    Every operator is evaluated on the first rows, so that classifier attributes can be proposed for
    all of them at once; then, for a while, every operator is counted on the rows that reach it
    anyway; later only the operator that is being profiled. The attributes are judged from time to
    time: which of them can classify rows, and how they are partitioned.

    Parameters
    ----------
    content
        What is fed.
    attributes
        The attributes of a batch.
    check
        Tries what the counts suggest.
    context
        Shared with the driver of the segment.
    options
        Parameters of Content-Learns.

    """

    def __init__(
        self,
        content: ContentLearns,
        attributes: PartitionedAttributes,
        check: BenefitCheck,
        context: SegmentContext,
        options: ContentOptions,
    ) -> None:
        #: Columns that cannot classify rows, and why.
        self.rejected: dict[str, str] = {}
        self._content = content
        self._attributes = attributes
        self._check = check
        self._context = context
        self._array = context.array
        self._first_rows = FirstRows(options.first_look_rows)
        has_warm_up = options.counts_all_rows and attributes.names
        self._warm_up_rows = WARM_UP_ROWS if has_warm_up else 0
        self._was_exhausted = False
        self._is_look_due = False
        self._look_balance_us = LOOK_ADVANCE_US

    def candidates(self) -> list[int]:
        """Return the attributes that may classify rows."""
        return np.flatnonzero(~self._content.pruned_attributes).tolist()

    def pairs(self) -> dict[str, str]:
        """Return the classifier attribute of each operator that has one, both by name."""
        return self._named(dict(enumerate(self._content.classifier.tolist())))

    def _named(self, pairs: dict[int, int]) -> dict[str, str]:
        return {
            self._array.operators[operator].name: self._attributes.names[attribute]
            for operator, attribute in pairs.items()
            if attribute != NO_ATTRIBUTE
        }

    def look(self, batch: Batch, rows: Rows) -> None:
        """Judge the attributes, where that is due and does not take too much beside other work."""
        self._is_look_due |= self._attributes.is_look_due(len(rows))
        if self._is_look_due and self._look_balance_us > 0 and len(rows):
            began = time.perf_counter()
            self._look(batch, rows)
            self._is_look_due = False
            if not self._array.has_given_costs:
                self._look_balance_us -= (time.perf_counter() - began) * 1e6

    def add_useful(self, useful_us: float) -> None:
        """Add useful work, beside which judging the attributes must take little time."""
        earned_us = self._look_balance_us + LOOK_SHARE * useful_us
        self._look_balance_us = min(earned_us, LOOK_ADVANCE_US)

    def evaluate_first(self, batch: Batch, rows: Rows) -> None:
        """Evaluate rows by all operators, while more of the first ones are wanted."""
        if self._first_rows.is_wanted and not self._first_rows.is_begun:
            timed = min(FIRST_ROWS_TIMED, self._first_rows.rows_left)
            self._evaluate_first(batch, rows[:timed])
            rows = rows[timed:]
        if self._first_rows.is_wanted:
            self._evaluate_first(batch, rows[: self._first_rows_affordable(len(rows))])

    def _evaluate_first(self, batch: Batch, rows: Rows) -> None:
        if len(rows):
            began = time.perf_counter()
            self._add_first(batch, rows, self._array.all_drops(batch, rows))
            self._pay_profiling(began, np.full(len(self._array), len(rows)))

    def _first_rows_affordable(self, rows: int) -> int:
        wanted = self._first_rows.rows_left
        each_us = float(self._array.cost_us().sum())
        affordable = self._context.ledger.budget.affordable_urgent(each_us, wanted)
        if affordable < wanted:
            self._first_rows.rows_left = max(affordable, min(wanted, FIRST_ROWS_MIN))
        return min(self._first_rows.rows_left, rows)

    def _pay_profiling(self, began: float, evaluations: IntArray) -> None:
        spent_us = (time.perf_counter() - began) * 1e6
        self._context.ledger.book_profiling(spent_us)
        self._context.ledger.budget.pay(self._array.booked_us(spent_us, evaluations))

    def train(self, batch: Batch, drops: BoolArray) -> None:
        """Take all rows of a batch as the first rows."""
        rows = np.arange(batch.rows)
        if len(rows):
            self._look(batch, rows)
            self._first_rows = FirstRows(len(rows))
            self._add_first(batch, rows, drops)

    def skip_start(self) -> None:
        """Do without the first rows and the warm-up, because what they show is known."""
        self._first_rows = FirstRows(0)
        self._warm_up_rows = 0

    def _look(self, batch: Batch, rows: Rows) -> None:
        """Exclude attributes that cannot classify rows, and readmit those that now can."""
        useless, moved = self._attributes.look(batch, rows)
        for attribute, origin in moved.items():
            self._content.revise(attribute, origin)
        for attribute in range(len(self._attributes.names)):
            if attribute in useless:
                self._content.pruned_attributes[attribute] = True
                self._check.drop_attribute(attribute)
            elif self._content.pruned_attributes[attribute]:
                self._content.reconsider(attribute)
        reasons = {self._attributes.names[attribute]: why for attribute, why in useless.items()}
        if reasons.keys() != self.rejected.keys():
            self._context.write(AttributesScreened(rejected=dict(reasons)))
        self.rejected = reasons

    def _add_first(self, batch: Batch, rows: Rows, drops: BoolArray) -> None:
        partitions = self._attributes.partition(batch, rows, self.candidates())
        self._first_rows.add(partitions, drops)
        self._context.baseline.learn(drops[drops.any(axis=1)])
        if self._first_rows.is_wanted:
            return
        partitions, drops = self._first_rows.take()
        for operator in range(len(self._array)):
            self._content.begin(operator)
            self._content.sample(partitions, ~drops[:, operator])
        self.propose_all(len(drops))

    def propose_all(self, rows: int) -> None:
        """Propose the attributes that the counts of all operators suggest."""
        pairs = {}
        for operator in range(len(self._array)):
            self._content.begin(operator)
            attribute = self._content.conclude()
            if attribute != NO_ATTRIBUTE:
                pairs[operator] = attribute
        self._content.begin(0)
        self._context.write(ClassifiersChosen(pairs=self._named(pairs), rows=rows))
        self._check.propose(pairs)

    # --- usual visits ------------------------------------------------------------------------

    @property
    def is_warming_up(self) -> bool:
        """Whether warm-up rows are left and an operator has no classifier attribute yet."""
        if self._warm_up_rows <= 0 or self._first_rows.is_wanted:
            return False
        return bool((self._content.classifier == NO_ATTRIBUTE).any())

    def warm_up(self, batch: Batch, traces: Sequence[RouteTrace], rows: int) -> None:
        """Count what every operator did to rows on their usual routes."""
        self.count_visits(batch, traces, range(len(self._array)))
        self._warm_up_rows -= rows
        if self._warm_up_rows <= 0:
            self.propose_all(WARM_UP_ROWS)

    def is_affordable(self) -> bool:
        """Whether the budget allows rows to be profiled or counted now."""
        budget = self._context.ledger.budget
        if budget.allows():
            return True
        if not self._was_exhausted:
            self._context.write(BudgetExhausted(share=budget.share))
        self._was_exhausted = True
        return False

    def count_visits(
        self,
        batch: Batch,
        usual: Sequence[RouteTrace],
        operators: Sequence[int],
        detours: Sequence[RouteTrace] = (),
    ) -> None:
        """Count rows that reached some operators: on detours, and if affordable on usual routes."""
        candidates = self.candidates()
        if not candidates:
            return
        usual = usual if usual and self.is_affordable() else []
        traces = [*detours, *usual]
        if not traces:
            return
        began = time.perf_counter()
        rows = _entered(batch, usual)
        if len(rows) > COUNTED_ROWS_MAX:
            rows = self._context.rng.choice(rows, COUNTED_ROWS_MAX, replace=False)
        rows = np.concatenate([_entered(batch, detours), rows])
        place = np.full(batch.rows, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        partitions = self._attributes.partition(batch, rows, candidates)
        for operator in operators:
            if operator != self._content.profiled:
                self._content.begin(operator)
            visits = [v for trace in traces for v in trace.visits if v.operator == operator]
            if visits:
                places = np.concatenate(
                    [place if visit.asked is None else place[visit.asked] for visit in visits]
                )
                passed = np.concatenate([visit.answers for visit in visits])
                counted = places >= 0
                self._content.sample(partitions[:, places[counted]], passed[counted])
        self._pay_counting(began, len(rows) * len(candidates))

    def _pay_counting(self, began: float, values: int) -> None:
        spent_us = (time.perf_counter() - began) * 1e6
        self._context.ledger.book_profiling(spent_us)
        if self._array.has_given_costs:
            spent_us = values * self._attributes.cost_us(0, measured=False)
        self._context.ledger.budget.pay(spent_us)


def _entered(batch: Batch, traces: Sequence[RouteTrace]) -> Rows:
    """Return the rows of several rusters."""
    every = [np.arange(batch.rows) if t.entered is None else t.entered for t in traces]
    return np.concatenate(every) if every else np.zeros(0, dtype=np.int64)
