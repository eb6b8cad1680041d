"""What every index over stored rows can do.

An index is built over the join columns of immutable rows. A probe gives values, as 64-bit codes,
for the columns of an *access pattern*; the index answers with ranges of positions in its own order.
The ranges contain every row that matches and may contain others: the SteM compares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eddyline.arrays import BoolArray, Codes, IntArray

#: The key columns that a probe gives values for: their positions, ascending.
Pattern = tuple[int, ...]


@dataclass(frozen=True)
class Ranges:
    """Ranges of index positions, each for one probe; a probe may have none or several.

    Parameters
    ----------
    probes
        For each range, the position of its probe, ascending.
    starts, counts
        First position of each range, and its length.

    """

    probes: IntArray
    starts: IntArray
    counts: IntArray

    def expand(self) -> tuple[IntArray, IntArray]:
        """Return probe and index position of every candidate.

        Examples
        --------
        >>> ranges = Ranges(np.array([0, 2]), np.array([5, 1]), np.array([2, 1]))
        >>> probes, positions = ranges.expand()
        >>> probes.tolist(), positions.tolist()
        ([0, 0, 2], [5, 6, 1])

        """
        total = int(self.counts.sum())
        if total == len(self.counts) and (self.counts == 1).all():
            return self.probes, self.starts
        before = np.cumsum(self.counts) - self.counts
        positions = np.repeat(self.starts - before, self.counts)
        positions += np.arange(total)
        return np.repeat(self.probes, self.counts), positions


class Index(ABC):
    """An index over the join columns of immutable rows, which serves any access pattern."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Memory that the index takes beyond the rows, in bytes."""

    def ranges_per_probe(self, pattern: Pattern) -> int:
        """Return the number of ranges that a search by some columns visits at most."""
        return 1

    @abstractmethod
    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return where the rows may be that equal the probes.

        Parameters
        ----------
        pattern
            The columns that probes give; at least one.
        codes
            For each column of the pattern, the codes of all probes.

        """

    @abstractmethod
    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones.

        A row with NULL in a column of the pattern equals nothing.

        Parameters
        ----------
        pattern
            The columns that probes give.
        positions
            Index positions of candidates.
        codes
            For each column of the pattern, the code that the probe of each candidate has.

        """
