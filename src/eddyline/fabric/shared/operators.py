"""Operators that many queries share, and how they mark a row's lineage.

An operator has a bit for each query that it can reject (`users`), and one for each alternative
that it can fulfil. Rows are not copied for a query; what is known of them is in the bitmaps.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.fabric.held_errors import judge_in_parts
from eddyline.operators import Batch, Operator
from eddyline.operators.bitmaps import bit, bitmap_of, widen
from eddyline.operators.domain import Domain
from eddyline.operators.grouped_filter import GroupedFilter
from eddyline.operators.value_set import ValueSet


@dataclass
class Lineage:
    """What is known of some rows of a batch.

    Parameters
    ----------
    rows
        Positions in the batch, ascending.
    interested
        For each row, the queries that neither rejected it nor lack an operator it has not visited.
    fulfilled
        For each row, the clauses of which an alternative was found to hold.
    done
        For each row, the operators it has visited.
    failures
        Rows that an operator could not judge, by position here, and why. They count as accepted.

    """

    rows: IntArray
    interested: Bitmaps
    fulfilled: Bitmaps
    done: Bitmaps
    failures: list[tuple[SharedPredicate, int, Exception]] = field(default_factory=list)


class SharedOperator(abc.ABC):
    """Base of the operators of a flow."""

    def __init__(self, name: str, words: int, clause_words: int) -> None:
        self.name = name
        self.users: Bitmap = np.zeros(words, dtype=np.uint64)
        self.clause_words = clause_words

    @property
    @abc.abstractmethod
    def predicates(self) -> int:
        """How many predicates it applies to a row."""

    @abc.abstractmethod
    def forget(self, slot: int, clauses: list[int]) -> None:
        """Forget all predicates of a query."""

    @abc.abstractmethod
    def visit(self, batch: Batch, lineage: Lineage, at: IntArray) -> None:
        """Judge the rows at these positions of the lineage, and mark it."""

    def widen(self, words: int, clause_words: int) -> None:
        """Make room for more queries and clauses."""
        self.users = widen(self.users, words)
        self.clause_words = clause_words

    def _use(self, slot: int, is_used: bool) -> None:
        word, mask = bit(slot)
        if is_used:
            self.users[word] |= mask
        else:
            self.users[word] &= ~mask


class SharedValues(SharedOperator):
    """Grouped filters of one column: one that rejects queries, one that fulfils alternatives."""

    def __init__(self, name: str, domain: Domain, words: int, clause_words: int) -> None:
        super().__init__(name, words, clause_words)
        self.column = -1
        self.required = GroupedFilter(domain, True, words)
        self.alternatives = GroupedFilter(domain, False, clause_words)

    @property
    def predicates(self) -> int:
        """How many predicates it applies to a row."""
        return len(self.required) + len(self.alternatives)

    def load(self, values: Mapping[int, ValueSet]) -> None:
        """Let many queries reject rows by this column; the first to do so."""
        self.required.load(values)
        self.users |= bitmap_of(values, len(self.users))

    def require(self, slot: int, values: ValueSet) -> None:
        """Let a query reject rows by this column."""
        self.required.add(slot, values)
        self._use(slot, True)

    def offer(self, slot: int, clause: int, values: ValueSet) -> None:
        """Let values of this column fulfil a clause of a query."""
        self.alternatives.add(clause, values)
        self._use(slot, True)

    def forget(self, slot: int, clauses: list[int]) -> None:
        """Forget all predicates of a query."""
        if slot in self.required:
            self.required.remove(slot)
        for clause in clauses:
            if clause in self.alternatives:
                self.alternatives.remove(clause)
        self._use(slot, False)

    def visit(self, batch: Batch, lineage: Lineage, at: IntArray) -> None:
        """Find the region of each value and take its bitmaps."""
        whole = len(at) == len(lineage.rows)
        rows = lineage.rows if whole else lineage.rows[at]
        contiguous = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
        values = (
            batch.columns[self.column].slice(int(rows[0]), len(rows))
            if contiguous
            else batch.arrow(self.column, rows)
        )
        if len(self.required):
            accepting = self.required.accepting(values)
            if whole:
                lineage.interested &= accepting
            else:
                lineage.interested[at] &= accepting
        if len(self.alternatives):
            lineage.fulfilled[at] |= self.alternatives.accepting(values)

    def widen(self, words: int, clause_words: int) -> None:
        """Make room for more queries and clauses."""
        super().widen(words, clause_words)
        if words > self.required.words:
            self.required.widen(words)
        if clause_words > self.alternatives.words:
            self.alternatives.widen(clause_words)


class SharedPredicate(SharedOperator):
    """A predicate that is evaluated once, however many queries have it."""

    def __init__(self, name: str, words: int, clause_words: int) -> None:
        super().__init__(name, words, clause_words)
        self.operator: Operator | None = None
        self._requiring: Bitmap = np.zeros(words, dtype=np.uint64)
        self._fulfilling: Bitmap = np.zeros(clause_words, dtype=np.uint64)

    @property
    def predicates(self) -> int:
        """How many queries it is applied for."""
        return int(np.bitwise_count(self.users).sum())

    def require(self, slot: int) -> None:
        """Let a query reject rows by this predicate."""
        word, mask = bit(slot)
        self._requiring[word] |= mask
        self._use(slot, True)

    def offer(self, slot: int, clause: int) -> None:
        """Let this predicate fulfil a clause of a query."""
        word, mask = bit(clause)
        self._fulfilling[word] |= mask
        self._use(slot, True)

    def forget(self, slot: int, clauses: list[int]) -> None:
        """Forget a query."""
        word, mask = bit(slot)
        self._requiring[word] &= ~mask
        for clause in clauses:
            word, mask = bit(clause)
            self._fulfilling[word] &= ~mask
        self._use(slot, False)

    def visit(self, batch: Batch, lineage: Lineage, at: IntArray) -> None:
        """Evaluate the predicate on the rows that some query still wants."""
        assert self.operator is not None, f"{self.name} was not bound to an operator"
        outcome = judge_in_parts(self.operator, batch, lineage.rows[at])
        for position, error in (outcome.errors or {}).items():
            lineage.failures.append((self, int(at[position]), error))
        lineage.interested[at[~outcome.passed]] &= ~self._requiring
        lineage.fulfilled[at[outcome.passed]] |= self._fulfilling

    def widen(self, words: int, clause_words: int) -> None:
        """Make room for more queries and clauses."""
        super().widen(words, clause_words)
        self._requiring = widen(self._requiring, words)
        self._fulfilling = widen(self._fulfilling, clause_words)
