"""How the rows of a join are dealt out to tasks, so that partners meet.

If all streams of a query have a common key, its hash decides. Otherwise tasks are the cells of a
HyperCube: an axis for each set of equal keys, and one for each stream alone, is given a *share*,
and the product of the shares is at most the number of tasks. A row knows its place on the axes of
its own keys, and goes to all places on the others. A combination of rows meets in exactly one cell.

References
----------
Afrati and Ullman, Optimizing Joins in a Map-Reduce Environment, EDBT 2010.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.join_key import JoinKey

#: With a smaller gain over one task, copies of rows are not worth it.
GAIN_MIN = 1.5


class Axis(NamedTuple):
    """One axis, as the rows of one role see it.

    Parameters
    ----------
    share
        Number of places on it.
    key
        The key whose hash is a row's place; None if it has none here.
    is_own
        Whether the axis belongs to this role alone, so that any place does.

    """

    share: int
    key: JoinKey | None = None
    is_own: bool = False

    @property
    def is_copied(self) -> bool:
        """Whether a row goes to all places."""
        return self.key is None and not self.is_own

    @property
    def name(self) -> str:
        """Identifies the axis in files."""
        if self.is_copied:
            return f"*{self.share}"
        return f"{self.key.name if self.key else '~'}^{self.share}"


#: The axes of one role; none if one task joins all rows.
Axes = tuple[Axis, ...]


def axes_name(axes: Axes) -> str:
    """Return a name for the axes of a role; that of a hash has no share.

    Examples
    --------
    >>> axes_name(()), axes_name((Axis(2, is_own=True), Axis(3)))
    ('*', '~^2,*3')

    """
    if len(axes) == 1 and axes[0].key is not None:
        return axes[0].key.name
    return ",".join(axis.name for axis in axes) or "*"


def copies(axes: Axes) -> list[int]:
    """Return what to add to the smallest task of a row to get all of its tasks.

    Examples
    --------
    >>> copies((Axis(2), Axis(3, is_own=True))), copies((Axis(2), Axis(2)))
    ([0, 3], [0, 1, 2, 3])

    """
    tasks = [0]
    for axis in axes:
        places = range(axis.share) if axis.is_copied else range(1)
        tasks = [task * axis.share + place for task in tasks for place in places]
    return tasks


def first_tasks(axes: Axes) -> frozenset[int] | None:
    """Return the tasks that have the first copy of their rows; None if rows have no copies.

    Examples
    --------
    >>> sorted(first_tasks((Axis(2), Axis(3, is_own=True))))
    [0, 1, 2]

    """
    if not any(axis.is_copied for axis in axes):
        return None
    tasks = [0]
    for axis in axes:
        places = range(1 if axis.is_copied else axis.share)
        tasks = [task * axis.share + place for task in tasks for place in places]
    return frozenset(tasks)


@dataclass(frozen=True)
class Dealing:
    """How the rows of a query are dealt out.

    Parameters
    ----------
    roles
        The axes of each role.
    gain
        Rows of all streams for each row of one task, if streams are equally large.

    """

    roles: tuple[Axes, ...]
    gain: float

    @property
    def tasks(self) -> int:
        """Number of tasks that rows are dealt out to."""
        return prod(axis.share for axis in self.roles[0])


def deal(join: CompiledJoin, tasks: int) -> Dealing:
    """Return how to deal out the rows of a join to at most so many tasks."""
    count = len(join.parts)
    common = join.common_key()
    if common is not None:
        return Dealing(tuple((Axis(tasks, common[role]),) for role in range(count)), float(tasks))
    keys = [{own.role: own.key for own in equal} for equal in join.equalities]
    members = (*map(frozenset, keys), *[frozenset([role]) for role in range(count)])
    best = _best_shares(members, tasks)
    gain = count / _load(members, best)
    if gain < GAIN_MIN:
        return Dealing(((),) * count, gain)
    return Dealing(
        tuple(
            tuple(
                Axis(share, keys[n].get(role) if n < len(keys) else None, n - len(keys) == role)
                for n, share in enumerate(best)
                if share > 1
            )
            for role in range(count)
        ),
        gain,
    )


@functools.lru_cache(maxsize=1_000)
def _best_shares(members: tuple[frozenset[int], ...], tasks: int) -> tuple[int, ...]:
    return min(_shares(len(members), tasks), key=lambda shares: (_load(members, shares), shares))


def _load(members: Sequence[frozenset[int]], shares: Sequence[int]) -> float:
    """Return the rows of one task, if every stream has one row."""
    roles = frozenset().union(*members)
    return sum(
        1 / prod(share for own, share in zip(members, shares, strict=True) if role in own)
        for role in roles
    )


def _shares(axes: int, tasks: int) -> Iterator[tuple[int, ...]]:
    """Yield all shares with a product of at most the number of tasks."""
    if not axes:
        yield ()
        return
    for share in range(1, tasks + 1):
        for rest in _shares(axes - 1, tasks // share):
            yield (share, *rest)
