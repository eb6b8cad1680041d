"""The operators table of an eddy: which operators there are, and which queries need which.

A completion mask, in CACQ, has a bit for each operator that a row must have visited before it is
output to a query. The masks are kept transposed, as a bitmap of queries with each operator
(`SharedOperator.users`), because there are far fewer operators than queries.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eddyline.arrays import Bitmap
from eddyline.fabric.shared.clause_bits import BitWords, ClauseBits
from eddyline.fabric.shared.clauses import ClauseTable
from eddyline.fabric.shared.lineage import Compared
from eddyline.fabric.shared.operators import (
    ColumnValues,
    SharedGroupedFilter,
    SharedOperator,
    SharedPredicate,
)
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import Operator
from eddyline.operators.bitmaps import bit
from eddyline.operators.domain import Domain
from eddyline.operators.region_tables import RegionTables


class OperatorTable:
    """Shared operators by name and by number.

    An operator's number is its place in the table, which is also its bit in `Lineage.done`.
    Numbers change when operators come and go, which is never while rows are on their way.

    Parameters
    ----------
    domains
        For each column that may be compared with constants, its domain.

    """

    def __init__(self, domains: Mapping[str, Domain]) -> None:
        self._domains = dict(domains)
        self._operators: dict[str, SharedOperator] = {}
        self._words = BitWords()

    def __len__(self) -> int:
        return len(self._operators)

    def __iter__(self) -> Iterator[SharedOperator]:
        return iter(self._operators.values())

    # --- queries come and go -----------------------------------------------------------------

    def add(self, queries: Mapping[int, SharedQuery], clauses: ClauseTable) -> None:
        """Add the predicates of queries to the operators.

        Parameters
        ----------
        queries
            By slot.
        clauses
            The bits of their clauses.

        """
        added: dict[str, ColumnValues] = {}
        for slot, query in queries.items():
            for column, values in query.accepts.items():
                added.setdefault(column, ColumnValues()).required[slot] = values
            for key in query.needs:
                self._predicate(key).require(slot)
            for clause, bits in zip(query.clauses, clauses.of(slot), strict=True):
                for column, values in clause.accepts.items():
                    own = added.setdefault(column, ColumnValues())
                    (own.mixed if bits.has_predicates else own.singles)[bits.single] = values
                for term, term_slot in zip(clause.terms, bits.terms, strict=True):
                    for column, values in term.items():
                        added.setdefault(column, ColumnValues()).terms[term_slot] = values
                for column in clause.columns:
                    self._grouped_filter(column).use(slot)
                for key in clause.needs:
                    self._predicate(key).offer(slot, bits.single)
            for column in query.accepts:
                self._grouped_filter(column).use(slot)
        for column, own in added.items():
            self._grouped_filter(column).add(own)

    def remove(self, slot: int, clauses: Sequence[ClauseBits]) -> None:
        """Remove the predicates of a query, and operators that no query uses any more."""
        for operator in self._used_by(slot):
            operator.forget(slot, clauses)
            if not operator.users.any():
                del self._operators[operator.name]

    def widen(self, words: BitWords) -> None:
        """Make room for more queries, clauses and terms."""
        if words != self._words:
            self._words = words
            for operator in self._operators.values():
                operator.widen(words)

    def bind(self, columns: Mapping[str, int], predicates: Mapping[str, Operator]) -> None:
        """Set positions of columns in the batches to come, and the operators of predicates."""
        for key, operator in self._operators.items():
            if isinstance(operator, SharedGroupedFilter):
                operator.bind(columns[key])
            elif isinstance(operator, SharedPredicate):
                operator.bind(predicates[key])

    def tables(self) -> dict[Compared, RegionTables]:
        """Return what makes the tables that clauses are checked by; valid until a change."""
        return {
            compared: group.tables()
            for operator in self._operators.values()
            if isinstance(operator, SharedGroupedFilter)
            for compared, group in operator.checked.items()
            if len(group)
        }

    # --- completion masks --------------------------------------------------------------------

    def completion(self, slot: int) -> int:
        """Return the completion mask of a query; bit n is the n-th operator."""
        word, mask = bit(slot)
        numbers = [n for n, operator in enumerate(self) if operator.users[word] & mask]
        return sum(1 << number for number in numbers)

    def incomplete_after(self, order: Sequence[int]) -> dict[int, Bitmap | None]:
        """Return, for each operator of an order, the queries that are incomplete after it.

        These are the queries whose completion mask is not covered by the operators done so far:
        those that use an operator which is still ready. None after the last operator.
        """
        operators = list(self)
        incomplete: dict[int, Bitmap | None] = {}
        users: Bitmap | None = None
        for number in reversed(order):
            incomplete[number] = users
            own = operators[number].users
            users = own if users is None else users | own
        return incomplete

    # --- inside ------------------------------------------------------------------------------

    def _used_by(self, slot: int) -> list[SharedOperator]:
        word, mask = bit(slot)
        return [operator for operator in self if operator.users[word] & mask]

    def _grouped_filter(self, column: str) -> SharedGroupedFilter:
        operator = self._operators.get(column)
        if operator is None:
            domain = self._domains[column]
            operator = SharedGroupedFilter(column, domain, self._words)
            self._operators[column] = operator
        assert isinstance(operator, SharedGroupedFilter)
        return operator

    def _predicate(self, key: str) -> SharedPredicate:
        operator = self._operators.get(key)
        if operator is None:
            operator = SharedPredicate(key, self._words)
            self._operators[key] = operator
        assert isinstance(operator, SharedPredicate)
        return operator
