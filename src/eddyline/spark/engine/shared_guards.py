"""What all queries that share a native condition compare with constants.

Spark evaluates such a condition once for all its queries, but only on rows that one of them could
still match (`docs/decisions/0037`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from eddyline.operators.value_set import ValueSet
from eddyline.spark.common.columns import quoted
from eddyline.sql.placeholders import STREAM
from eddyline.sql.query import Query

#: Alternatives of one guard; a column that needs more does not guard.
ALTERNATIVES_MAX = 8
_COLUMN = re.compile(rf"`{STREAM}`\.(`(?:[^`]|``)*`)")


def own_guards(query: Query) -> list[str]:
    """Return the required conditions of a query that only compare columns with constants."""
    native = [spec.condition for spec in query.predicates if spec.function is None]
    return [
        text
        for text in query.conditions
        if not any(text in condition or condition in text for condition in native)
    ]


def common_guards(queries: Sequence[Query]) -> list[str]:
    """Return conditions of which all hold on every row that one of the queries may match.

    A guard is made for each column that all queries compare with constants: it holds where the
    comparison of at least one query does. Few queries suffice for it if their values include those
    of the others, as the smallest constant does for `>`.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "int", "t": "string"}})
    >>> texts = ["a > 5 AND b > 1", "a > 3", "a > 9 AND b < 7"]
    >>> common_guards([
    ...     parse(f"SELECT a FROM s WHERE {text} AND length(t) > 2", schemas) for text in texts])
    ['((`__eddyline_stream`.`a` > 3))']

    """
    columns = set(queries[0].accepts).intersection(*[query.accepts for query in queries[1:]])
    guards = []
    for column in sorted(columns):
        sufficient = _sufficient(queries, column)
        if sufficient is None:
            continue
        alternatives = [_comparisons_of(query, column) for query in sufficient]
        if all(alternatives):
            guards.append(" OR ".join(_all_of(texts) for texts in alternatives))
    return guards


def _all_of(texts: Sequence[str]) -> str:
    return f"({' AND '.join(f'({text})' for text in texts)})"


def _sufficient(queries: Iterable[Query], column: str) -> list[Query] | None:
    """Return queries whose accepted values include those of all others; None if too many."""
    chosen: list[tuple[ValueSet, Query]] = []
    for query in queries:
        values = query.accepts[column]
        if any(_includes(other, values) for other, _ in chosen):
            continue
        chosen = [(other, own) for other, own in chosen if not _includes(values, other)]
        chosen.append((values, query))
        if len(chosen) > ALTERNATIVES_MAX:
            return None
    return [query for _, query in chosen]


def _includes(values: ValueSet, others: ValueSet) -> bool:
    return values == others or values | others == values


def _comparisons_of(query: Query, column: str) -> list[str]:
    """Return the conditions of a query that concern one column and nothing else."""
    return [text for text in own_guards(query) if set(_COLUMN.findall(text)) == {quoted(column)}]
