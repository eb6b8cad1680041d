"""What the join plane knows of queries: the roles that streams play, and which keys are equal.

A query is a set of *roles*, the streams it joins; a stream that stands twice in FROM plays two.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eddyline.operators.bitmaps import words_for


class Role(NamedTuple):
    """A part that rows of a stream play in a query.

    Parameters
    ----------
    stream
        Number of the stream.
    occurrence
        0, and 1, 2... if the stream stands several times in FROM.

    """

    stream: int
    occurrence: int = 0


class KeyRef(NamedTuple):
    """A key column, or a compared column, of the stream in some role."""

    role: Role
    column: int


#: Stands for the event time where a compared column is meant.
TIME_COLUMN = -1


class Bound(NamedTuple):
    """A comparison across streams: one compared column is at most another one plus a number."""

    low: KeyRef
    high: KeyRef
    offset: float


@dataclass(frozen=True)
class JoinQuery:
    """What the join plane knows of a query.

    Parameters
    ----------
    slot
        Its bit in all bitmaps.
    roles
        The streams that it joins, in the order of `Role`.
    equalities
        Sets of key columns that are equal; closed under transitivity. No two columns of one role
        are in the same set: that they are equal is a filter on the stream.
    windows_us
        For each role, how much older than the youngest row of a result its row may be, exclusive;
        None if time does not limit it.
    windows_rows
        For roles with a window of rows, its size: so many rows of the stream are in it, up to the
        row of a result that arrived last. If a role has one, all rows must have sequence numbers.
    bounds
        What comparisons say of the rows of two roles; results may still be filtered further.

    """

    slot: int
    roles: tuple[Role, ...]
    equalities: tuple[frozenset[KeyRef], ...]
    windows_us: Mapping[Role, int | None]
    windows_rows: Mapping[Role, int] = field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()

    def bindings(self, role: Role, bound: Sequence[Role]) -> tuple[Binding, ...]:
        """Return which key columns of a role are known once other roles are filled."""
        found = []
        for equal in self.equalities:
            sources = [ref for ref in sorted(equal) if ref.role in bound]
            if sources:
                source = min(sources, key=lambda ref: bound.index(ref.role))
                found += [Binding(ref.column, source) for ref in sorted(equal) if ref.role == role]
        return tuple(sorted(set(found)))


class Binding(NamedTuple):
    """A key column of the probed stream, and the key column that gives its value."""

    column: int
    source: KeyRef


class Step(NamedTuple):
    """A probe: the role it fills, and the values it searches for."""

    role: Role
    bindings: tuple[Binding, ...]

    @property
    def pattern(self) -> tuple[int, ...]:
        """The access pattern: the searched columns, ascending."""
        return tuple(dict.fromkeys(binding.column for binding in self.bindings))


def words_of(queries: Sequence[JoinQuery]) -> int:
    """Return the number of words in the bitmaps of these queries."""
    return words_for(int(np.max([query.slot for query in queries], initial=-1)) + 1)
