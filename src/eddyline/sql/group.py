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
from dataclasses import dataclass

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.fabric.shared.query import Clause
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import COMPARISON_SIGNS, MIRRORED, ColumnTypes, to_values
from eddyline.sql.constants import to_constant
from eddyline.sql.normalise import Conjunct, NormalisedQuery
from eddyline.sql.placeholders import display_text
from eddyline.sql.query import PredicateSpec
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.tree import abbreviated, stream_sql


@dataclass(frozen=True)
class RowFilter:
    """What a row of the stream must fulfil; the fields are those of `Query`."""

    accepts: Mapping[str, ValueSet]
    predicates: tuple[PredicateSpec, ...]
    required: tuple[str, ...]
    clauses: tuple[Clause, ...]
    conditions: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class GroupedQuery:
    """Result of `group`.

    Parameters
    ----------
    resolved
        As before.
    row_filter
        The conjuncts over the stream alone, grouped.
    conjuncts
        The other conjuncts, which involve static tables.

    """

    resolved: ResolvedQuery
    row_filter: RowFilter
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
    >>> row_filter = group(normalise(resolve(read(QueryText(text, schemas))))).row_filter
    >>> row_filter.accepts
    {'a': ValueSet(bounds=(2, 5), below=False, null=False)}
    >>> row_filter.required
    ('length(`__eddyline_stream`.`b`) > 3',)

    """
    resolved = query.resolved
    stream = {resolved.stream.alias}
    local = [conjunct for conjunct in query.conjuncts if conjunct.sources <= stream]
    others = [conjunct for conjunct in query.conjuncts if not conjunct.sources <= stream]
    return GroupedQuery(resolved, _to_filter(local, resolved), tuple(others))


def _to_filter(conjuncts: Sequence[Conjunct], resolved: ResolvedQuery) -> RowFilter:
    columns = ColumnTypes(resolved.stream.columns, resolved.schemas.timezone)
    accepts: dict[str, ValueSet] = {}
    predicates: dict[str, PredicateSpec] = {}
    required: dict[str, None] = {}
    clauses: list[Clause] = []
    for literals in (literals for conjunct in conjuncts for literals in conjunct.clauses):
        clause = _to_clause(literals, columns, resolved, predicates)
        if len(clause.accepts) == 1 and not clause.needs:
            ((column, values),) = clause.accepts.items()
            accepts[column] = accepts[column] & values if column in accepts else values
        elif len(clause.needs) == 1 and not clause.accepts:
            required[clause.needs[0]] = None
        else:
            clauses.append(clause)
    return RowFilter(
        accepts=accepts,
        predicates=tuple(predicates.values()),
        required=tuple(required),
        clauses=tuple(clauses),
        conditions=tuple(
            text for conjunct in conjuncts for text in _native_conditions(conjunct, resolved)
        ),
        where=" AND ".join(f"({stream_sql(conjunct.condition)})" for conjunct in conjuncts),
    )


def _native_conditions(conjunct: Conjunct, resolved: ResolvedQuery) -> list[str]:
    """Return what Spark can evaluate of a conjunct: all of it, or clauses without functions."""
    if not resolved.calls_function(conjunct.condition):
        return [stream_sql(conjunct.condition)]
    return [
        " OR ".join(f"({stream_sql(literal)})" for literal in literals)
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
    call, comparison, constant = literal, "", None
    if isinstance(literal, exp.Not):
        call, comparison = literal.this.unnest(), "not"
    elif type(literal) in COMPARISON_SIGNS:
        call, other = literal.this.unnest(), literal.expression.unnest()
        comparison = COMPARISON_SIGNS[type(literal)]
        if resolved.registered_function(call) is None:
            call, other, comparison = other, call, MIRRORED[comparison]
        constant = to_constant(other)
        if constant is None:  # compared with something other than a constant
            call = literal
    function = resolved.registered_function(call)
    inner = call.expressions if function else [literal]
    if any(resolved.calls_function(part) for part in inner):
        raise QueryError(
            f"{abbreviated(display_text(text))}: call a Python function by itself, f(x) or NOT "
            f"f(x), or compare its answer with a constant, f(x) > 0.5; it may not stand within "
            f"another expression"
        )
    if function is None:
        return PredicateSpec(key=text, condition=text)
    return PredicateSpec(
        key=text,
        condition="",
        function=function,
        arguments=tuple(stream_sql(argument) for argument in call.expressions),
        comparison=comparison,
        constant=constant,
    )
