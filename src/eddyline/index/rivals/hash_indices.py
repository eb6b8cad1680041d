"""Several hash indices: what systems with adaptive routes used before bit-address indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.rivals.scan import all_rows
from eddyline.index.sorted_hash import SortedHash


class HashIndices(Index):
    """A hash index for each of some access patterns.

    A search uses the most suitable index: the one with most columns of the search, and none
    outside it. A search without a suitable index reads all rows.

    Parameters
    ----------
    columns
        The join columns.
    patterns
        The patterns to index, all different. Of two that suit a search equally well the first is
        used.

    Examples
    --------
    The example of the paper: indices on A1, on A1 and A2, and on A2 and A3.

    >>> import numpy as np
    >>> codes = np.array([7, 9, 7], dtype=np.uint64)
    >>> index = HashIndices(Columns([codes] * 3, [None] * 3), [(0,), (0, 1), (1, 2)])
    >>> index.suitable((0, 2)), index.suitable((2,)), index.suitable((0, 1, 2))
    ((0,), None, (0, 1))
    >>> index.keys_per_row, index.entries
    (3, 9)

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 2.2.
    Raman et al., Using State Modules for Adaptive Query Processing, ICDE 2003.

    """

    name: ClassVar[str] = "hash indices"

    def __init__(self, columns: Columns, patterns: Sequence[Pattern]) -> None:
        self._columns = columns
        self._indices: dict[Pattern, SortedHash] = {}
        #: Number of hash entries made: rows without NULL, over all indices.
        self.entries = 0
        for pattern in patterns:
            self._check(pattern)
            is_valid = columns.valid(pattern)
            codes = [columns.codes[column] for column in pattern]
            self._indices[pattern] = SortedHash(codes, is_valid)
            self.entries += len(columns) if is_valid is None else int(is_valid.sum())

    def _check(self, pattern: Pattern) -> None:
        if not pattern or list(pattern) != sorted(set(pattern)):
            raise ValueError(f"a pattern must be columns in ascending order, not {pattern}")
        if pattern[0] < 0 or pattern[-1] >= len(self._columns.codes):
            raise ValueError(
                f"the pattern {pattern} goes beyond the {len(self._columns.codes)} columns"
            )
        if pattern in self._indices:
            raise ValueError(f"the pattern {pattern} is given twice")

    @property
    def bytes(self) -> int:
        """Memory that all indices take beyond the rows."""
        return sum(index.bytes for index in self._indices.values())

    @property
    def keys_per_row(self) -> int:
        """Number of hash keys of a row: one for each index."""
        return len(self._indices)

    def suitable(self, pattern: Pattern) -> Pattern | None:
        """Return the indexed pattern that a search uses; None if it reads all rows."""
        given = set(pattern)
        contained = [indexed for indexed in self._indices if given.issuperset(indexed)]
        return max(contained, key=len, default=None)

    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return what the most suitable index finds, or all rows for each probe."""
        indexed = self.suitable(pattern)
        if indexed is None:
            return all_rows(len(codes[0]), len(self._columns))
        return self._indices[indexed].ranges(_of_columns(indexed, pattern, codes))

    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        indexed = self.suitable(pattern)
        if indexed is None:
            return positions, self._columns.equal(pattern, positions, codes)
        index = self._indices[indexed]
        rows, is_equal = index.confirm(positions, _of_columns(indexed, pattern, codes))
        others = tuple(column for column in pattern if column not in indexed)
        if others:
            is_equal &= self._columns.equal(others, rows, _of_columns(others, pattern, codes))
        return rows, is_equal


def _of_columns(columns: Pattern, pattern: Pattern, codes: Sequence[Codes]) -> list[Codes]:
    """Return the codes of some columns of a pattern."""
    return [codes[pattern.index(column)] for column in columns]
