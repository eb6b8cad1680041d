"""Step 3, normalise: ON and WHERE become conjuncts, each in conjunctive normal form.

A row is kept only if the whole condition is true, so false and unknown need not be told apart and
AND distributes over OR as in two-valued logic. Moving NOT down to single predicates is valid in
three-valued logic too. TRUE, FALSE and NULL are simplified away: no clause is true, and a clause
without predicates is never true.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.tree import source_aliases

#: A conjunct whose normal form would have more predicates than this stays in its written form.
LITERALS_MAX = 256
#: An AND of ORs of predicates.
Clauses = list[list[exp.Expression]]

_OPPOSITE: dict[type[exp.Expression], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


@dataclass(frozen=True)
class Conjunct:
    """A condition that every result row fulfils.

    Parameters
    ----------
    condition
        As written.
    sources
        Aliases of the sources whose columns it uses; empty for a constant condition.
    clauses
        The same condition in conjunctive normal form.

    """

    condition: exp.Expression
    sources: frozenset[str]
    clauses: Clauses


@dataclass(frozen=True)
class NormalisedQuery:
    """Result of `normalise`: the conjuncts of ON and WHERE in their written order."""

    resolved: ResolvedQuery
    conjuncts: tuple[Conjunct, ...]


def normalise(query: ResolvedQuery) -> NormalisedQuery:
    """Split the conditions of ON and WHERE into conjuncts and normalise each of them.

    Examples
    --------
    >>> from eddyline.sql.read import QueryText, read
    >>> from eddyline.sql.resolve import resolve
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "int"}})
    >>> text = "SELECT a FROM s WHERE a > 1 AND NOT (a > 7 AND b = 2)"
    >>> for conjunct in normalise(resolve(read(QueryText(text, schemas)))).conjuncts:
    ...     print([[literal.sql() for literal in clause] for clause in conjunct.clauses])
    [['"s"."a" > 1']]
    [['"s"."a" <= 7', '"s"."b" <> 2']]

    """
    select = query.select
    conditions = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    if select.args.get("where") is not None:
        conditions.append(select.args["where"].this)
    conjuncts = tuple(
        Conjunct(part, source_aliases(part), _to_usable_clauses(part, query))
        for condition in conditions
        for part in split_conjunction(condition)
    )
    return NormalisedQuery(query, conjuncts)


def _to_usable_clauses(condition: exp.Expression, query: ResolvedQuery) -> Clauses:
    """Return the normal form of a conjunct, in which a function call must stand by itself.

    If it is too large, each part without function calls stays as it is written.
    """
    clauses = to_clauses(condition, LITERALS_MAX)
    literals = [literal for clause in clauses for literal in clause]
    if any(isinstance(each, exp.Or) and query.calls_function(each) for each in literals):
        return to_clauses(condition, LITERALS_MAX, lambda part: not query.calls_function(part))
    return clauses


def split_conjunction(condition: exp.Expression) -> list[exp.Expression]:
    """Return the operands of nested ANDs in their written order.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> [part.sql() for part in split_conjunction(parse_one("a AND (b AND (c OR d))"))]
    ['a', 'b', 'c OR d']

    """
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*split_conjunction(condition.left), *split_conjunction(condition.right)]
    return [condition]


def never_whole(_: exp.Expression) -> bool:
    """Return False: every part of a condition may be split."""
    return False


def to_clauses(
    condition: exp.Expression,
    literals_max: int,
    is_whole: Callable[[exp.Expression], bool] = never_whole,
) -> Clauses:
    """Return the conjunctive normal form of a condition.

    Parameters
    ----------
    condition
        Any condition.
    literals_max
        An OR whose normal form would have more predicates stays whole.
    is_whole
        Returns True for a part that is to stay as it is.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> clauses = to_clauses(parse_one("NOT (a > 1 OR b = 2) AND (c = 3 OR d = 4 AND e = 5)"), 64)
    >>> [[part.sql() for part in clause] for clause in clauses]
    [['a <= 1'], ['b <> 2'], ['c = 3', 'd = 4'], ['c = 3', 'e = 5']]

    """
    condition = condition.unnest()
    if _is_never_true(condition):
        return [[]]
    if isinstance(condition, exp.Boolean):
        return []
    if is_whole(condition):
        return [[condition]]
    if isinstance(condition, exp.And):
        return [
            *to_clauses(condition.left, literals_max, is_whole),
            *to_clauses(condition.right, literals_max, is_whole),
        ]
    if isinstance(condition, exp.Or):
        left = to_clauses(condition.left, literals_max, is_whole)
        right = to_clauses(condition.right, literals_max, is_whole)
        if sum(len(a) + len(b) for a in left for b in right) > literals_max:
            return [[condition]]
        return [[*a, *b] for a in left for b in right]
    if isinstance(condition, exp.Not):
        opposite = negate(condition.this)
        if opposite is not None:
            return to_clauses(opposite, literals_max, is_whole)
        return [[condition]]
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low = exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
        high = exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
        return [[] if _is_never_true(bound) else [bound] for bound in (low, high)]
    return [[condition]]


def to_terms(condition: exp.Expression, literals_max: int) -> Clauses | None:
    """Return the disjunctive normal form of a condition: an OR of ANDs of predicates.

    Returns None for one that would have more predicates than `literals_max`.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> terms = to_terms(parse_one("(a > 1 AND b = 2) OR NOT (c = 3 OR d = 4)"), 64)
    >>> [[part.sql() for part in term] for term in terms]
    [['a > 1', 'b = 2'], ['c <> 3', 'd <> 4']]

    """
    condition = condition.unnest()
    if _is_never_true(condition):
        return []
    if isinstance(condition, exp.Boolean):
        return [[]]
    if isinstance(condition, exp.Not):
        opposite = negate(condition.this)
        return [[condition]] if opposite is None else to_terms(opposite, literals_max)
    if isinstance(condition, exp.Or | exp.And):
        left = to_terms(condition.left, literals_max)
        right = to_terms(condition.right, literals_max)
        if left is None or right is None:
            return None
        is_or = isinstance(condition, exp.Or)
        terms = [*left, *right] if is_or else [[*a, *b] for a in left for b in right]
        return terms if sum(map(len, terms)) <= literals_max else None
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low = exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
        high = exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
        return [] if _is_never_true(low) or _is_never_true(high) else [[low, high]]
    return [[condition]]


def _is_never_true(condition: exp.Expression) -> bool:
    """Whether the condition is FALSE, NULL, or a comparison with NULL."""
    if isinstance(condition, exp.Null):
        return True
    if isinstance(condition, exp.Boolean):
        return not condition.this
    return type(condition) in _OPPOSITE and (
        isinstance(condition.this.unnest(), exp.Null)
        or isinstance(condition.expression.unnest(), exp.Null)
    )


def negate(condition: exp.Expression) -> exp.Expression | None:
    """Return the negation with NOT moved one level down; None where it cannot be moved.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> negate(parse_one("a > 1 AND b")).sql(), negate(parse_one("a LIKE 'x'"))
    ('NOT a > 1 OR NOT b', None)

    """
    condition = condition.unnest()
    if isinstance(condition, exp.Not):
        return condition.this.unnest()
    if isinstance(condition, exp.Boolean):
        return exp.Boolean(this=not condition.this)
    if isinstance(condition, exp.Null):
        return condition
    if isinstance(condition, exp.And | exp.Or):
        dual = exp.Or if isinstance(condition, exp.And) else exp.And
        # `not_` adds the brackets that nested connectors need if the negation stays whole.
        return dual(this=exp.not_(condition.left), expression=exp.not_(condition.right))
    if type(condition) in _OPPOSITE:
        opposite = _OPPOSITE[type(condition)]
        return opposite(this=condition.this.copy(), expression=condition.expression.copy())
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low = exp.LT(this=condition.this.copy(), expression=condition.args["low"].copy())
        high = exp.GT(this=condition.this.copy(), expression=condition.args["high"].copy())
        return exp.Or(this=low, expression=high)
    return None
