"""Operators that many queries share, and how they mark the lineage of rows.

An operator has one bit for each query that it can reject rows for, and one for each clause that it
can fulfil. Rows are not copied for a query: what an operator found out is in the bitmaps.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.2.1,
3.2.6 and 3.2.7.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Bitmap, IntArray
from eddyline.fabric.held_errors import judge_in_parts
from eddyline.fabric.shared.clause_bits import BitWords, ClauseBits
from eddyline.fabric.shared.lineage import Compared, HeldError, Lineage
from eddyline.operators import Batch, Operator
from eddyline.operators.bitmaps import bit, widen
from eddyline.operators.domain import Domain
from eddyline.operators.grouped_filter import GroupedFilter
from eddyline.operators.value_set import ValueSet


class SharedOperator(abc.ABC):
    """Base of the operators of an eddy.

    Parameters
    ----------
    name
        Identifies the operator: a column, or the key of a predicate.
    words
        Number of words of a bitmap of queries.

    """

    def __init__(self, name: str, words: int) -> None:
        self.name = name
        #: Bitmap of the queries that use this operator: the column of their completion masks.
        self.users: Bitmap = np.zeros(words, dtype=np.uint64)

    @property
    def is_predicate(self) -> bool:
        """Whether it evaluates a predicate, which may take long; False for comparisons."""
        return False

    @property
    @abc.abstractmethod
    def predicates(self) -> int:
        """Number of predicates that a visit applies to a row."""

    @abc.abstractmethod
    def forget(self, slot: int, clauses: Sequence[ClauseBits]) -> None:
        """Remove all predicates of a query."""

    @abc.abstractmethod
    def visit(self, batch: Batch, lineage: Lineage, positions: IntArray) -> None:
        """Judge the rows at these positions of the lineage, and mark it."""

    @abc.abstractmethod
    def widen(self, words: BitWords) -> None:
        """Make room for more queries, clauses and terms."""


@dataclass
class ColumnValues:
    """Values of one column that are added to an operator.

    Parameters
    ----------
    required
        By the bit of a query: its rows have such a value.
    mixed
        By the bit of a clause with predicates: such a value fulfils it.
    singles
        By the bit of another clause: such a value fulfils it.
    terms
        By the bit of a term: another value refutes it.

    """

    required: dict[int, ValueSet] = field(default_factory=dict)
    mixed: dict[int, ValueSet] = field(default_factory=dict)
    singles: dict[int, ValueSet] = field(default_factory=dict)
    terms: dict[int, ValueSet] = field(default_factory=dict)


class SharedGroupedFilter(SharedOperator):
    """All comparisons of one column with constants, of all queries.

    Grouped filters: one rejects queries, one fulfils clauses with predicates, and two, for single
    alternatives and for terms, serve the check of the other clauses.
    """

    def __init__(self, name: str, domain: Domain, words: BitWords) -> None:
        super().__init__(name, words.queries)
        self._column = -1
        self._required = GroupedFilter(domain, True, words.queries)
        self._mixed = GroupedFilter(domain, False, words.mixed)
        #: By what is compared: the comparisons in clauses without predicates.
        self.checked = {
            Compared(name, False): GroupedFilter(domain, False, words.singles),
            Compared(name, True): GroupedFilter(domain, True, words.terms),
        }

    @property
    def predicates(self) -> int:
        """Number of predicates that a visit applies to a row."""
        return sum(map(len, self._groups))

    @property
    def _groups(self) -> list[GroupedFilter]:
        return [self._required, self._mixed, *self.checked.values()]

    def bind(self, column: int) -> None:
        """Set the position of the column in the batches to come."""
        self._column = column

    def use(self, slot: int) -> None:
        """Note that a query compares this column."""
        _set(self.users, slot)

    def add(self, values: ColumnValues) -> None:
        """Add values of this column."""
        kinds = (values.required, values.mixed, values.singles, values.terms)
        for group, values_by_slot in zip(self._groups, kinds, strict=True):
            if values_by_slot and not len(group):  # faster than one by one
                group.load(values_by_slot)
                continue
            for slot, own in values_by_slot.items():
                group.add(slot, own)

    def forget(self, slot: int, clauses: Sequence[ClauseBits]) -> None:
        """Remove all predicates of a query."""
        required, mixed, singles, terms = self._groups
        removed = [(required, slot)]
        for clause in clauses:
            if clause.single >= 0:
                removed.append((mixed if clause.has_predicates else singles, clause.single))
            removed += [(terms, term) for term in clause.terms]
        for group, own in removed:
            if own in group:
                group.remove(own)
        _clear(self.users, slot)

    def visit(self, batch: Batch, lineage: Lineage, positions: IntArray) -> None:
        """Find the region of each value; apply its bitmaps, or note it for the check of clauses."""
        whole = len(positions) == len(lineage.rows)
        rows = lineage.rows if whole else lineage.rows[positions]
        contiguous = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
        values = (
            batch.columns[self._column].slice(int(rows[0]), len(rows))
            if contiguous
            else batch.arrow(self._column, rows)
        )
        for group, bitmaps, combine in (
            (self._required, lineage.interested, np.bitwise_and),
            (self._mixed, lineage.fulfilled, np.bitwise_or),
        ):
            if not group.span.stop:  # no query has such a predicate
                continue
            own, accepting = bitmaps[:, group.span], group.accepting_in_span(values)
            if whole:
                combine(own, accepting, out=own)
            else:
                own[positions] = combine(own[positions], accepting)
        for compared, group in self.checked.items():
            if group.span.stop:
                lineage.regions_of(compared)[positions] = group.regions(values)

    def widen(self, words: BitWords) -> None:
        """Make room for more queries, clauses and terms."""
        self.users = widen(self.users, words.queries)
        for group, own_words in zip(self._groups, words, strict=True):
            if own_words > group.words:
                group.widen(own_words)


class SharedPredicate(SharedOperator):
    """A predicate that is evaluated once a row, however many queries have it."""

    def __init__(self, name: str, words: BitWords) -> None:
        super().__init__(name, words.queries)
        self._operator: Operator | None = None
        self._requiring: Bitmap = np.zeros(words.queries, dtype=np.uint64)
        self._fulfilling: Bitmap = np.zeros(words.mixed, dtype=np.uint64)

    @property
    def is_predicate(self) -> bool:
        """Always, whoever evaluates it."""
        return True

    @property
    def requiring(self) -> Bitmap:
        """Bitmap of the queries that it can reject rows for."""
        return self._requiring

    @property
    def is_alternative(self) -> bool:
        """Whether it can fulfil clauses."""
        return bool(self._fulfilling.any())

    @property
    def predicates(self) -> int:
        """Number of queries that a visit decides for."""
        return int(np.bitwise_count(self.users).sum())

    def bind(self, operator: Operator) -> None:
        """Set the operator that evaluates the predicate."""
        self._operator = operator

    def require(self, slot: int) -> None:
        """Let a query reject rows by this predicate."""
        _set(self._requiring, slot)
        _set(self.users, slot)

    def offer(self, slot: int, clause: int) -> None:
        """Let this predicate fulfil a clause of a query."""
        _set(self._fulfilling, clause)
        _set(self.users, slot)

    def forget(self, slot: int, clauses: Sequence[ClauseBits]) -> None:
        """Remove a query."""
        _clear(self._requiring, slot)
        for clause in clauses:
            if clause.has_predicates:
                _clear(self._fulfilling, clause.single)
        _clear(self.users, slot)

    def visit(self, batch: Batch, lineage: Lineage, positions: IntArray) -> None:
        """Evaluate the predicate; a row that it raises on counts as accepted until the end."""
        assert self._operator is not None, f"{self.name} was not bound to an operator"
        outcome = judge_in_parts(self._operator, batch, lineage.rows[positions])
        for position, error in (outcome.errors or {}).items():
            lineage.errors.append(
                HeldError(self._operator, self.users, int(positions[position]), error)
            )
        lineage.interested[positions[~outcome.passed]] &= ~self._requiring
        lineage.fulfilled[positions[outcome.passed]] |= self._fulfilling

    def widen(self, words: BitWords) -> None:
        """Make room for more queries and clauses."""
        self.users = widen(self.users, words.queries)
        self._requiring = widen(self._requiring, words.queries)
        self._fulfilling = widen(self._fulfilling, words.mixed)


def _set(bitmap: Bitmap, slot: int) -> None:
    word, mask = bit(slot)
    bitmap[word] |= mask


def _clear(bitmap: Bitmap, slot: int) -> None:
    word, mask = bit(slot)
    bitmap[word] &= ~mask
