"""DIA: counters of access patterns in the lattice of search benefits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from eddyline.index.assessment.sria import SRIA
from eddyline.index.index import Pattern


def benefits(index: Pattern, search: Pattern) -> bool:
    """Whether an index on one pattern provides a search benefit to another (ap1 ≺ ap2).

    It does if the search gives values for all columns of the index.

    Examples
    --------
    >>> benefits((0,), (0, 1)), benefits((0, 2), (0, 1)), benefits((), (1,))
    (True, False, True)

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, definition 4.

    """
    return set(index) <= set(search)


def parents(pattern: Pattern) -> list[Pattern]:
    """Return the patterns one level up in the lattice: those with one column less.

    Examples
    --------
    >>> parents((0, 2)), parents(())
    ([(2,), (0,)], [])

    """
    return [pattern[:i] + pattern[i + 1 :] for i in range(len(pattern))]


def children(pattern: Pattern, columns: int) -> list[Pattern]:
    """Return the patterns one level down in the lattice: those with one more of the columns.

    Examples
    --------
    >>> children((1,), columns=3)
    [(0, 1), (1, 2)]

    """
    added = (column for column in range(columns) if column not in pattern)
    return [tuple(sorted((*pattern, column))) for column in added]


def bottom_up(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Return patterns by level, those with most columns first.

    Examples
    --------
    >>> bottom_up([(1,), (), (0, 1), (0,)])
    [(0, 1), (0,), (1,), ()]

    """
    return sorted(patterns, key=lambda pattern: (-len(pattern), pattern))


class DIA(SRIA):
    """Dependent index assessment: counts every pattern, and knows which ones serve which.

    The nodes of the lattice are stored in one table, as in SRIA; its edges follow from the
    patterns.

    Examples
    --------
    >>> assessment = DIA()
    >>> assessment.add((0,), 2)
    >>> assessment.add((0, 1), 3)
    >>> assessment.add((2,), 5)
    >>> assessment.leaves()
    [(0, 1), (2,)]
    >>> assessment.served((0,))
    0.5

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.4.1.

    """

    name: ClassVar[str] = "DIA"

    def leaves(self) -> list[Pattern]:
        """Return the patterns seen that provide a search benefit to no other pattern seen."""
        return [
            pattern
            for pattern in bottom_up(self._counts)
            if not any(benefits(pattern, other) for other in self._counts if other != pattern)
        ]

    def served(self, pattern: Pattern) -> float:
        """Return the share of requests that an index on a pattern provides a search benefit to."""
        if not self.requests:
            return 0.0
        served = sum(count for other, count in self._counts.items() if benefits(pattern, other))
        return served / self.requests
