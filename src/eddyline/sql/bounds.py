"""Comparisons across streams that bound a value of one stream by a value of another.

Both sides are taken apart at + and -, down to expressions over one stream and constants. What is
left must be one expression of each of two streams, as in `a.x < b.y + 5`, `b.ts <= a.ts + INTERVAL
1 HOUR` or `abs(a.x - b.x) < 5`. Other comparisons are left to Spark alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eddyline.sql.intervals import interval_us, is_exact
from eddyline.sql.normalise import Conjunct
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.specs import BoundSpec, KeyText
from eddyline.sql.tree import source_aliases, stream_sql


@dataclass(frozen=True)
class _Sum:
    """Expressions that are added or subtracted, and a constant."""

    terms: tuple[tuple[int, exp.Expression], ...] = ()
    constant: float = 0.0
    is_interval: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether nothing is added or subtracted."""
        return [sign for sign, _ in self.terms] == [1] and self.constant == 0

    def minus(self, other: _Sum) -> _Sum:
        negated = tuple((-sign, node) for sign, node in other.terms)
        return _Sum(
            self.terms + negated,
            self.constant - other.constant,
            self.is_interval or other.is_interval,
        )


@dataclass
class _Found:
    """The bounds of a query while they are found."""

    resolved: ResolvedQuery
    bounds: list[BoundSpec] = field(default_factory=list)

    def add(self, smaller: _Sum, larger: _Sum, is_strict: bool) -> None:
        """Add that one sum is less or at most another one, if that bounds a stream by another."""
        difference = smaller.minus(larger)
        if sorted(sign for sign, _ in difference.terms) != [-1, 1]:
            return
        keys = {sign: self._key(node) for sign, node in difference.terms}
        low, high = keys[1], keys[-1]
        is_computed = not (smaller.is_plain and larger.is_plain)
        if is_computed and not difference.is_interval and not self.resolved.schemas.ansi:
            return  # whole numbers that are too large begin again from below
        if low is None or high is None or low.part == high.part:
            return
        # NaN, which is larger than all numbers, can only be a difference of streams.
        nan_fits = len(larger.terms) == 2
        offset = -difference.constant
        self.bounds.append(
            BoundSpec(low, high, offset, is_strict, nan_fits, difference.is_interval)
        )

    def to_sum(self, node: exp.Expression) -> _Sum:
        """Take an expression apart at + and -."""
        node = node.unnest()
        if isinstance(node, exp.Sub):
            return self.to_sum(node.left).minus(self.to_sum(node.right))
        if isinstance(node, exp.Add):
            return self.to_sum(node.left).minus(_Sum().minus(self.to_sum(node.right)))
        if isinstance(node, exp.Neg):
            return _Sum().minus(self.to_sum(node.this))
        if isinstance(node, exp.Literal) and node.is_number:
            return _Sum(constant=float(node.this))
        length_us = interval_us(node)
        if length_us is not None and is_exact(node, self.resolved.schemas.timezone):
            return _Sum(constant=float(length_us), is_interval=True)
        return _Sum(((1, node),))

    def _key(self, node: exp.Expression) -> KeyText | None:
        aliases = source_aliases(node)
        numbers = {source.alias: n for n, source in enumerate(self.resolved.streams)}
        if len(aliases) != 1 or not aliases <= numbers.keys():
            return None
        return KeyText(numbers[min(aliases)], stream_sql(node))


def bounds_of(conjuncts: Sequence[Conjunct], resolved: ResolvedQuery) -> tuple[BoundSpec, ...]:
    """Return what comparisons say of the values of two streams.

    Parameters
    ----------
    conjuncts
        Conditions over several streams.
    resolved
        The query.

    """
    found = _Found(resolved)
    for conjunct in conjuncts:
        for literals in conjunct.clauses:
            if len(literals) == 1 and not resolved.calls_function(literals[0]):
                _add_bounds(literals[0].unnest(), found)
    return tuple(found.bounds)


def _add_bounds(condition: exp.Expression, found: _Found) -> None:
    is_strict = isinstance(condition, exp.LT | exp.GT)
    if isinstance(condition, exp.LT | exp.LTE):
        _add_at_most(condition.left, condition.right, found, is_strict)
    elif isinstance(condition, exp.GT | exp.GTE):
        _add_at_most(condition.right, condition.left, found, is_strict)
    elif isinstance(condition, exp.EQ):
        left, right = found.to_sum(condition.left), found.to_sum(condition.right)
        found.add(left, right, is_strict)
        found.add(
            right.minus(left), _Sum(), is_strict
        )  # terms on one side: a difference that equals 0


def _add_at_most(
    smaller: exp.Expression, larger: exp.Expression, found: _Found, is_strict: bool
) -> None:
    smaller, limit = smaller.unnest(), found.to_sum(larger)
    if isinstance(smaller, exp.Anonymous) and smaller.name.lower() == "abs" and not limit.terms:
        inner = found.to_sum(smaller.expressions[0])
        found.add(inner, limit, is_strict)
        found.add(_Sum().minus(inner), limit, is_strict)
    else:
        found.add(found.to_sum(smaller), limit, is_strict)
