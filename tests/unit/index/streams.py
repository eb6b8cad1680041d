"""Streams of search requests, and the workload of table 2 of the AMRI paper."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from eddyline.index.assessment import Assessment
from eddyline.index.index import Pattern

#: A batch: so many requests with the same pattern.
Batch = tuple[Pattern, int]

#: Requests of each pattern in a hundred: table 2.
TABLE_2: dict[Pattern, int] = {
    (0,): 4,
    (1,): 10,
    (2,): 10,
    (0, 1): 4,
    (0, 2): 16,
    (1, 2): 10,
    (0, 1, 2): 46,
}


def patterns(columns: int = 4) -> st.SearchStrategy[Pattern]:
    return st.sets(st.integers(0, columns - 1)).map(lambda chosen: tuple(sorted(chosen)))


def streams(columns: int = 4, requests_max: int = 12) -> st.SearchStrategy[list[Batch]]:
    batch = st.tuples(patterns(columns), st.integers(1, requests_max))
    return st.lists(batch, min_size=1, max_size=60)


def bounds() -> st.SearchStrategy[tuple[float, float]]:
    """Error and threshold."""
    return st.sampled_from([(0.05, 0.1), (0.1, 0.15), (0.1, 0.3), (0.3, 0.4), (0.5, 0.9)])


def feed(assessment: Assessment, stream: list[Batch]) -> dict[Pattern, float]:
    """Add all batches; return the true frequencies."""
    counts: Counter[Pattern] = Counter()
    for pattern, requests in stream:
        assessment.add(pattern, requests)
        counts[pattern] += requests
    return {pattern: count / counts.total() for pattern, count in counts.items()}


def feed_table_2(assessment: Assessment) -> dict[Pattern, float]:
    return feed(assessment, list(TABLE_2.items()) * 100)
