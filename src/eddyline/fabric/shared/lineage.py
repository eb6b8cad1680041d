"""The lineage of rows: what is known about them on their way through an eddy.

CACQ keeps *ready* and *done* bits and a *queriesCompleted* bitmap with every tuple, and routes each
tuple by itself. Here rows are routed in chunks, and all rows of a chunk take the operators in one
order. So `done` is one bitmap for the chunk, and ready is its complement, as in the paper's case
without joins. What differs from row to row stays with the row: `interested` is the complement of
queriesCompleted. An operator in `done` was offered to the whole chunk but visited only by rows that
an interested query needs it for; for the queries a row is still interesting to, the two are the
same.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, sections 3.1.1
and 3.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, IntArray
from eddyline.operators import Operator


class Compared(NamedTuple):
    """Comparisons of one column in clauses: alternatives by themselves, or within terms."""

    column: str
    is_term: bool


@dataclass(frozen=True, slots=True)
class HeldError:
    """An error of a predicate, held back: it counts only if nothing else rejects the row.

    Parameters
    ----------
    operator
        The predicate that raised.
    users
        Bitmap of the queries that use it.
    position
        Position of the row in the lineage.
    error
        What it raised.

    """

    operator: Operator
    users: Bitmap
    position: int
    error: Exception


@dataclass
class Lineage:
    """The state of one chunk of rows.

    Parameters
    ----------
    rows
        Positions in the batch, ascending.
    interested
        For each row, a bitmap of the queries that no operator has rejected the row for.
    fulfilled
        For each row, a bitmap of the clauses with predicates of which an alternative was found to
        hold.
    regions
        For the columns that other clauses compare, the region of each row's value. Clauses are
        checked by it when all of their columns are done.
    done
        Bitmap of the operators that the chunk has been routed to, as an integer: bit n is the
        n-th operator of the eddy.
    errors
        Errors of predicates. The rows concerned count as accepted until the end.

    Examples
    --------
    >>> lineage = Lineage.start(np.arange(3), np.array([0b11], dtype=np.uint64), clause_words=1)
    >>> lineage.mark_done(2)
    >>> list(lineage.ready([1, 2, 0]))
    [1, 0]

    """

    rows: IntArray
    interested: Bitmaps
    fulfilled: Bitmaps
    regions: dict[Compared, IntArray] = field(default_factory=dict)
    done: int = 0
    errors: list[HeldError] = field(default_factory=list)

    @classmethod
    def start(cls, rows: IntArray, queries: Bitmap, clause_words: int) -> Lineage:
        """Return the lineage of rows that have visited nothing and interest the given queries."""
        return cls(
            rows,
            np.repeat(queries[None], len(rows), axis=0),
            np.zeros((len(rows), clause_words), dtype=np.uint64),
        )

    def regions_of(self, compared: Compared) -> IntArray:
        """Return the regions of a column, to be written too; those of rows that no visit saw are 0.

        These interest no query that compares the column, so it does not matter which they are.
        """
        regions = self.regions.get(compared)
        if regions is None:
            regions = self.regions[compared] = np.zeros(len(self.rows), dtype=np.int64)
        return regions

    def ready(self, order: Sequence[int]) -> Iterator[int]:
        """Yield the operators that are ready, in the given order.

        `done` is read when the next operator is asked for, so operators may become done meanwhile.
        """
        for operator in order:
            if not self.done >> operator & 1:
                yield operator

    def mark_done(self, operator: int) -> None:
        """Note that the chunk has been routed to an operator."""
        self.done |= 1 << operator
