"""The result of an eddy: which rows of a batch match which queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import IntArray


@dataclass(frozen=True)
class Matches:
    """Pairs of a row and a query that it matches.

    Parameters
    ----------
    rows, numbers
        For each match of a query that stores its rows: position of the row in the batch, number
        of the query.
    failures
        Errors, by query number: a predicate raised on a row that nothing else rejected for the
        query.

    Examples
    --------
    >>> first = Matches(np.array([0, 1]), np.array([7, 7]))
    >>> second = Matches(np.array([0]), np.array([8]), {9: "broken"})
    >>> merged = Matches.concat([first.relocated(np.array([1, 2])), second]).by_row()
    >>> merged.rows.tolist(), merged.numbers.tolist(), merged.failures
    ([0, 1, 2], [8, 7, 7], {9: 'broken'})

    """

    rows: IntArray
    numbers: IntArray
    failures: dict[int, str] = field(default_factory=dict)

    @classmethod
    def none(cls) -> Matches:
        """Return the matches of an empty batch."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Matches]) -> Matches:
        """Return the matches of several parts of a batch as one; a query keeps its first error."""
        failures: dict[int, str] = {}
        for part in parts:
            failures = part.failures | failures
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            failures,
        )

    def relocated(self, rows: IntArray) -> Matches:
        """Return the matches with position n replaced by `rows[n]`."""
        return Matches(rows[self.rows], self.numbers, self.failures)

    def by_row(self) -> Matches:
        """Return the matches ordered by row."""
        order = np.argsort(self.rows, kind="stable")
        return Matches(self.rows[order], self.numbers[order], self.failures)
