"""The shared eddy: routes every row once, for all queries over one stream.

The property that correctness rests on: a query keeps its bit in a row's `interested` bitmap exactly
as long as no operator has rejected the row for it, and a row is routed until the completion mask of
every query that is interested in it is covered by the operators that are done, or by predicates of
which the query only has clauses that hold already. So the bits that are left in the end are the
matches.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from eddyline.arrays import IntArray
from eddyline.errors import describe_error
from eddyline.fabric.shared.clause_bits import BitWords
from eddyline.fabric.shared.clauses import CheckSchedule
from eddyline.fabric.shared.learnt import LearntOperator
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.matches import Matches
from eddyline.fabric.shared.operator_table import OperatorTable
from eddyline.fabric.shared.operators import SharedOperator, SharedPredicate
from eddyline.fabric.shared.order_learner import OrderLearner
from eddyline.fabric.shared.query import SharedQuery
from eddyline.fabric.shared.query_table import QueryTable
from eddyline.fabric.shared.visit_filter import VisitFilter, is_in
from eddyline.operators import Batch, Operator
from eddyline.operators.bitmaps import overlap, set_bits
from eddyline.operators.domain import Domain
from eddyline.ordering import Policy
from eddyline.ordering.tickets import Tickets

# The bitmaps of a chunk of rows should fit into a core's cache.
CHUNK_WORDS = 1 << 17
CHUNK_ROWS_MIN = 64
_NONE: IntArray = np.zeros(0, dtype=np.int64)


class SharedEddy:
    """Runs all queries over one stream at once.

    Where CACQ routes each tuple by itself, this routes chunks of rows: a policy gives one order
    for a chunk, and rows leave it as soon as no interested query needs them elsewhere.

    Parameters
    ----------
    domains
        For each column that may be compared with constants, its domain.
    policy
        Decides the order of the operators. Default: `Tickets`.
    seed
        For whatever the policy draws.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from eddyline.operators import ColumnReader
    >>> from eddyline.operators.domain import Whole
    >>> lux = Whole()
    >>> eddy = SharedEddy({"lux": lux})
    >>> eddy.add({0: SharedQuery(1, {"lux": lux.compare(">", 500)}),
    ...           1: SharedQuery(2, {"lux": lux.compare("<", 800)})})
    >>> eddy.bind({"lux": 0}, {})
    >>> matches = eddy.run(Batch([pa.array([100, 600, 900])], [ColumnReader("lux")]))
    >>> list(zip(matches.rows.tolist(), matches.numbers.tolist()))
    [(0, 2), (1, 1), (1, 2), (2, 1)]
    >>> eddy.take_counts()
    {1: 2, 2: 2}

    """

    def __init__(
        self, domains: Mapping[str, Domain], policy: Policy | None = None, seed: int | None = None
    ) -> None:
        self._queries = QueryTable()
        self._operators = OperatorTable(domains)
        self._learner = OrderLearner(policy if policy is not None else Tickets(), seed)
        self._visit_filters: list[VisitFilter] = []
        self._last_order: tuple[int, ...] = ()
        self._check_schedule: CheckSchedule | None = None
        #: Number of rows routed so far.
        self.rows = 0
        #: Number of visits so far, of one row to one operator each.
        self.visits = 0
        self._work: dict[str, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def policy(self) -> Policy:
        """The policy that decides the order of the operators."""
        return self._learner.policy

    @property
    def operators(self) -> list[SharedOperator]:
        """The operators in use; bit n of `Lineage.done` is the n-th of them."""
        return list(self._operators)

    @property
    def words(self) -> int:
        """Number of words of the bitmap of queries that each row has."""
        return self._queries.words

    # --- queries come and go -----------------------------------------------------------------

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Add queries, by slot; they see the batches that come from now on.

        A slot is the position of the query's bit. The caller hands slots out, so that eddies in
        different processes agree on them; see `Slots`.
        """
        self._queries.add(queries)
        clauses = self._queries.clauses
        self._operators.widen(BitWords(self._queries.words, *clauses.words))
        self._operators.add(queries, clauses)
        self._renew_order()

    def drop(self, slots: Iterable[int]) -> None:
        """Remove the queries at these slots, which may then be given to others.

        Counts of these queries that were not taken yet are lost.
        """
        for slot in slots:
            self._operators.remove(slot, self._queries.remove(slot))
        self._renew_order()

    def bind(self, columns: Mapping[str, int], predicates: Mapping[str, Operator]) -> None:
        """Set positions of columns in the batches to come, and the operators of predicates."""
        self._operators.bind(columns, predicates)

    def completion(self, slot: int) -> int:
        """Return the completion mask of a query: the operators that must be done for a match."""
        return self._operators.completion(slot)

    def _renew_order(self) -> None:
        operators = self.operators
        self._check_schedule = None
        if self._learner.renew(operators):
            self._visit_filters = [VisitFilter() for _ in operators]

    # --- rows --------------------------------------------------------------------------------

    def run(self, batch: Batch) -> Matches:
        """Find the matches of all queries among the rows of a batch."""
        chunk_rows = max(CHUNK_ROWS_MIN, CHUNK_WORDS // self._row_words())
        parts = []
        for first in range(0, batch.rows, chunk_rows):
            rows = np.arange(first, min(first + chunk_rows, batch.rows))
            parts.append(self._finish(batch, self.route(batch, rows)))
        if not parts:
            return Matches.none()
        return parts[0] if len(parts) == 1 else Matches.concat(parts)

    def _row_words(self) -> int:
        """Return how many words of the cache a row takes.

        A visit reads and writes part of the bits of clauses: they count half.
        """
        return self._queries.words + self._queries.clauses.words.mixed // 2

    def route(self, batch: Batch, rows: IntArray) -> Lineage:
        """Send a chunk from operator to operator until its interested queries are complete."""
        queries, operators, order = self._queries, self.operators, self._learner.order
        if order != self._last_order:
            self._last_order, self._check_schedule = order, None
            for visit_filter in self._visit_filters:
                visit_filter.check_again()
        clauses, checks = queries.clauses, dict(self._checks(order))
        lineage = Lineage.start(rows, queries.active, clauses.words.mixed)
        seen = np.zeros(len(operators), dtype=np.int64)
        passed = np.zeros(len(operators), dtype=np.int64)
        incomplete_after = self._operators.incomplete_after(order)
        on_the_way = np.arange(len(rows))
        for number in lineage.ready(order):
            operator, visit_filter = operators[number], self._visit_filters[number]
            is_evidence = visit_filter.is_checking
            if operator.name in checks:
                clauses.reject_unfulfilled(
                    lineage, checks.pop(operator.name), self._operators.tables
                )
            visitors = self._visitors(number, operator, on_the_way, lineage)
            if len(visitors):
                began = time.perf_counter()
                operator.visit(batch, lineage, visitors)
                elapsed_us = (time.perf_counter() - began) * 1e6
                self._learner.add_cost(operator, len(visitors), elapsed_us)
                self.visits += len(visitors)
                visits, busy_us = self._work.get(operator.name, (0, 0.0))
                self._work[operator.name] = (visits + len(visitors), busy_us + elapsed_us)
            lineage.mark_done(number)
            incomplete = incomplete_after[number]
            if incomplete is None or (is_evidence and not operator.is_predicate):
                # What some of its own queries still want: the same at every place of the order.
                seen[number] = len(visitors)
                wanted = overlap(lineage.interested[visitors], operator.users)
                passed[number] = np.count_nonzero(wanted)
            if incomplete is None:
                break
            on_the_way = visit_filter.after(on_the_way, lineage.interested, incomplete)
            if is_evidence and operator.is_predicate:
                # What is routed on: predicates are dear, and only save visits if rows end there.
                seen[number] = len(visitors)
                passed[number] = np.count_nonzero(is_in(visitors, on_the_way, len(rows)))
            if not len(on_the_way):
                break
        for due in checks.values():  # those of predicates too that no row had to visit
            clauses.reject_unfulfilled(lineage, due, self._operators.tables)
        self.rows += len(rows)
        self._learner.learn(batch, lineage, operators, seen, passed)
        return lineage

    def _checks(self, order: Sequence[int]) -> CheckSchedule:
        """Return which clauses are checked when, given the order of the operators."""
        if self._check_schedule is None:
            operators = self.operators
            names = [operators[number].name for number in order]
            predicates = {operator.name for operator in operators if operator.is_predicate}
            self._check_schedule = self._queries.clauses.schedule(names, predicates)
        return self._check_schedule

    def _visitors(
        self, number: int, operator: SharedOperator, on_the_way: IntArray, lineage: Lineage
    ) -> IntArray:
        """Return the rows that visit an operator, given by number too."""
        visit_filter = self._visit_filters[number]
        if not isinstance(operator, SharedPredicate):
            return visit_filter.before(on_the_way, lineage.interested, operator.users)
        if self._learner.is_dear(number):
            visit_filter.check_again()
        if not operator.is_alternative:
            return visit_filter.before(on_the_way, lineage.interested, operator.requiring)
        wanted = self._queries.clauses.undecided(lineage, on_the_way, operator.name)
        if operator.requiring.any():
            wanted |= overlap(lineage.interested[on_the_way], operator.requiring)
        visitors: IntArray = on_the_way[wanted]
        return visitors

    def learnt(self) -> dict[str, LearntOperator]:
        """Return what was learnt of each operator, by name, in the order rows visit them."""
        return self._learner.learnt()

    def adopt(self, learnt: Mapping[str, LearntOperator]) -> None:
        """Begin with what another eddy over the same stream has learnt."""
        self._learner.adopt(learnt)

    def take_work(self) -> dict[str, tuple[int, float]]:
        """Return visits and microseconds of each operator since the last call.

        By name, in the order in which rows visit them now.
        """
        operators, taken = self.operators, self._work
        self._work = {}
        names = [operators[number].name for number in self._learner.order]
        return {name: taken.get(name, (0, 0.0)) for name in names}

    def take_counts(self) -> dict[int, int]:
        """Return the number of matches by query number since the last call, without zeros."""
        return self._queries.take_counts()

    def _finish(self, batch: Batch, lineage: Lineage) -> Matches:
        """Return the matches of a chunk that was routed, and count them."""
        queries = self._queries
        failures = self._settle_errors(batch, lineage) if lineage.errors else {}
        stored = queries.stored
        rows, slots = set_bits(lineage.interested & stored) if stored.any() else (_NONE, _NONE)
        queries.count(lineage.interested)
        return Matches(lineage.rows[rows], queries.numbers(slots), failures)

    def _settle_errors(self, batch: Batch, lineage: Lineage) -> dict[int, str]:
        """Return the errors that count: on rows that nothing else rejected for a query."""
        failures: dict[int, str] = {}
        for held in lineage.errors:
            slots = set_bits((lineage.interested[held.position] & held.users)[None])[1]
            if not len(slots):
                continue
            row = int(lineage.rows[held.position])
            described = batch.describe_row(row, held.operator.columns)
            values = ", ".join(f"{name}={value}" for name, value in described.items())
            said = f"{held.operator.name} raised {describe_error(held.error)}"
            for number in self._queries.numbers(slots).tolist():
                failures.setdefault(number, f"{said} on the row {values}")
        return failures
