"""The parts of a compiled query: windows, sources, predicates, lookups and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eddyline.fabric.shared.query import Clause
from eddyline.operators.domain import Constant

#: Units of windows by time, in microseconds.
UNITS_US = {
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
        return None if self.unit == "rows" else self.size * UNITS_US[self.unit]


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
class BoundSpec:
    """A value of one stream is at most a value of another one plus a constant.

    Parameters
    ----------
    low, high
        The values.
    offset
        The constant.
    is_strict
        Whether it is less.
    nan_fits
        Whether the comparison may be true where a difference of both is NaN.
    is_interval
        Whether the constant is an interval, in microseconds.

    """

    low: KeyText
    high: KeyText
    offset: float
    is_strict: bool
    nan_fits: bool
    is_interval: bool


@dataclass(frozen=True, slots=True)
class TimeBound:
    """The event time of `later` less that of `earlier` is at most so many microseconds."""

    later: int
    earlier: int
    difference_us: int


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
