"""How Content-Learns gets its counts: from the first rows, from a warm-up, from usual visits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, IntArray, Rows
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.content_routes import PartitionedAttributes
from eddyline.fabric.tactics.tactic import SegmentContext
from eddyline.journal.events import AttributesScreened, ClassifiersChosen
from eddyline.operators import Batch

COUNTED_ROWS_MAX = 1_024  # rows of a chunk that are counted on their usual routes
WARM_UP_ROWS = 12_000


class FirstRows:
    """The first rows, which every operator is evaluated on, until there are enough of them.

    Parameters
    ----------
    rows_wanted
        Number of rows; 0 for none.

    """

    def __init__(self, rows_wanted: int) -> None:
        self._rows_left = rows_wanted
        self._parts: list[tuple[IntArray, BoolArray]] = []

    @property
    def is_wanted(self) -> bool:
        """Whether more rows are wanted."""
        return self._rows_left > 0

    def pick(self, rows: Rows) -> Rows:
        """Return the rows to evaluate, of those given."""
        return rows[: min(self._rows_left, len(rows))]

    def add(self, partitions: IntArray, drops: BoolArray) -> None:
        """Add evaluated rows."""
        self._rows_left -= len(drops)
        self._parts.append((partitions, drops))

    def take(self) -> tuple[IntArray, BoolArray]:
        """Return the partitions of all rows by attribute, and which operators drop them."""
        partitions = np.concatenate([part for part, _ in self._parts], axis=1)
        drops = np.concatenate([part for _, part in self._parts])
        self._parts.clear()
        return partitions, drops


class ContentCounts:
    """Feeds Content-Learns with counts of rows by partition.

    Attributes are screened first. Every operator is evaluated on the first rows, so that all
    classifier attributes are known at once; then, for a while, every operator is counted on the
    rows that reach it anyway; later only the operator that is being profiled.

    Parameters
    ----------
    content
        What is fed.
    attributes
        The attributes of a batch.
    context
        Shared with the driver of the segment.
    options
        Parameters of Content-Learns.

    """

    def __init__(
        self,
        content: ContentLearns,
        attributes: PartitionedAttributes,
        context: SegmentContext,
        options: ContentOptions,
    ) -> None:
        #: Columns that cannot classify rows, and why.
        self.rejected: dict[str, str] = {}
        #: Whether the attributes need no screening now.
        self.is_screened = False
        self._content = content
        self._attributes = attributes
        self._context = context
        self._array = context.array
        self._first_rows = FirstRows(options.first_look_rows)
        has_warm_up = options.counts_all_rows and attributes.names
        self._warm_up_rows = WARM_UP_ROWS if has_warm_up else 0

    def candidates(self) -> list[int]:
        """Return the attributes that may classify rows."""
        return np.flatnonzero(~self._content.pruned_attributes).tolist()

    def pairs(self) -> dict[str, str]:
        """Return the classifier attribute of each operator that has one, both by name."""
        return {
            self._array.operators[operator].name: self._attributes.names[attribute]
            for operator, attribute in enumerate(self._content.classifier.tolist())
            if attribute != NO_ATTRIBUTE
        }

    def prepare(self, batch: Batch, rows: Rows) -> None:
        """Screen the attributes and evaluate the first rows, where either is due."""
        if not self.is_screened:
            self._screen(batch, rows)
        if self._first_rows.is_wanted:
            began = time.perf_counter()
            picked = self._first_rows.pick(rows)
            self._add_first(batch, picked, self._array.all_drops(batch, picked))
            self._context.ledger.book_profiling((time.perf_counter() - began) * 1e6)

    def train(self, batch: Batch, drops: BoolArray) -> None:
        """Take all rows of a batch as the first rows."""
        rows = np.arange(batch.rows)
        self._screen(batch, rows)
        self._first_rows = FirstRows(len(rows))
        if len(rows):
            self._add_first(batch, rows, drops)

    def skip_start(self) -> None:
        """Do without the first rows and the warm-up, because what they show is known."""
        self._first_rows = FirstRows(0)
        self._warm_up_rows = 0

    def _screen(self, batch: Batch, rows: Rows) -> None:
        """Exclude attributes that cannot classify rows, and readmit those that now can."""
        self.is_screened = True
        useless = self._attributes.screen(batch, rows)
        for attribute in range(len(self._attributes.names)):
            if attribute in useless:
                self._content.pruned_attributes[attribute] = True
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
            self._content.conclude()
        self._content.begin(0)
        self._context.write(ClassifiersChosen(pairs=self.pairs(), rows=len(drops)))

    # --- usual visits ------------------------------------------------------------------------

    @property
    def is_warming_up(self) -> bool:
        """Whether warm-up rows are left and an operator has no classifier attribute yet."""
        if self._warm_up_rows <= 0 or self._first_rows.is_wanted:
            return False
        return bool((self._content.classifier == NO_ATTRIBUTE).any())

    def warm_up(self, batch: Batch, traces: Sequence[RouteTrace], rows: int) -> None:
        """Count what every operator did to rows on their usual routes."""
        for operator in range(len(self._array)):
            self._content.begin(operator)
            self.add_usual_visits(batch, traces, operator)
        self._warm_up_rows -= rows
        if self._warm_up_rows <= 0:
            for operator in range(len(self._array)):
                self._content.begin(operator)
                self._content.conclude()
            self._content.begin(0)
            self._context.write(ClassifiersChosen(pairs=self.pairs(), rows=WARM_UP_ROWS))

    def add_usual_visits(self, batch: Batch, traces: Sequence[RouteTrace], operator: int) -> None:
        """Count rows that reached an operator on their usual routes."""
        asked, answers = [], []
        for trace in traces:
            for visit in trace.visits:
                if visit.operator == operator and visit.asked is not None:
                    asked.append(visit.asked)
                    answers.append(visit.answers)
        if asked:
            rows, passed = np.concatenate(asked), np.concatenate(answers)
            if len(rows) > COUNTED_ROWS_MAX:
                some = self._context.rng.choice(len(rows), COUNTED_ROWS_MAX, replace=False)
                rows, passed = rows[some], passed[some]
            self._content.sample(self._attributes.partition(batch, rows, self.candidates()), passed)
