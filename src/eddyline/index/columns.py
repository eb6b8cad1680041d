"""The join columns of a partition, as indexes see them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.index import Pattern

#: Rows from which the number of values of a column is estimated.
SAMPLE_ROWS = 4_096
#: A column has many values if so large a part of the sampled ones differ.
MANY_VALUES = 0.5


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

    def bits_filled(self, column: int) -> int:
        """Return the most bits that the values of a column fill, by a sample of them.

        Examples
        --------
        >>> import numpy as np
        >>> codes = np.arange(6, dtype=np.uint64)
        >>> Columns([codes], [None]).bits_filled(0)
        3

        """
        codes = self.codes[column]
        step = max(1, len(codes) // SAMPLE_ROWS)
        sampled = codes[::step]
        distinct = len(np.unique(sampled))
        if distinct > MANY_VALUES * len(sampled) and step > 1:
            distinct = len(codes)  # most values of the sample are new: others will be so too
        return max(distinct - 1, 0).bit_length()

    @functools.cached_property
    def limits(self) -> list[int]:
        """For each column, the most bits that its values fill."""
        return [self.bits_filled(column) for column in range(len(self.codes))]

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
