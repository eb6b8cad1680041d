"""Predicates that must keep their written place cut the others into runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def runs_between_pinned(is_pinned: Sequence[bool]) -> list[range]:
    """Return the positions of predicates that may be reordered among themselves, run by run.

    A pinned predicate is a run of its own; nothing moves across it.

    Examples
    --------
    >>> [list(run) for run in runs_between_pinned([False, False, True, False])]
    [[0, 1], [2], [3]]
    >>> runs_between_pinned([])
    []

    """
    starts = [
        position
        for position, pinned in enumerate(is_pinned)
        if position == 0 or pinned or is_pinned[position - 1]
    ]
    bounds = [*starts, len(is_pinned)]
    return [range(start, end) for start, end in itertools.pairwise(bounds)]
