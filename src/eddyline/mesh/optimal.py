"""Opt-QM: the cheapest query mesh of all, over every partition of the training tuples.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.6, figure 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddyline.errors import EddylineError
from eddyline.mesh.cost import MeshProblem, Partition, Solution

TUPLES_MAX = 12  # 4.2 million partitions


def optimal(problem: MeshProblem) -> Solution:
    """Return the cheapest mesh.

    The number of partitions is a Bell number, so this is for small training sets. Not every
    classifier has to be grown: what a partition's routes cost is a lower bound of what the mesh
    costs, and partitions are looked at in the order of that bound until it exceeds the best mesh.
    """
    tuples = len(problem.tuples)
    if tuples > TUPLES_MAX:
        raise EddylineError(
            f"Opt-QM looks at every partition of the training tuples: {tuples} are too many, "
            f"at most {TUPLES_MAX}; condense the sample further or use another search"
        )
    bounded = sorted((problem.bound_us(p), p) for p in partitions(tuples))
    best: Solution | None = None
    for bound_us, partition in bounded:
        if best is not None and bound_us >= best.cost_us:
            break
        solution = problem.evaluate(partition)
        if best is None or solution.cost_us < best.cost_us:
            best = solution
    assert best is not None
    return best


def partitions(tuples: int) -> Iterator[Partition]:
    """Return every way to divide so many tuples into groups.

    Examples
    --------
    >>> list(partitions(3))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    >>> sum(1 for _ in partitions(4))
    15

    """
    if tuples == 0:
        yield ()
        return
    for shorter in partitions(tuples - 1):
        for group in range(max(shorter, default=-1) + 2):
            yield (*shorter, group)
