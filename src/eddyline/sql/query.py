"""A query, taken apart: what an eddy decides, and what is left for Spark to do with its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class Window:
    """How long rows count: `WINDOW 30 SECONDS`, `WINDOW 100 ROWS`."""

    size: int
    unit: str


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate that is evaluated once for all queries that have it.

    Parameters
    ----------
    key
        Equal for equal predicates.
    condition
        As Spark SQL over the columns of `STREAM`; empty if a Python function decides.
    function, arguments
        The registered Python function that is called, and with what, as Spark SQL.
    comparison, constant
        What is asked of its answer: nothing but that it is true (""), that it is false ("not"), or
        how it compares with a constant.

    """

    key: str
    condition: str
    function: str | None = None
    arguments: tuple[str, ...] = ()
    comparison: str = ""
    constant: int | float | str | None = None


@dataclass(frozen=True, slots=True)
class LookupSpec:
    """A static table that a row must have a partner in.

    Parameters
    ----------
    key
        Equal for equal lookups.
    table
        Name of the registered table.
    columns, keys
        Columns of the stream, and the table's columns that must equal them.
    condition
        What a partner must fulfil besides, as Spark SQL over the table; empty for nothing.

    """

    key: str
    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True)
class Query:
    """A query over one stream and any number of static tables.

    Parameters
    ----------
    text
        As it was written.
    stream
        The stream it reads.
    accepts, clauses, predicates, lookups
        What a row of the stream must fulfil.
    columns
        Those of the stream that the result is made of.
    result
        SQL that makes the result from the rows that fulfil all this; `{rows}` stands for them and
        `{table_name}` for a static table.
    required
        Those of the predicates, by key, that must hold by themselves; others stand in clauses.
    functions
        The registered Python functions it calls, wherever.
    tables
        The static tables it joins.
    conditions
        All that a row must fulfil and that calls no Python function, in the written order.
    written, understood
        The whole query as it was given and as it was read, with placeholders as in `result`.
    window
        Its window, if it has one.
    is_plain
        Whether all it selects are columns of the stream, as they are.

    """

    text: str
    stream: str
    accepts: Mapping[str, ValueSet]
    clauses: tuple[Clause, ...]
    predicates: tuple[PredicateSpec, ...]
    required: tuple[str, ...]
    lookups: tuple[LookupSpec, ...]
    columns: tuple[str, ...]
    result: str
    tables: tuple[str, ...] = ()
    window: Window | None = None
    is_plain: bool = True
    functions: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    written: str = ""
    understood: str = ""

    def judged_by_spark(self) -> Query:
        """Return the query with all conditions of Spark's as one predicate, in the written order.

        For conditions that could fail on a row: those before may be there to protect them. What is
        compared with constants is still compared before; that cannot fail.
        """
        text = " AND ".join(f"({condition})" for condition in self.conditions)
        whole = PredicateSpec(text, text)
        called = [spec for spec in self.predicates if spec.function is not None]
        required = [spec.key for spec in called if spec.key in self.required]
        keys = {spec.key for spec in called}
        clauses = tuple(clause for clause in self.clauses if keys & set(clause.needs))
        keys |= {key for clause in clauses for key in clause.needs}
        return replace(
            self,
            clauses=clauses,
            predicates=(whole, *[spec for spec in self.predicates if spec.key in keys]),
            required=(whole.key, *required),
        )

    def shared(self, number: int, is_stored: bool) -> SharedQuery:
        """Return the parts that an eddy shares with other queries."""
        needs = (*self.required, *[lookup.key for lookup in self.lookups])
        return SharedQuery(number, self.accepts, needs, self.clauses, is_stored)
