"""A flow: one eddy for all queries over one source.

Every row is read once. Its lineage says which operators it has visited, which queries are still
interested in it and which clauses are fulfilled; an operator is visited only if some interested
query needs it, in an order that is learnt.

The property everything rests on: a query keeps its bit in a row's `interested` bitmap exactly as
long as no operator has rejected the row for it, and a row is not finished before each operator that
an interested query uses is done. So what is left in the end are the matches.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Bitmap, IntArray
from eddyline.fabric.shared.operators import (
    Lineage,
    SharedOperator,
    SharedPredicate,
    SharedValues,
)
from eddyline.fabric.shared.query import Clause, StandingQuery
from eddyline.fabric.shared.visit_filter import Mostly, is_in
from eddyline.operators import Batch, Operator
from eddyline.operators.bitmaps import ColumnCounter, bit, bitmap_of, set_bits, widen, words_for
from eddyline.operators.domain import Domain
from eddyline.operators.value_set import ValueSet
from eddyline.ordering import Evidence, Policy
from eddyline.ordering.tickets import Tickets
from eddyline.profile import CostModel

# Bitmaps of the rows that are worked on together should fit into a core's cache.
CHUNK_WORDS = 1 << 17
CHUNK_ROWS_MIN = 64
_NOBODY = -1
_NONE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass
class Matched:
    """What became of the rows of a batch.

    Parameters
    ----------
    rows, numbers
        Each match of a query that wants its rows: position in the batch, number of the query.
    failures
        For queries that could not judge a row nothing else rejects: the predicate and the error.

    """

    rows: IntArray
    numbers: IntArray
    failures: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Sequence[Matched]) -> Matched:
        """Return what became of several parts of a batch, as one."""
        whole = cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.numbers for part in parts]),
        )
        for part in parts:
            for number, error in part.failures.items():
                whole.failures.setdefault(number, error)
        return whole


class Slots:
    """Numbers of bits. Those of dropped queries are given out again, the lowest first."""

    def __init__(self) -> None:
        self._free: list[int] = []  # a heap
        self.used = 0

    def take(self) -> int:
        """Return a bit that nobody has."""
        if self._free:
            return heapq.heappop(self._free)
        self.used += 1
        return self.used - 1

    def give_back(self, slot: int) -> None:
        """Let a bit be given to somebody else."""
        heapq.heappush(self._free, slot)


class Flow:
    """Runs all queries over one source at once.

    Parameters
    ----------
    domains
        For each column that may be compared with constants, what it holds.
    policy
        Decides the order of the operators; `Tickets` unless given.
    seed
        For whatever the policy draws.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from eddyline.operators import ColumnReader
    >>> from eddyline.operators.domain import Whole
    >>> lux = Whole()
    >>> flow = Flow({"lux": lux})
    >>> flow.add([StandingQuery(1, {"lux": lux.compare(">", 500)}),
    ...           StandingQuery(2, {"lux": lux.compare("<", 800)})])
    >>> flow.bind({"lux": 0}, {})
    >>> matched = flow.run(Batch([pa.array([100, 600, 900])], [ColumnReader("lux")]))
    >>> list(zip(matched.rows.tolist(), matched.numbers.tolist()))
    [(0, 2), (1, 1), (1, 2), (2, 1)]
    >>> flow.take_counts()
    {1: 2, 2: 2}

    """

    def __init__(
        self, domains: Mapping[str, Domain], policy: Policy | None = None, seed: int | None = None
    ) -> None:
        self._domains = dict(domains)
        self.policy = policy if policy is not None else Tickets()
        self._seed = seed
        self._slots, self._clause_slots = Slots(), Slots()
        self._words, self._clause_words = 1, 1
        self._operators: dict[str, SharedOperator] = {}
        self._costs: dict[str, CostModel] = {}
        self._array: list[SharedOperator] = []
        self._mostly: list[Mostly] = []
        self._number_of_slot = np.full(64, _NOBODY, dtype=np.int32)
        self._active: Bitmap = np.zeros(1, dtype=np.uint64)
        self._stored: Bitmap = np.zeros(1, dtype=np.uint64)
        self._clauses_of_slot: dict[int, list[int]] = {}
        self._counter = ColumnCounter(1)
        self.policy.start(0, seed=seed)
        self.visits = 0
        self.rows = 0

    def __len__(self) -> int:
        return int(np.bitwise_count(self._active).sum())

    @property
    def operators(self) -> list[SharedOperator]:
        """The operators in use; a row's `done` bitmap has a bit for each, in this order."""
        return self._array

    @property
    def words(self) -> int:
        """Words of the bitmap of interested queries that each row has."""
        return self._words

    @property
    def size_bytes(self) -> int:
        """Memory of everything that grows with the number of queries, but not with rows."""
        filters = sum(
            operator.required.size_bytes + operator.alternatives.size_bytes
            for operator in self._array
            if isinstance(operator, SharedValues)
        )
        masks = sum(operator.users.nbytes for operator in self._array)
        tables = self._number_of_slot.nbytes + self._active.nbytes + self._stored.nbytes
        return filters + masks + tables

    # --- queries come and go ---------------------------------------------------------------

    def add(self, queries: Iterable[StandingQuery]) -> None:
        """Take in queries; they see the batches that come from now on."""
        queries = list(queries)
        numbers = np.array([query.number for query in queries], dtype=np.int32)
        known = numbers[np.isin(numbers, self._number_of_slot)]
        if len(known) or len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"a query is here already, or given twice: {known[:3].tolist()}")
        slots = [self._slots.take() for _ in queries]
        clauses = [[self._clause_slots.take() for _ in query.clauses] for query in queries]
        self._widen()
        is_first = not self._operators
        loaded: dict[str, dict[int, ValueSet]] = {}
        for query, slot, own_clauses in zip(queries, slots, clauses, strict=True):
            self._number_of_slot[slot] = query.number
            word, mask = bit(slot)
            self._active[word] |= mask
            if query.is_stored:
                self._stored[word] |= mask
            for column, values in query.accepts.items():
                if is_first:
                    loaded.setdefault(column, {})[slot] = values
                else:
                    self._values(column).require(slot, values)
            for key in query.needs:
                self._predicate(key).require(slot)
            if own_clauses:
                self._clauses_of_slot[slot] = own_clauses
            for clause, at in zip(query.clauses, own_clauses, strict=True):
                self._add_clause(slot, clause, at)
        for column, values_by_slot in loaded.items():
            self._values(column).load(values_by_slot)
        self._renew_array()

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget queries; their bits are given to others. Take the counts before, if wanted."""
        for number in numbers:
            slot = self._slot_of(number)
            clauses = self._clauses_of_slot.pop(slot, [])
            for operator in self.completion(number):
                operator.forget(slot, clauses)
                if not operator.users.any():
                    del self._operators[operator.name]
            word, mask = bit(slot)
            self._active[word] &= ~mask
            self._stored[word] &= ~mask
            self._number_of_slot[slot] = _NOBODY
            self._slots.give_back(slot)
            for clause in clauses:
                self._clause_slots.give_back(clause)
        self._renew_array()

    def completion(self, number: int) -> list[SharedOperator]:
        """Return the operators that a row must have visited before it matches the query.

        The masks are kept by operator, as bitmaps of queries: there are far fewer of those.
        """
        word, mask = bit(self._slot_of(number))
        return [o for o in self._operators.values() if o.users[word] & mask]

    def _slot_of(self, number: int) -> int:
        (found,) = np.flatnonzero(self._number_of_slot == number)
        return int(found)

    def bind(self, columns: Mapping[str, int], predicates: Mapping[str, Operator]) -> None:
        """Say where columns are in the batches to come, and which predicate a key stands for."""
        for key, operator in self._operators.items():
            if isinstance(operator, SharedValues):
                operator.column = columns[key]
            elif isinstance(operator, SharedPredicate):
                operator.operator = predicates[key]

    def _values(self, column: str) -> SharedValues:
        operator = self._operators.get(column)
        if operator is None:
            operator = SharedValues(column, self._domains[column], self._words, self._clause_words)
            self._operators[column] = operator
        assert isinstance(operator, SharedValues)
        return operator

    def _predicate(self, key: str) -> SharedPredicate:
        operator = self._operators.get(key)
        if operator is None:
            operator = SharedPredicate(key, self._words, self._clause_words)
            self._operators[key] = operator
        assert isinstance(operator, SharedPredicate)
        return operator

    def _add_clause(self, slot: int, clause: Clause, at: int) -> None:
        for column, values in clause.accepts.items():
            self._values(column).offer(slot, at, values)
        for key in clause.needs:
            self._predicate(key).offer(slot, at)

    def _widen(self) -> None:
        words, clause_words = words_for(self._slots.used), words_for(self._clause_slots.used)
        if words > self._words or clause_words > self._clause_words:
            # By a quarter more than needed: adding queries one by one widens but rarely.
            if words > self._words:
                self._words = max(words, self._words * 5 // 4)
                self._active = widen(self._active, self._words)
                self._stored = widen(self._stored, self._words)
                self._counter.widen(self._words)
                added = self._words * 64 - len(self._number_of_slot)
                self._number_of_slot = np.append(
                    self._number_of_slot, np.full(added, _NOBODY, dtype=np.int32)
                )
            if clause_words > self._clause_words:
                self._clause_words = max(clause_words, self._clause_words * 5 // 4)
            for operator in self._operators.values():
                operator.widen(self._words, self._clause_words)

    def _renew_array(self) -> None:
        """Let the policy begin anew if there are other operators than before."""
        array = list(self._operators.values())
        if [o.name for o in array] != [o.name for o in self._array]:
            before = [self._array[n].name for n in self.policy.order] if self._array else []
            order = {o.name: n for n, o in enumerate(array)}
            kept = [order[name] for name in before if name in order]
            order_of_new = [n for n in range(len(array)) if n not in set(kept)]
            self._array = array
            self._mostly = [Mostly() for _ in array]
            self._costs = {o.name: self._costs.get(o.name) or CostModel() for o in array}
            self.policy.start(len(array), [*order_of_new, *kept], self._seed)
        if isinstance(self.policy, Tickets):
            self.policy.weigh([operator.predicates for operator in array])

    # --- rows -------------------------------------------------------------------------------

    def run(self, batch: Batch) -> Matched:
        """Find all matches of all queries among the rows of a batch."""
        chunk_rows = max(CHUNK_ROWS_MIN, CHUNK_WORDS // self._words)
        parts = [
            self._finish(batch, self._route(batch, np.arange(begin, min(begin + chunk_rows, rows))))
            for rows in (batch.rows,)
            for begin in range(0, rows, chunk_rows)
        ]
        if not parts:
            return Matched(_NONE, _NONE)
        return parts[0] if len(parts) == 1 else Matched.of(parts)

    def _route(self, batch: Batch, rows: IntArray) -> Lineage:
        """Send rows from operator to operator until no interested query needs another."""
        count, array, order = len(rows), self._array, self.policy.order
        lineage = Lineage(
            rows,
            np.repeat(self._active[None], count, axis=0),
            np.zeros((count, self._clause_words), dtype=np.uint64),
            np.zeros((count, words_for(len(array))), dtype=np.uint64),
        )
        seen = np.zeros(len(array), dtype=np.int64)
        passed = np.zeros(len(array), dtype=np.int64)
        open_ = np.arange(count)
        needed_later = self._users_behind(order)
        for number, later in zip(order, needed_later, strict=True):
            operator, mostly = array[number], self._mostly[number]
            at = mostly.wanted(open_, lineage.interested, operator.users)
            if len(at):
                began = time.perf_counter()
                operator.visit(batch, lineage, at)
                elapsed_us = (time.perf_counter() - began) * 1e6
                self._costs[operator.name].add(len(at), elapsed_us)
                word, mask = bit(number)
                lineage.done[at if len(at) < count else slice(None), word] |= mask
                seen[number] = len(at)
            if later is None:
                break
            open_ = mostly.needed(open_, lineage.interested, later)
            passed[number] = np.count_nonzero(is_in(at, open_, count))
            if not len(open_):
                break
        self.rows += count
        self.visits += int(seen.sum())
        if self.policy.learns and count and array:
            self._learn(batch, lineage, seen, passed)
        return lineage

    def _users_behind(self, order: Sequence[int]) -> list[Bitmap | None]:
        """Return for each operator the queries that use one of those after it; None for none."""
        later: list[Bitmap | None] = []
        users: Bitmap | None = None
        for number in reversed(order):
            later.append(users)
            own = self._array[number].users
            users = own if users is None else users | own
        return later[::-1]

    def _learn(self, batch: Batch, lineage: Lineage, seen: IntArray, passed: IntArray) -> None:
        # One not yet visited counts as cheap, so that it is tried soon.
        costs = [max(self._costs[operator.name].per_row_us, 1e-3) for operator in self._array]
        self.policy.learn(
            Evidence(
                len(lineage.rows),
                self.policy.order,
                seen,
                passed,
                np.array(costs),
                self._profile(batch, lineage),
            )
        )

    def _profile(self, batch: Batch, lineage: Lineage) -> np.ndarray:
        """For some rows: which operators, alone, reject them for all queries that use them."""
        count, share = len(lineage.rows), self.policy.profile_probability
        picked: IntArray = (
            np.flatnonzero(self.policy.rng.random(count) < share)
            if share
            else np.zeros(0, dtype=np.int64)
        )
        drops = np.zeros((len(picked), len(self._array)), dtype=bool)
        if not len(picked):
            return drops
        for number, operator in enumerate(self._array):
            fresh = Lineage(
                lineage.rows[picked],
                np.repeat(operator.users[None], len(picked), axis=0),
                np.zeros((len(picked), self._clause_words), dtype=np.uint64),
                np.zeros((len(picked), 1), dtype=np.uint64),
            )
            operator.visit(batch, fresh, np.arange(len(picked)))
            drops[:, number] = ~fresh.interested.any(axis=1) & ~fresh.fulfilled.any(axis=1)
        return drops

    def _finish(self, batch: Batch, lineage: Lineage) -> Matched:
        """Reject rows for queries with an unfulfilled clause; what is left are the matches."""
        interested = lineage.interested
        for slot, clauses in self._clauses_of_slot.items():
            mask = bitmap_of(clauses, self._clause_words)
            unfulfilled = ((lineage.fulfilled & mask) != mask).any(axis=1)
            word, own = bit(slot)
            interested[unfulfilled, word] &= ~own
        failures = self._settle(batch, lineage) if lineage.failures else {}
        rows, at = set_bits(interested & self._stored) if self._stored.any() else (_NONE, _NONE)
        self._counter.add(interested)
        return Matched(lineage.rows[rows], self._number_of_slot[at].astype(np.int64), failures)

    def take_counts(self) -> dict[int, int]:
        """Return how many rows each query matched since this was last asked, if any."""
        counted = self._counter.counts()
        slots = np.flatnonzero(counted)
        self._counter = ColumnCounter(self._words)
        return dict(zip(self._number_of_slot[slots].tolist(), counted[slots].tolist(), strict=True))

    def _settle(self, batch: Batch, lineage: Lineage) -> dict[int, str]:
        """Act on rows that an operator could not judge, where nothing else rejected them."""
        failures: dict[int, str] = {}
        for operator, at, error in lineage.failures:
            concerned = set_bits((lineage.interested[at] & operator.users)[None])[1]
            if not len(concerned):
                continue
            judge = operator.operator
            assert judge is not None
            values = batch.describe_row(int(lineage.rows[at]), judge.columns)
            for slot in concerned:
                failures.setdefault(
                    int(self._number_of_slot[slot]),
                    f"{judge.name} raised {type(error).__name__}: {error} on the row {values}",
                )
        return failures
