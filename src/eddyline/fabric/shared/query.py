"""What a continuous query asks of the rows of one stream, split into parts that can be shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.operators.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class Clause:
    """A disjunction: at least one alternative must hold. Without alternatives it never holds.

    Parameters
    ----------
    accepts
        Alternatives on single columns: the accepted values, by column.
    needs
        Alternatives that are shared predicates, by key.
    terms
        Alternatives that are conjunctions: the accepted values of several columns, by column, all
        of which must hold. A clause has terms or shared predicates, not both.

    """

    accepts: Mapping[str, ValueSet] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    terms: tuple[Mapping[str, ValueSet], ...] = ()

    def __post_init__(self) -> None:
        if self.needs and self.terms:
            raise ValueError("a clause has terms or shared predicates, not both")

    @property
    def columns(self) -> set[str]:
        """Columns that it compares with constants."""
        return {*self.accepts, *[name for term in self.terms for name in term]}

    @property
    def operators(self) -> set[str]:
        """Names of the operators that it needs: columns, and keys of predicates."""
        return {*self.columns, *self.needs}


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """A query over one stream in conjunctive normal form: all of its parts must hold.

    Parameters
    ----------
    number
        Identifies the query permanently. Its slot, the position of its bit, is handed out apart
        from it and serves another query after this one was dropped.
    accepts
        For columns that are compared with constants, the accepted values.
    needs
        Predicates that must hold, by key. Queries with the same key share the predicate.
    clauses
        Disjunctions that do not reduce to the values of one column.
    is_stored
        Whether matching rows are wanted; False if only their number is.

    References
    ----------
    Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections
    3.2.1 and 3.2.7.

    """

    number: int
    accepts: Mapping[str, ValueSet] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    clauses: tuple[Clause, ...] = ()
    is_stored: bool = True

    @property
    def operators(self) -> set[str]:
        """Names of the operators that it needs: columns, and keys of predicates.

        Examples
        --------
        >>> sorted(SharedQuery(1, needs=("f(a)",), clauses=(Clause(needs=("g(b)",)),)).operators)
        ['f(a)', 'g(b)']

        """
        names = {*self.accepts, *self.needs}
        for clause in self.clauses:
            names |= clause.operators
        return names
