"""The join of streams in a query: keys that are equal, and bounds on the distance of their times.

Every equality between expressions over two different streams becomes a pair of keys. A comparison
of the streams' event times, each with an interval added or not, becomes a bound. Whatever else
involves several streams is left to Spark, when the result is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from eddyline.sql.intervals import CLOCK_CHANGE_US, interval_us, is_exact, is_utc
from eddyline.sql.normalise import Conjunct
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.specs import KeyText, TimeBound
from eddyline.sql.tree import source_aliases, stream_sql


def key_pairs(
    conjuncts: Sequence[Conjunct], resolved: ResolvedQuery
) -> list[tuple[KeyText, KeyText] | None]:
    """Return for each condition the two keys that it equates; None if it is left to Spark.

    So is an equality that would make two keys of one stream equal, as `a.x = b.k` and `a.y = b.k`
    do: a probe has one value for each key.
    """
    pairs: list[tuple[KeyText, KeyText] | None] = []
    sets: list[set[KeyText]] = []
    for conjunct in conjuncts:
        pair = key_pair(conjunct, resolved)
        if pair is not None:
            touching = [known for known in sets if known & set(pair)]
            united = set(pair).union(*touching)
            if len({key.part for key in united}) < len(united):
                pair = None
            else:
                sets = [known for known in sets if known not in touching] + [united]
        pairs.append(pair)
    return pairs


def key_pair(conjunct: Conjunct, resolved: ResolvedQuery) -> tuple[KeyText, KeyText] | None:
    """Return the two keys that a condition equates; None if it is no such condition."""
    equality = conjunct.condition
    if not isinstance(equality, exp.EQ) or resolved.calls_function(equality):
        return None
    numbers = {source.alias: n for n, source in enumerate(resolved.streams)}
    keys = []
    for side in (equality.left, equality.right):
        aliases = source_aliases(side)
        if len(aliases) != 1 or not aliases <= numbers.keys():
            return None
        keys.append(KeyText(numbers[min(aliases)], stream_sql(side.unnest())))
    return (keys[0], keys[1]) if keys[0].part != keys[1].part else None


def time_bounds(
    conjuncts: Sequence[Conjunct], resolved: ResolvedQuery, times: Mapping[str, str]
) -> list[TimeBound]:
    """Return the bounds that conditions set on the distance of event times.

    Parameters
    ----------
    conjuncts
        Conditions over several streams.
    resolved
        The query.
    times
        By stream name, the event-time column.

    """
    bounds = []
    for conjunct in conjuncts:
        for literals in conjunct.clauses:
            if len(literals) == 1:
                bounds += _bounds_of(literals[0].unnest(), resolved, times)
    return bounds


def _bounds_of(
    condition: exp.Expression, resolved: ResolvedQuery, times: Mapping[str, str]
) -> list[TimeBound]:
    if not isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ):
        return []
    left = _time_of(condition.left, resolved, times)
    right = _time_of(condition.right, resolved, times)
    if left is None or right is None or left.stream == right.stream:
        return []
    # left + a <= right + b: time of left - time of right <= b - a
    difference_us = right.added_us - left.added_us
    slack_us = 0 if left.is_exact and right.is_exact else CLOCK_CHANGE_US
    bounds = []
    if isinstance(condition, exp.LT | exp.LTE | exp.EQ):
        bounds.append(TimeBound(left.stream, right.stream, difference_us + slack_us))
    if isinstance(condition, exp.GT | exp.GTE | exp.EQ):
        bounds.append(TimeBound(right.stream, left.stream, slack_us - difference_us))
    return bounds


class _Time(NamedTuple):
    """An event time to which constants are added, and whether that means the same all year."""

    stream: int
    added_us: int
    is_exact: bool


def _time_of(
    node: exp.Expression, resolved: ResolvedQuery, times: Mapping[str, str]
) -> _Time | None:
    """Return the stream whose event time an expression is, and what is added to it."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        for number, source in enumerate(resolved.streams):
            if source.alias == node.table and times.get(source.name) == node.name:
                # Other types have the local time of the session's time zone.
                is_absolute = source.columns[node.name] == "timestamp"
                return _Time(number, 0, is_absolute or is_utc(resolved.schemas.timezone))
        return None
    if isinstance(node, exp.Add | exp.Sub):
        time = _time_of(node.left, resolved, times)
        length_us = interval_us(node.right.unnest())
        if time is not None and length_us is not None:
            added_us = length_us if isinstance(node, exp.Add) else -length_us
            exact = time.is_exact and is_exact(node.right, resolved.schemas.timezone)
            return _Time(time.stream, time.added_us + added_us, exact)
    return None


def windows_from_bounds(bounds: Sequence[TimeBound], streams: int) -> list[int | None]:
    """Return for each stream how much older than the youngest row of a result its row may be.

    Bounds are closed under addition first: if b is at most 1 s after a, and c at most 2 s after b,
    then c is at most 3 s after a. None for a stream that some other may be arbitrarily far ahead
    of.

    Examples
    --------
    >>> windows_from_bounds([TimeBound(1, 0, 5), TimeBound(0, 1, 0)], streams=2)
    [6, 1]
    >>> windows_from_bounds([TimeBound(1, 0, 5)], streams=2)
    [6, None]

    """
    far = float("inf")
    ahead = [[0 if a == b else far for b in range(streams)] for a in range(streams)]
    for bound in bounds:
        ahead[bound.later][bound.earlier] = min(
            ahead[bound.later][bound.earlier], bound.difference_us
        )
    for k in range(streams):
        for a in range(streams):
            for b in range(streams):
                ahead[a][b] = min(ahead[a][b], ahead[a][k] + ahead[k][b])
    windows: list[int | None] = []
    for own in range(streams):
        most = max(ahead[other][own] for other in range(streams))
        windows.append(None if most == far else max(int(most), 0) + 1)
    return windows
