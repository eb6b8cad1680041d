"""A compiled query: the filters that queries share, and the SQL that makes its result."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.domain import Constant
from eddyline.operators.value_set import ValueSet

_UNITS_US = {
    "milliseconds": 10**3,
    "seconds": 10**6,
    "minutes": 60 * 10**6,
    "hours": 3600 * 10**6,
    "days": 86400 * 10**6,
}


@dataclass(frozen=True, slots=True)
class Window:
    """Extent of a window over a stream: `WINDOW 30 SECONDS`, `WINDOW 100 ROWS`."""

    size: int
    unit: str

    @property
    def length_us(self) -> int | None:
        """Its length in microseconds; None for a number of rows."""
        return None if self.unit == "rows" else self.size * _UNITS_US[self.unit]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A stream or static table in FROM.

    Parameters
    ----------
    name
        Registered name.
    alias
        Name within the query.
    is_stream
        False for a static table.
    columns
        Columns that the result and the join conditions need, in schema order.
    window
        Window over the stream, if the query has one; always None for a static table.

    """

    name: str
    alias: str
    is_stream: bool
    columns: tuple[str, ...]
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate that is evaluated once for all queries that contain it.

    Parameters
    ----------
    key
        Identity: equal predicates have equal keys.
    condition
        Spark SQL over the columns of `STREAM`; empty if a Python function decides.
    function, arguments
        Name of the registered Python function, and its arguments as Spark SQL.
    comparison, constant
        Test of the answer: it must be true (""), be false ("not"), be another one of
        `eddyline.operators.answer.TESTS`, or compare with the constant; with "in" and "not in" the
        constant is a tuple.

    """

    key: str
    condition: str
    function: str | None = None
    arguments: tuple[str, ...] = ()
    comparison: str = ""
    constant: Constant | tuple[Constant | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class LookupSpec:
    """A semi-join of the stream with a static table.

    Parameters
    ----------
    key
        Identity: equal lookups have equal keys.
    table
        Name of the registered table.
    columns, keys
        Columns of the stream, and the columns of the table that must equal them.
    condition
        Filter on the rows of the table, as Spark SQL; empty for none.

    """

    key: str
    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class OrderedFilter:
    """A row filter in which what Spark evaluates together stays together.

    For queries with a native condition that could fail on a row, in an OR with a Python function.

    Parameters
    ----------
    predicates, required, clauses
        As in `Query`, of the conditions that call Python functions. A part without such calls is
        one predicate, with the AND, OR and CASE in it that may protect it from failing.
    conditions
        The other conditions on the stream, as Spark SQL in the written order.
    guards
        By key of a predicate, what Spark makes sure of before it evaluates the predicate, apart
        from `conditions`. Only for predicates before which Spark needs no answer of a Python
        function.

    """

    predicates: tuple[PredicateSpec, ...]
    required: tuple[str, ...]
    clauses: tuple[Clause, ...]
    conditions: tuple[str, ...]
    guards: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KeyText:
    """A join key: position of the stream among those of FROM, and SQL over `STREAM`."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class TimeBound:
    """The event time of `later` less that of `earlier` is at most so many microseconds."""

    later: int
    earlier: int
    difference_us: int


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
    is_filtered
        True if conditions are left that Spark evaluates when the result is read.

    """

    parts: tuple[Query, ...]
    equalities: tuple[tuple[KeyText, KeyText], ...]
    windows_us: tuple[int | None, ...]
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
            Clause(clause.accepts, tuple(specs[key].key for key in clause.needs))
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


def guarded_by(conditions: Sequence[str], text: str) -> str:
    """Return an expression that is evaluated only where all conditions are true, else NULL.

    Spark evaluates `a AND b` outside of a filter also where `a` is NULL. A filter stops at the
    first condition that is not true; so does this. It is not nested: a query may have hundreds of
    conditions.

    Examples
    --------
    >>> guarded_by(["a > 1", "b"], "c / a")
    'CASE WHEN (a > 1) IS NOT TRUE THEN NULL WHEN (b) IS NOT TRUE THEN NULL ELSE c / a END'

    """
    if not conditions:
        return text
    stops = " ".join(f"WHEN ({condition}) IS NOT TRUE THEN NULL" for condition in conditions)
    return f"CASE {stops} ELSE {text} END"
