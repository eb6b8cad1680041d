"""The join columns of a partition, as indexes see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.index import Pattern


@dataclass(frozen=True)
class Columns:
    """Codes of all join columns of some immutable rows.

    Parameters
    ----------
    codes
        For each column, the code of every row; at least one column. The high bits of codes are
        spread evenly over different values.
    is_valid
        For each column, which rows are not NULL; None if all are.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([7, 9, 7], dtype=np.uint64)
    >>> columns = Columns([codes, codes], [None, np.array([True, False, True])])
    >>> len(columns), columns.valid((0, 1)).tolist(), columns.valid((0,)) is None
    (3, [True, False, True], True)
    >>> columns.equal((0,), np.array([0, 1]), [codes[:2]]).tolist()
    [True, True]

    """

    codes: Sequence[Codes]
    is_valid: Sequence[BoolArray | None]

    def __len__(self) -> int:
        return len(self.codes[0])

    def valid(self, pattern: Pattern) -> BoolArray | None:
        """Return which rows have no NULL in some columns; None if all are so."""
        result: BoolArray | None = None
        for column in pattern:
            is_valid = self.is_valid[column]
            if is_valid is not None:
                result = is_valid if result is None else result & is_valid
        return result

    def equal(self, pattern: Pattern, rows: IntArray, codes: Sequence[Codes]) -> BoolArray:
        """Return whether rows have the given codes in the columns of a pattern, and no NULL.

        Parameters
        ----------
        pattern
            The columns; at least one.
        rows
            Positions of rows.
        codes
            For each column of the pattern, a code for each of these rows.

        """
        is_equal: BoolArray | None = None
        for column, given in zip(pattern, codes, strict=True):
            same: BoolArray = self.codes[column][rows] == given
            is_valid = self.is_valid[column]
            if is_valid is not None:
                same &= is_valid[rows]
            is_equal = same if is_equal is None else is_equal & same
        assert is_equal is not None
        return is_equal
