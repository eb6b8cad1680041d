"""Step 4, group: conjuncts over the stream become filters that queries share.

Comparisons of one column with constants become one set of accepted values, for a grouped filter.
Any other predicate becomes a shared predicate, which is evaluated once for all queries that contain
it. Disjunctions over several columns or predicates become clauses.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.2.6
(grouped filters) and 3.2.7 (disjunctions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.fabric.shared.query import Clause
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import ColumnTypes, to_values
from eddyline.sql.evaluation_order import evaluation_guards, has_mixed_alternatives
from eddyline.sql.function_tests import to_function_test
from eddyline.sql.names import Source
from eddyline.sql.normalise import (
    LITERALS_MAX,
    Clauses,
    Conjunct,
    NormalisedQuery,
    to_clauses,
    to_terms,
)
from eddyline.sql.placeholders import display_text
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.specs import OrderedFilter, PredicateSpec
from eddyline.sql.tree import abbreviated, stream_sql

#: A conjunct with more terms is put into clauses, or left to Spark.
TERMS_MAX = 16


@dataclass(frozen=True)
class RowFilter:
    """What a row of the stream must fulfil; the fields are those of `Query`."""

    accepts: Mapping[str, ValueSet]
    predicates: tuple[PredicateSpec, ...]
    required: tuple[str, ...]
    clauses: tuple[Clause, ...]
    conditions: tuple[str, ...]
    ordered: OrderedFilter | None
    where: str


@dataclass(frozen=True)
class GroupedQuery:
    """Result of `group`.

    Parameters
    ----------
    resolved
        As before.
    row_filters
        For each stream, the conjuncts over it alone, grouped; in the order of FROM.
    conjuncts
        The other conjuncts, which involve several sources or a static table.

    """

    resolved: ResolvedQuery
    row_filters: tuple[RowFilter, ...]
    conjuncts: tuple[Conjunct, ...]


def group(query: NormalisedQuery) -> GroupedQuery:
    """Group the conjuncts over the stream into value sets, shared predicates and clauses.

    Examples
    --------
    >>> from eddyline.sql.normalise import normalise
    >>> from eddyline.sql.read import QueryText, read
    >>> from eddyline.sql.resolve import resolve
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "string"}})
    >>> text = "SELECT a FROM s WHERE a > 1 AND a < 5 AND length(b) > 3"
    >>> (row_filter,) = group(normalise(resolve(read(QueryText(text, schemas))))).row_filters
    >>> row_filter.accepts
    {'a': ValueSet(bounds=(2, 5), below=False, null=False)}
    >>> row_filter.required
    ('length(`__eddyline_stream`.`b`) > 3',)

    """
    resolved = query.resolved
    local: dict[str, list[Conjunct]] = {stream.alias: [] for stream in resolved.streams}
    others = []
    for conjunct in query.conjuncts:
        aliases = conjunct.sources or {resolved.stream.alias}  # a constant condition
        if len(aliases) == 1 and aliases <= local.keys():
            local[min(aliases)].append(conjunct)
        else:
            others.append(conjunct)
    filters = [_to_filter(local[stream.alias], stream, resolved) for stream in resolved.streams]
    return GroupedQuery(resolved, tuple(filters), tuple(others))


def _to_filter(conjuncts: Sequence[Conjunct], stream: Source, resolved: ResolvedQuery) -> RowFilter:
    columns = resolved.schemas.column_types(stream.columns)
    parts = _Parts()
    for conjunct in conjuncts:
        _add_conjunct(conjunct, parts, columns, resolved)
    return RowFilter(
        accepts=parts.accepts,
        predicates=tuple(parts.predicates.values()),
        required=tuple(parts.required),
        clauses=tuple(parts.clauses),
        conditions=tuple(
            text for conjunct in conjuncts for text in _native_conditions(conjunct, resolved)
        ),
        ordered=_ordered_filter(conjuncts, columns, resolved),
        where=" AND ".join(f"({stream_sql(conjunct.condition)})" for conjunct in conjuncts),
    )


@dataclass
class _Parts:
    """The parts of a filter while it is made."""

    accepts: dict[str, ValueSet] = field(default_factory=dict)
    predicates: dict[str, PredicateSpec] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    clauses: list[Clause] = field(default_factory=list)


def _add_conjunct(
    conjunct: Conjunct, parts: _Parts, columns: ColumnTypes, resolved: ResolvedQuery
) -> None:
    """Add a conjunct in the normal form that takes fewer bits a row."""
    by_clauses = _Parts()
    _add_clauses(conjunct.clauses, by_clauses, columns, resolved)
    if len(by_clauses.clauses) > 1 or by_clauses.predicates:
        by_terms = _to_term_clause(conjunct, columns)
        if by_terms is not None and (
            by_clauses.predicates or _bits(by_terms) < len(by_clauses.clauses)
        ):
            _add_clause(by_terms, parts)
            return
    _add_clauses(conjunct.clauses, parts, columns, resolved)


def _bits(clause: Clause) -> int:
    return len(clause.terms) + bool(clause.accepts)


def _to_term_clause(conjunct: Conjunct, columns: ColumnTypes) -> Clause | None:
    """Return a conjunct as one clause with terms; None unless it only compares with constants."""
    terms = to_terms(conjunct.condition, LITERALS_MAX)
    if not terms or len(terms) > TERMS_MAX:
        return None
    accepts: dict[str, ValueSet] = {}
    joint: list[dict[str, ValueSet]] = []
    for literals in terms:
        term: dict[str, ValueSet] = {}
        for literal in literals:
            comparison = to_values(literal, columns)
            if comparison is None:
                return None
            column, values = comparison
            term[column] = term[column] & values if column in term else values
        if len(term) == 1:
            ((column, values),) = term.items()
            accepts[column] = accepts[column] | values if column in accepts else values
        elif not term:
            return None
        elif not any(columns.are_same(term, other) for other in joint):
            joint.append(term)
    return Clause(accepts, terms=tuple(joint))


def _to_parts(clauses: Clauses, columns: ColumnTypes, resolved: ResolvedQuery) -> _Parts:
    parts = _Parts()
    _add_clauses(clauses, parts, columns, resolved)
    return parts


def _add_clauses(
    clauses: Clauses, parts: _Parts, columns: ColumnTypes, resolved: ResolvedQuery
) -> None:
    for literals in clauses:
        _add_clause(_to_clause(literals, columns, resolved, parts.predicates), parts)


def _add_clause(clause: Clause, parts: _Parts) -> None:
    if len(clause.accepts) == 1 and not clause.needs and not clause.terms:
        ((column, values),) = clause.accepts.items()
        accepts = parts.accepts
        accepts[column] = accepts[column] & values if column in accepts else values
    elif len(clause.needs) == 1 and not clause.accepts:
        parts.required[clause.needs[0]] = None
    else:
        parts.clauses.append(clause)


def _ordered_filter(
    conjuncts: Sequence[Conjunct], columns: ColumnTypes, resolved: ResolvedQuery
) -> OrderedFilter | None:
    """Return the filter in which each part without function calls is one predicate."""
    calling = [c.condition for c in conjuncts if resolved.calls_function(c.condition)]
    if not any(has_mixed_alternatives(condition, resolved) for condition in calling):
        return None

    def is_native(condition: exp.Expression) -> bool:
        return not resolved.calls_function(condition)

    clauses = [c for part in calling for c in to_clauses(part, LITERALS_MAX, is_native)]
    parts = _to_parts(clauses, columns, resolved)  # its values are also among those of the query
    native = [c for c in conjuncts if not resolved.calls_function(c.condition)]
    return OrderedFilter(
        predicates=tuple(parts.predicates.values()),
        required=tuple(parts.required),
        clauses=tuple(parts.clauses),
        conditions=tuple(text for c in native for text in _native_conditions(c, resolved)),
        guards=evaluation_guards(calling[0], resolved),
    )


def _native_conditions(conjunct: Conjunct, resolved: ResolvedQuery) -> list[str]:
    """Return what Spark can evaluate of a conjunct: all of it, or clauses without functions."""
    if not conjunct.sources and conjunct.clauses in ([], [[]]):  # TRUE, or FALSE or NULL
        return ["FALSE"] if conjunct.clauses else []
    if not resolved.calls_function(conjunct.condition):
        return [stream_sql(conjunct.condition)]
    return [
        " OR ".join(f"({stream_sql(literal)})" for literal in literals) or "FALSE"
        for literals in conjunct.clauses
        if not any(resolved.calls_function(literal) for literal in literals)
    ]


def _to_clause(
    literals: Sequence[exp.Expression],
    columns: ColumnTypes,
    resolved: ResolvedQuery,
    predicates: dict[str, PredicateSpec],
) -> Clause:
    """Return a disjunction as a clause; its shared predicates are added to `predicates`."""
    accepts: dict[str, ValueSet] = {}
    needs: dict[str, None] = {}
    for literal in literals:
        comparison = to_values(literal, columns)
        if comparison is not None:
            column, values = comparison
            accepts[column] = accepts[column] | values if column in accepts else values
        else:
            spec = _to_predicate(literal, resolved)
            predicates[spec.key] = spec
            needs[spec.key] = None
    return Clause(accepts, tuple(needs))


def _to_predicate(literal: exp.Expression, resolved: ResolvedQuery) -> PredicateSpec:
    """Return a shared predicate: a call of one Python function, or a native condition."""
    text = stream_sql(literal)
    test = to_function_test(literal, resolved)
    inner = test.call.expressions if test is not None else [literal]
    if any(resolved.calls_function(part) for part in inner):
        raise QueryError(
            f"{abbreviated(display_text(text))}: call a Python function by itself, f(x) or NOT "
            f"f(x), or compare its answer with constants, f(x) > 0.5 or f(x) IN (1, 2); it may not "
            f"stand within another expression"
        )
    if test is None:
        return PredicateSpec(key=text, condition=text)
    return PredicateSpec(
        key=text,
        condition="",
        function=resolved.registered_function(test.call),
        arguments=tuple(stream_sql(argument) for argument in test.call.expressions),
        comparison=test.comparison,
        constant=test.constant,
    )
