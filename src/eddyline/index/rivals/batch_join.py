"""No index is kept: each batch of probes is hash-joined with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.sorted_hash import SortedHash, combine

#: A bitmap has 2 ** 6 places or more for each probe, so it passes few rows without a match. It
#: takes at most a megabyte, to fit into the cache of the processor.
_BITS_PER_PROBE, _BITS_MAX = 6, 20


class BatchJoin(Index):
    """Hash-joins each batch of probes with all rows.

    It costs no memory and no build, and every search reads all rows once. A bitmap over the high
    bits of the probes' codes first drops most rows that have no match, column by column and then
    by all columns together. The hash is built over the rows that remain: nearly all of them match,
    so it is hardly larger than the result.

    Parameters
    ----------
    columns
        The join columns.

    Examples
    --------
    >>> codes = np.array([7 << 60, 9 << 60, 7 << 60], dtype=np.uint64)
    >>> index = BatchJoin(Columns([codes], [None]))
    >>> ranges = index.ranges((0,), [codes[:2]])
    >>> ranges.probes.tolist(), ranges.starts.tolist(), ranges.counts.tolist()
    ([0, 0, 1], [0, 2, 1], [1, 1, 1])

    """

    name: ClassVar[str] = "batch join"

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @property
    def bytes(self) -> int:
        """Nothing is kept beyond the rows."""
        return 0

    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return a range of one row for each match, and for a few false candidates."""
        rows = self.candidates(pattern, codes)
        hashed = SortedHash(self._stored(pattern, rows))
        probes, positions = hashed.ranges(codes).expand()
        rows = rows[hashed.rows(positions)]
        return Ranges(probes, rows, np.ones(len(rows), dtype=np.int64))

    def candidates(self, pattern: Pattern, codes: Sequence[Codes]) -> IntArray:
        """Return the rows that may equal a probe: not dropped by a bitmap, and without NULL."""
        rows: IntArray | None = None
        if len(pattern) > 1:
            for column, given in zip(pattern, codes, strict=True):
                (stored,) = self._stored((column,), rows)
                passed = np.flatnonzero(may_contain(given, stored))
                # Taking the rows that pass is dearer than the test: not worth it for most rows.
                if len(passed) <= len(stored) // 2:
                    rows = passed if rows is None else rows[passed]
        stored = combine(self._stored(pattern, rows))
        passed = np.flatnonzero(may_contain(combine(codes), stored))
        rows = passed if rows is None else rows[passed]
        is_valid = self._columns.valid(pattern)
        return rows if is_valid is None else rows[is_valid[rows]]

    def _stored(self, pattern: Pattern, rows: IntArray | None) -> list[Codes]:
        """Return the codes of some rows, None for all, in the columns of a pattern."""
        columns = [self._columns.codes[column] for column in pattern]
        return columns if rows is None else [column[rows] for column in columns]

    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        return positions, self._columns.equal(pattern, positions, codes)


def may_contain(probes: Codes, codes: Codes) -> BoolArray:
    """Return False for codes that are certainly not among the probes.

    Examples
    --------
    >>> probes = np.array([7 << 60], dtype=np.uint64)
    >>> may_contain(probes, np.array([7 << 60, 9 << 60], dtype=np.uint64)).tolist()
    [True, False]

    """
    bits = min(len(probes).bit_length() + _BITS_PER_PROBE, _BITS_MAX)
    shift = np.uint64(64 - bits)
    is_probed = np.zeros(1 << bits, dtype=bool)
    is_probed[(probes >> shift).view(np.int64)] = True
    return is_probed.take((codes >> shift).view(np.int64))
