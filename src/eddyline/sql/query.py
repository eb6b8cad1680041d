"""A compiled query: the filters that queries share, and the SQL that makes its result."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.value_set import ValueSet
from eddyline.sql.specs import (
    BoundSpec,
    KeyText,
    LookupSpec,
    OrderedFilter,
    PredicateSpec,
    SourceSpec,
    Window,
    guarded_by,
)


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """The join of several streams in a query.

    Parameters
    ----------
    parts
        For each stream in FROM, the conditions on it alone, as a query over that stream.
    equalities
        Pairs of keys that must be equal.
    windows_us
        For each stream, how much older than the youngest row of a result its row may be,
        exclusive, as far as the query says so in terms of time; None if it does not.
    bounds
        What comparisons across streams say of the values of two of them.
    is_filtered
        True if conditions are left that Spark evaluates when the result is read.

    """

    parts: tuple[Query, ...]
    equalities: tuple[tuple[KeyText, KeyText], ...]
    windows_us: tuple[int | None, ...]
    bounds: tuple[BoundSpec, ...]
    is_filtered: bool


@dataclass(frozen=True, kw_only=True)
class Query:
    """A continuous query over one or several streams and any number of static tables.

    Parameters
    ----------
    text
        SQL as the user wrote it.
    sources
        Items of FROM in their written order.
    accepts
        By column, the values that comparisons with constants accept.
    predicates
        Shared predicates, both required ones and alternatives in clauses.
    required
        Keys of the predicates that must be true for every result row.
    clauses
        Disjunctions that are neither one column's values nor one predicate.
    lookups
        Static tables in which a row must have a partner.
    conditions
        Conditions on the stream that call no Python function, as Spark SQL in the written order.
    ordered
        The same filter in the order of Spark's evaluation; None if all alternatives of every OR
        are native, or none is.
    where
        All conditions on the stream as one condition in the written order, as Spark SQL; empty
        for none.
    computed
        Items of SELECT that are more than a column, as Spark SQL. Columns of static tables cannot
        be told from those of the stream here.
    has_lateral_aliases
        True if an item of SELECT refers to the alias of an earlier one.
    functions
        Names of the registered Python functions that the query calls, in SELECT included.
    is_plain
        True if the query selects only unmodified columns of the stream.
    generates_rows
        True if SELECT has a function that makes several rows of one, such as `explode`.
    result
        SQL that computes the result from the rows that pass. `{rows}` stands for these rows and
        `{table_name}` for a static table.
    written, understood
        The whole query as written and as parsed, with the same placeholders. Spark must give
        both the same meaning (`docs/decisions/0012`).
    join
        How streams are joined; None for a query over one stream. The conditions of a query over
        several streams are in its parts.

    """

    text: str
    sources: tuple[SourceSpec, ...]
    accepts: Mapping[str, ValueSet]
    predicates: tuple[PredicateSpec, ...]
    required: tuple[str, ...]
    clauses: tuple[Clause, ...]
    lookups: tuple[LookupSpec, ...]
    conditions: tuple[str, ...]
    ordered: OrderedFilter | None
    where: str
    computed: tuple[str, ...]
    has_lateral_aliases: bool
    functions: tuple[str, ...]
    is_plain: bool
    generates_rows: bool
    result: str
    written: str
    understood: str
    join: JoinSpec | None = None

    @functools.cached_property
    def stream_source(self) -> SourceSpec:
        """The stream that the query reads; the first, if there are several."""
        return next(source for source in self.sources if source.is_stream)

    @property
    def stream(self) -> str:
        """Registered name of the stream."""
        return self.stream_source.name

    @property
    def streams(self) -> tuple[str, ...]:
        """Registered names of all streams that the query reads, in the order of FROM."""
        return tuple(source.name for source in self.sources if source.is_stream)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the stream that the result needs."""
        return self.stream_source.columns

    @property
    def window(self) -> Window | None:
        """Window over the stream, if the query has one."""
        return self.stream_source.window

    @property
    def tables(self) -> tuple[str, ...]:
        """Registered names of the static tables."""
        return tuple(source.name for source in self.sources if not source.is_stream)

    @property
    def is_row_for_row(self) -> bool:
        """Whether every row of the stream that passes is exactly one row of the result."""
        is_filtered = self.join is not None and self.join.is_filtered
        return not self.tables and not self.generates_rows and not is_filtered

    def merge_native_conditions(self) -> Query:
        """Return a copy in which all native conditions are one predicate, in the written order.

        For queries with a condition that could fail on a row: the conditions written before it may
        be what prevents the failure. Comparisons with constants cannot fail, so `accepts` stays.
        """
        *guards, last = self.conditions or ("true",)
        text = guarded_by(guards, f"({last})")
        merged = PredicateSpec(key=text, condition=text)
        python_specs = [spec for spec in self.predicates if spec.function is not None]
        python_keys = {spec.key for spec in python_specs}
        clauses = tuple(clause for clause in self.clauses if python_keys & set(clause.needs))
        kept_keys = python_keys | {key for clause in clauses for key in clause.needs}
        return replace(
            self,
            clauses=clauses,
            predicates=(merged, *[spec for spec in self.predicates if spec.key in kept_keys]),
            required=(
                merged.key,
                *[spec.key for spec in python_specs if spec.key in self.required],
            ),
        )

    def order_native_conditions(self) -> Query:
        """Return a copy with the native conditions of `ordered`, which must not be None.

        For queries in which a condition that could fail is an alternative to a Python function.
        """
        assert self.ordered is not None
        ordered = self.ordered
        merged: tuple[PredicateSpec, ...] = ()
        if ordered.conditions:
            *guards, last = ordered.conditions
            text = guarded_by(guards, f"({last})")
            merged = (PredicateSpec(key=text, condition=text),)
        return replace(
            self,
            predicates=(*merged, *ordered.predicates),
            required=(*[spec.key for spec in merged], *ordered.required),
            clauses=ordered.clauses,
            conditions=ordered.conditions,
        )

    def with_predicates(self, specs: Mapping[str, PredicateSpec]) -> Query:
        """Return a copy with other predicates, given by the keys of those they replace."""
        clauses = (
            replace(clause, needs=tuple(specs[key].key for key in clause.needs))
            for clause in self.clauses
        )
        return replace(
            self,
            predicates=tuple(specs[spec.key] for spec in self.predicates),
            required=tuple(specs[key].key for key in self.required),
            clauses=tuple(clauses),
        )

    def shared(self, number: int, is_stored: bool) -> SharedQuery:
        """Return the filters of the query in the form in which the eddy shares them."""
        needs = (*self.required, *[lookup.key for lookup in self.lookups])
        return SharedQuery(number, self.accepts, needs, self.clauses, is_stored)
