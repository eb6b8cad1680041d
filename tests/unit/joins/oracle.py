"""A nested loop over all rows: what every join must equal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eddyline.joins.plan import TIME_COLUMN, Bound, JoinQuery, Role


@dataclass(frozen=True)
class Row:
    """A row of a stream: an identity, its micro-batch, its keys, its time, and who wants it."""

    number: int
    batch: int
    keys: tuple[int | None, ...]
    time_us: int
    wanted: Mapping[int, frozenset[int]]  # by occurrence, slots of queries


def arrival_order(rows: Mapping[int, Sequence[Row]]) -> list[tuple[int, Row]]:
    """Return all rows with their streams as they arrive: by micro-batch, then by stream."""
    arrived = [(stream, row) for stream, own in sorted(rows.items()) for row in own]
    return sorted(arrived, key=lambda pair: (pair[1].batch, pair[0]))


def is_within_rows(
    query: JoinQuery, by_role: Mapping[Role, Row], rows: Mapping[int, Sequence[Row]]
) -> bool:
    """Whether few enough rows of each stream arrived between its row and the last one."""
    order = arrival_order(rows)
    places = {(stream, row.number): place for place, (stream, row) in enumerate(order)}
    youngest = max(places[role.stream, row.number] for role, row in by_role.items())
    for role, size in query.windows_rows.items():
        since = order[places[role.stream, by_role[role].number] + 1 : youngest + 1]
        if sum(stream == role.stream for stream, _ in since) >= size:
            return False
    return True


def is_bounded(bound: Bound, by_role: Mapping[Role, Row]) -> bool:
    """Whether a comparison holds; columns that are compared have the values of keys."""
    values = [
        row.time_us if ref.column == TIME_COLUMN else row.keys[ref.column]
        for ref in (bound.low, bound.high)
        for row in [by_role[ref.role]]
    ]
    low, high = values
    return low is not None and high is not None and low <= high + bound.offset


def is_equal(one: int | None, other: int | None) -> bool:
    return one is not None and one == other


def results(query: JoinQuery, rows: Mapping[int, Sequence[Row]]) -> list[tuple[int, ...]]:
    """Return the row numbers of every result of a query, role by role."""
    found = []
    for combination in itertools.product(*[rows[role.stream] for role in query.roles]):
        by_role = dict(zip(query.roles, combination, strict=True))
        newest = max(row.time_us for row in combination)
        if not all(query.slot in row.wanted[role.occurrence] for role, row in by_role.items()):
            continue
        windows = query.windows_us
        if not all(
            windows[role] is None or newest - row.time_us < windows[role]
            for role, row in by_role.items()
        ):
            continue
        if query.windows_rows and not is_within_rows(query, by_role, rows):
            continue
        if not all(is_bounded(bound, by_role) for bound in query.bounds):
            continue
        if all(
            is_equal(by_role[one.role].keys[one.column], by_role[other.role].keys[other.column])
            for equal in query.equalities
            for one, other in itertools.combinations(sorted(equal), 2)
        ):
            found.append(tuple(row.number for row in combination))
    return sorted(found)
