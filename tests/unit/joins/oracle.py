"""A nested loop over all rows: what every join must equal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eddyline.joins.plan import JoinQuery


@dataclass(frozen=True)
class Row:
    """A row of a stream: an identity, its micro-batch, its keys, its time, and who wants it."""

    number: int
    batch: int
    keys: tuple[int | None, ...]
    time_us: int
    wanted: Mapping[int, frozenset[int]]  # by occurrence, slots of queries


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
        if all(
            is_equal(by_role[one.role].keys[one.column], by_role[other.role].keys[other.column])
            for equal in query.equalities
            for one, other in itertools.combinations(sorted(equal), 2)
        ):
            found.append(tuple(row.number for row in combination))
    return sorted(found)
