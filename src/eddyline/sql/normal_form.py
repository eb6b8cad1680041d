"""Conjunctive normal form, with NOT moved down to single predicates.

Only rows for which a condition is true are kept, so false and unknown need not be told apart, and
the rules of two-valued logic for AND and OR hold. Moving NOT inwards holds in SQL's logic too.
"""

from __future__ import annotations

from sqlglot import exp

Clauses = list[list[exp.Expression]]

_OPPOSITE: dict[type[exp.Expression], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


def to_clauses(condition: exp.Expression, literals_max: int) -> Clauses:
    """Return an AND of ORs as lists; a part that would grow too large stays whole.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> clauses = to_clauses(parse_one("NOT (a > 1 OR b = 2) AND (c = 3 OR d = 4 AND e = 5)"), 64)
    >>> [[part.sql() for part in clause] for clause in clauses]
    [['a <= 1'], ['b <> 2'], ['c = 3', 'd = 4'], ['c = 3', 'e = 5']]

    """
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [
            *to_clauses(condition.left, literals_max),
            *to_clauses(condition.right, literals_max),
        ]
    if isinstance(condition, exp.Or):
        left = to_clauses(condition.left, literals_max)
        right = to_clauses(condition.right, literals_max)
        if sum(len(a) + len(b) for a in left for b in right) > literals_max:
            return [[condition]]
        return [[*a, *b] for a in left for b in right]
    if isinstance(condition, exp.Not):
        inside = negated(condition.this)
        return to_clauses(inside, literals_max) if inside is not None else [[condition]]
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        return [
            [exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())],
            [exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())],
        ]
    return [[condition]]


def negated(condition: exp.Expression) -> exp.Expression | None:
    """Return the opposite with NOT moved one step down; None where it cannot be moved."""
    condition = condition.unnest()
    if isinstance(condition, exp.Not):
        return condition.this.unnest()
    if isinstance(condition, exp.And | exp.Or):
        other = exp.Or if isinstance(condition, exp.And) else exp.And
        left, right = condition.left.copy(), condition.right.copy()
        return other(this=exp.Not(this=left), expression=exp.Not(this=right))
    if type(condition) in _OPPOSITE:
        opposite = _OPPOSITE[type(condition)]
        return opposite(this=condition.this.copy(), expression=condition.expression.copy())
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low = exp.LT(this=condition.this.copy(), expression=condition.args["low"].copy())
        high = exp.GT(this=condition.this.copy(), expression=condition.args["high"].copy())
        return exp.Or(this=low, expression=high)
    return None
