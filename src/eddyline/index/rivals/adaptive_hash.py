"""Adaptive hash indices: the most frequent access patterns are indexed, selected again when due."""

from __future__ import annotations

from collections.abc import Mapping

from eddyline.index.columns import Columns
from eddyline.index.index import Pattern
from eddyline.index.rivals.hash_indices import HashIndices


class AdaptiveHash:
    """Selects the access patterns to index for the partitions to come.

    When a schedule finds the state due, `patterns_for` selects patterns by what was counted.
    Partitions that exist keep the indices they have, as with nothing migration.

    Parameters
    ----------
    count
        Number of hash indices of a partition; the paper tries 1 to 7.

    Examples
    --------
    >>> policy = AdaptiveHash(count=2)
    >>> policy.patterns_for({(0,): 0.2, (1,): 0.5, (0, 1): 0.3})
    ((1,), (0, 1))
    >>> policy.patterns  # for the partitions to come
    ((1,), (0, 1))

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 9.3.

    """

    def __init__(self, count: int) -> None:
        _check_count(count)
        self.count = count
        #: The patterns selected last; none before the first selection.
        self.patterns: tuple[Pattern, ...] = ()

    def patterns_for(self, frequencies: Mapping[Pattern, float]) -> tuple[Pattern, ...]:
        """Select patterns by frequency; without any searches the selection stays."""
        selected = most_frequent(frequencies, self.count)
        if selected:
            self.patterns = selected
        return self.patterns

    def index(self, columns: Columns) -> HashIndices:
        """Return the index of a new partition."""
        return HashIndices(columns, self.patterns)


def most_frequent(frequencies: Mapping[Pattern, float], count: int) -> tuple[Pattern, ...]:
    """Return the most frequent access patterns: conventional index selection.

    Parameters
    ----------
    frequencies
        Frequency of each pattern. Patterns of frequency 0, and the one without columns, which no
        index serves, are left out.
    count
        Number of patterns. Of equally frequent ones, those of fewer columns come first, then
        those of lower columns.

    Examples
    --------
    >>> most_frequent({(1, 2): 3.0, (): 9.0, (2,): 3.0, (0,): 5.0, (1,): 0.0}, count=2)
    ((0,), (2,))

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 9.3.

    """
    _check_count(count)
    searched = [pattern for pattern, frequency in frequencies.items() if pattern and frequency > 0]
    searched.sort(key=lambda pattern: (-frequencies[pattern], len(pattern), pattern))
    return tuple(searched[:count])


def _check_count(count: int) -> None:
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
