"""Content-based routing: each row visits next the operator that drops most rows like it.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray, Rows
from eddyline.attributes.partition import AttributePartition
from eddyline.attributes.screening import screen_attribute
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions, routes_by_rank
from eddyline.fabric.held_errors import HeldErrors
from eddyline.fabric.operator_array import Trail
from eddyline.fabric.rtoken import RToken
from eddyline.fabric.segment import Segment, Write, WrittenOrderEstimate, merge
from eddyline.fabric.totals import Totals
from eddyline.journal.events import AttributesScreened, ClassifiersChosen, TrialEnded
from eddyline.mesh import Progress
from eddyline.operators import Batch, Operator
from eddyline.profile import Budget

RUSTER_ROWS_MIN = 64
GRID = 0.05
WORSE_MAX = 1.005
KEYS_MAX = 1 << 14
COUNTED_A_BATCH = 1_024
WARM_ROWS = 12_000
PROBABILITY_MIN = 0.01
PROBABILITY_MAX = 0.25


class ByContent(Segment):
    """Runs Content-Learns over batches.

    Parameters
    ----------
    operators, first, budget, write, seed, costs_us
        As for `Segment`.
    attributes
        Columns that may tell rows apart: their names, and where they stand in a batch.
    options
        Parameters of Content-Learns.

    Examples
    --------
    Each predicate drops one sort of rows, so the sort tells about both:

    >>> import pyarrow as pa
    >>> from eddyline.fabric import Router
    >>> from eddyline.operators import ColumnReader, RowPredicate
    >>> own = [RowPredicate(n, (0,), lambda sort, n=n: sort != n) for n in ("even", "odd")]
    >>> router = Router(own, [ColumnReader("sort")], "content", attributes={"sort": 0})
    >>> router.train([pa.array(["even", "odd"] * 500)], rows=1_000)
    >>> router.segments[0].knowledge()["pairs"]
    {'even': 'sort', 'odd': 'sort'}

    """

    def __init__(
        self,
        operators: Sequence[Operator],
        first: int,
        budget: Budget,
        write: Write,
        seed: int,
        costs_us: Sequence[float] | None,
        attributes: Mapping[str, int],
        options: ContentOptions,
    ) -> None:
        super().__init__(operators, first, budget, write, seed, costs_us)
        self.options = options
        #: Attributes that were looked at and found useless, and why.
        self.rejected: dict[str, str] = {}
        self.content = ContentLearns(len(operators), len(attributes), options)
        #: Visits of rows to operators, by the attribute that decided on them (None: no attribute).
        self.calls_by_attribute: Counter[str | None] = Counter()
        #: How often a profile of each operator chose which attribute.
        self.chosen_attributes: dict[str, Counter[str | None]] = {}
        self._names = list(attributes)
        self._columns = list(attributes.values())
        self._partitions = [AttributePartition(options.partitions) for _ in attributes]
        self._written = WrittenOrderEstimate(len(operators))
        self._order = tuple(range(len(operators)))
        self._is_pruned = False
        self._first_look_left = options.first_look_rows
        self._first_look: list[tuple[IntArray, BoolArray]] = []
        #: What rows cost while the profiled operator's attribute is not in use, and while it is.
        self._without = _Rate()
        self._with = _Rate()
        self._is_checking = False
        self._looking_us = 0.0
        self._warm_rows = WARM_ROWS if options.counts_all_rows and attributes else 0
        self._probability = options.profile_probability
        self._detours = _Rate()

    @property
    def order(self) -> tuple[int, ...]:
        """The order of rows about which no attribute says anything."""
        return self._order

    def knowledge(self) -> dict[str, Any]:
        """Return the matrices that routing needs, and costs."""
        return {
            "order": list(self._order),
            "tuples": "",
            "cost_us": self._known_costs(),
            "classifier": [self._name_of(a) for a in self.content.classifier.tolist()],
            "detailed": self.content.detailed.round(4).tolist(),
            "overall": self.content.overall.round(4).tolist(),
            "rejected": self.rejected,
            "pairs": self._pairs(),
        }

    def resume(self, known: dict[str, Any]) -> None:
        """Start from what another segment of the same predicates has learnt."""
        self._resume_costs(known["cost_us"])
        if "classifier" not in known:  # learnt where there was no column to classify by
            return
        positions = {name: number for number, name in enumerate(self._names)}
        for operator, name in enumerate(known["classifier"]):
            self.content.classifier[operator] = positions.get(name, NO_ATTRIBUTE)
        self.content.detailed[:] = known["detailed"]
        self.content.overall[:] = known["overall"]
        self._first_look_left = self._warm_rows = 0

    def train(self, batch: Batch, totals: Totals, progress: Progress | None = None) -> None:
        """Begin with the classifier attributes that these rows call for."""
        rows = np.arange(batch.rows)
        self._prune(batch, rows)
        self._first_look_left = len(rows)
        if len(rows):
            self._look_first(batch, rows, totals)

    # --- routing ----------------------------------------------------------------------------

    def run(
        self, batch: Batch, alive: Rows | None, errors: HeldErrors, totals: Totals
    ) -> Rows | None:
        """Return the rows, of those given, that no predicate of the segment drops."""
        rows = np.arange(batch.rows) if alive is None else alive
        if not self._is_pruned:
            self._prune(batch, rows)
        if self._first_look_left > 0:
            self._look_first(batch, rows, totals)
        trails: list[Trail] = []
        regular: list[Trail] = []
        if self._is_warming_up:
            trails = self._warm_up(batch, rows, errors, totals)
        else:
            profiled = self._pick_for_profile(len(rows))
            if profiled.any():
                trails += self._profile(batch, rows[profiled], errors, totals)
            regular = self._send(batch, rows[~profiled], errors, totals)
            trails += regular
        seen, passed = self._book(trails, totals)
        self.profiling_us, self._looking_us = self._looking_us, 0.0
        left = merge(trails) if trails else rows[:0]
        left_count = batch.rows if left is None else len(left)
        totals.written_seen[self.array.places] += self._written.seen(
            len(rows), left_count, (), seen, passed
        )
        began = time.perf_counter()
        if not self._is_warming_up:
            self._measure(regular)
            self._advance()
        self._book_deciding((time.perf_counter() - began) * 1e6, totals)
        return left

    @property
    def _is_warming_up(self) -> bool:
        """Whether not all was found at first sight, and all operators are still being counted."""
        if self._warm_rows <= 0 or self._first_look_left > 0:
            return False
        return bool((self.content.classifier == NO_ATTRIBUTE).any())

    def _send(self, batch: Batch, rows: Rows, errors: HeldErrors, totals: Totals) -> list[Trail]:
        """Group rows by the route that their partitions call for, and send them."""
        if len(rows) == 0:
            return []
        self._order = self._default_order()
        in_use = self.content.attributes_in_use()
        partitions = self._partition(batch, rows, in_use)
        trails = []
        positions = _positions(batch, rows)
        for route, own in self._rusters(rows, partitions, in_use):
            trail = self.array.follow(RToken(route), batch, rows[own], errors, totals)
            trails.append(trail)
            self._observe(trail, positions, partitions)
        if self.options.counts_all_rows and not self._is_checking and not self._is_warming_up:
            self._count_usual(batch, trails, self.content.profiled)
        return trails

    def _warm_up(self, batch: Batch, rows: Rows, errors: HeldErrors, totals: Totals) -> list[Trail]:
        """Send the first rows on their way, and count what every operator makes of them."""
        trails = self._send(batch, rows, errors, totals)
        for operator in range(len(self.array)):
            self.content.begin(operator)
            self._count_usual(batch, trails, operator)
        self._warm_rows -= len(rows)
        if self._warm_rows <= 0:
            for operator in range(len(self.array)):
                self.content.begin(operator)
                self.content.conclude()
            self.content.begin(0)
            self._write(ClassifiersChosen(pairs=self._pairs(), rows=WARM_ROWS))
        return trails

    def _count_usual(self, batch: Batch, trails: Sequence[Trail], operator: int) -> None:
        """Count rows that came to an operator on their usual way."""
        asked, answers = [], []
        for trail in trails:
            for visit in trail.visits:
                if visit.operator == operator and visit.asked is not None:
                    asked.append(visit.asked)
                    answers.append(visit.answers)
        if asked:
            rows, passed = np.concatenate(asked), np.concatenate(answers)
            if len(rows) > COUNTED_A_BATCH:
                some = self._rng.choice(len(rows), COUNTED_A_BATCH, replace=False)
                rows, passed = rows[some], passed[some]
            self.content.sample(self._partition(batch, rows, self._candidates()), passed)

    def _rusters(
        self, rows: Rows, partitions: IntArray, in_use: Sequence[int]
    ) -> list[tuple[tuple[int, ...], IntArray]]:
        """Return routes with the positions, among the rows, of those that take them."""
        if not in_use:
            return [(self._order, np.arange(len(rows)))]
        # One line for each combination of partitions that occurs, not for each row.
        size = self.options.partitions + 1
        key = np.zeros(len(rows), dtype=np.int64)
        for attribute in in_use:
            key = key * size + partitions[attribute]
        first, kind_of_row = _kinds(key, size ** len(in_use))
        expected = self.content.selectivities(partitions[:, first])
        numbers, routes = routes_by_rank(expected, self.array.cost_us(), GRID)
        route_of_row = numbers[kind_of_row]
        counts = np.bincount(route_of_row, minlength=len(routes))
        rows_min = min(RUSTER_ROWS_MIN, len(rows) // 16)
        rusters = [
            (routes[number], np.flatnonzero(route_of_row == number))
            for number in np.flatnonzero(counts >= max(rows_min, 1)).tolist()
        ]
        rest = np.flatnonzero(counts[route_of_row] < rows_min)
        if len(rest):
            rusters.append((self._order, rest))
        return rusters

    def _observe(self, trail: Trail, positions: IntArray, partitions: IntArray) -> None:
        """Update running selectivities with what a ruster showed.

        Parameters
        ----------
        trail
            Of the ruster.
        positions
            Of each row of the batch, among the rows that were partitioned.
        partitions
            By attribute and position.

        """
        for visit in trail.visits:
            attribute = int(self.content.classifier[visit.operator])
            self.calls_by_attribute[self._name_of(attribute)] += visit.seen
            of_rows = None
            if attribute != NO_ATTRIBUTE and visit.asked is not None:
                of_rows = partitions[attribute][positions[visit.asked]]
            self.content.observe(visit.operator, visit.answers, of_rows)

    def _default_order(self) -> tuple[int, ...]:
        rank = (1.0 - self.content.overall) / self.array.cost_us()
        return tuple(np.argsort(-rank, kind="stable").tolist())

    def _partition(self, batch: Batch, rows: Rows, attributes: Sequence[int]) -> IntArray:
        """Return the partition of each row, for the given attributes; 0 for all others."""
        partitions = np.zeros((len(self._columns), len(rows)), dtype=np.int64)
        for attribute in attributes:
            values = batch.arrow(self._columns[attribute], rows)
            partitions[attribute] = self._partitions[attribute].assign(values)
        return partitions

    # --- learning ---------------------------------------------------------------------------

    def _prune(self, batch: Batch, rows: Rows) -> None:
        """Look at some rows for attributes that cannot help, and for those that now can."""
        self._is_pruned = True
        useless = {}
        for attribute, column in enumerate(self._columns):
            why = screen_attribute(batch.arrow(column, rows))
            if why is not None:
                useless[self._names[attribute]] = why
                self.content.pruned_attributes[attribute] = True
            elif self.content.pruned_attributes[attribute]:
                self.content.reconsider(attribute)
        if useless.keys() != self.rejected.keys():
            self._write(AttributesScreened(rejected=dict(useless)))
        self.rejected = useless

    def _candidates(self) -> list[int]:
        return np.flatnonzero(~self.content.pruned_attributes).tolist()

    def _look_first(self, batch: Batch, rows: Rows, totals: Totals) -> None:
        """Evaluate every operator on some rows, so that all attributes are known at once."""
        began = time.perf_counter()
        picked = rows[: min(self._first_look_left, len(rows))]
        drops = self._drops_of_all(batch, picked, totals)
        self._first_look.append((self._partition(batch, picked, self._candidates()), drops))
        self._first_look_left -= len(picked)
        self._written.learn(drops[drops.any(axis=1)])
        spent_us = (time.perf_counter() - began) * 1e6
        self._looking_us += spent_us
        totals.profiling_us += spent_us
        if self._first_look_left > 0:
            return
        partitions = np.concatenate([part for part, _ in self._first_look], axis=1)
        drops = np.concatenate([part for _, part in self._first_look])
        for operator in range(len(self.array)):
            self.content.begin(operator)
            self.content.sample(partitions, ~drops[:, operator])
            self.content.conclude()
        self._first_look.clear()
        self.content.begin(0)
        self._write(ClassifiersChosen(pairs=self._pairs(), rows=len(drops)))

    def _pick_for_profile(self, rows: int) -> BoolArray:
        if self._is_checking or not self._candidates():
            return np.zeros(rows, dtype=bool)
        return self._rng.random(rows) < self._probability

    def _profile(self, batch: Batch, rows: Rows, errors: HeldErrors, totals: Totals) -> list[Trail]:
        """Send rows to the profiled operator first, and count them by partition."""
        operator = self.content.profiled
        rest = tuple(number for number in self._order if number != operator)
        trail = self.array.follow(RToken((operator, *rest)), batch, rows, errors, totals)
        partitions = self._partition(batch, rows, self._candidates())
        self.content.sample(partitions, trail.visits[0].answers)
        self._observe(trail, _positions(batch, rows), partitions)
        self._detours.add([trail], self.array.cost_us())
        return [trail]

    def _set_probability(self) -> None:
        """Profile as many rows as the budget allows, by what the detours have cost so far."""
        budget = self.options.profile_budget
        if budget is None or self._detours.rows == 0 or self._without.rows == 0:
            return
        usual_us = self._without.per_row_us
        extra = max(self._detours.per_row_us / usual_us - 1.0, 1e-3) if usual_us else 1.0
        wanted = min(max(budget / extra, PROBABILITY_MIN), PROBABILITY_MAX)
        self._probability = 0.5 * self._probability + 0.5 * wanted

    def _measure(self, trails: Sequence[Trail]) -> None:
        rate = self._with if self._is_checking else self._without
        rate.add(trails, self.array.cost_us())

    def _advance(self) -> None:
        """Conclude the operator's profile, check what its attribute is worth, go on to the next."""
        if not self._candidates():
            return
        operator = self.content.profiled
        if self._is_checking:
            if self._with.rows >= self._without.rows:
                self._end_check(operator)
            return
        if not self.content.is_sampled:
            return
        before = int(self.content.classifier[operator])
        chosen = self.content.conclude()
        counts = self.chosen_attributes.setdefault(self.array.operators[operator].name, Counter())
        counts[self._name_of(chosen)] += 1
        if chosen in (NO_ATTRIBUTE, before):
            self._next()
        else:
            self._is_checking = True

    def _end_check(self, operator: int) -> None:
        """Keep the pair of operator and attribute only if rows cost less with it than without."""
        with_us, without_us = self._with.per_row_us, self._without.per_row_us
        is_kept = with_us <= WORSE_MAX * without_us
        attribute = int(self.content.classifier[operator])
        name = self.array.operators[operator].name
        self._write(
            TrialEnded(
                subject="attribute",
                method="alternating",
                verdict="kept" if is_kept else "reverted",
                before=(name,),
                after=(f"{name} by {self._names[attribute]}",),
                gain_ratio=round(float(self.content.gain_ratios[operator, attribute]), 4),
                before_us=round(without_us, 4),
                after_us=round(with_us, 4),
                rows=self._with.rows,
            )
        )
        if not is_kept:
            self.content.stop_using(operator)
        self._next()

    def _next(self) -> None:
        self._set_probability()
        self._is_checking = False
        self._with, self._without, self._detours = _Rate(), _Rate(), _Rate()
        operator = self.content.next_operator(self.array.cost_us())
        # After a round, what seemed useless in some rows is looked at again in others.
        self._is_pruned = operator > self.content.profiled
        self.content.begin(operator)

    def _name_of(self, attribute: int) -> str | None:
        return None if attribute == NO_ATTRIBUTE else self._names[attribute]

    def _pairs(self) -> dict[str, str]:
        """Return which attribute classifies rows for which operator, by name."""
        return {
            self.array.operators[operator].name: self._names[attribute]
            for operator, attribute in enumerate(self.content.classifier.tolist())
            if attribute != NO_ATTRIBUTE
        }


def _positions(batch: Batch, rows: Rows) -> IntArray:
    """Return, for each row of the batch, its position among the given rows."""
    positions = np.zeros(batch.rows, dtype=np.int64)
    positions[rows] = np.arange(len(rows))
    return positions


def _kinds(key: IntArray, keys: int) -> tuple[IntArray, IntArray]:
    """Return the position of a row of each kind that occurs, and the kind of each row."""
    if keys > KEYS_MAX:
        _, first, kind_of_row = np.unique(key, return_index=True, return_inverse=True)
        return first, kind_of_row
    some_row = np.full(keys, -1, dtype=np.int64)
    some_row[key] = np.arange(len(key))
    met = np.flatnonzero(some_row >= 0)
    kind_of_key = np.zeros(keys, dtype=np.int64)
    kind_of_key[met] = np.arange(len(met))
    return some_row[met], kind_of_key[key]


class _Rate:
    """What rows have cost, counted and priced."""

    def __init__(self) -> None:
        self.rows = 0
        self._spent_us = 0.0

    def add(self, trails: Sequence[Trail], cost_us: FloatArray) -> None:
        for trail in trails:
            self.rows += trail.entered_count
            self._spent_us += float(trail.seen @ cost_us)

    @property
    def per_row_us(self) -> float:
        return self._spent_us / max(self.rows, 1)
