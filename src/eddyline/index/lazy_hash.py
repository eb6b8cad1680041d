"""A sorted hash for each access pattern, built when the pattern is first probed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from eddyline.arrays import BoolArray, Codes, IntArray
from eddyline.index.columns import Columns
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.sorted_hash import SortedHash


class LazyHash(Index):
    """A sorted hash for each access pattern.

    Every search is exact, and every pattern costs a build and the memory of a whole index.

    Parameters
    ----------
    columns
        The join columns.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([7, 9, 7], dtype=np.uint64)
    >>> index = LazyHash(Columns([codes], [None]))
    >>> probes, positions = index.ranges((0,), [codes[:1]]).expand()
    >>> rows, is_equal = index.confirm((0,), positions, [codes[:1][probes]])
    >>> rows[is_equal].tolist()
    [0, 2]

    """

    name: ClassVar[str] = "sorted hash"

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._built: dict[Pattern, SortedHash] = {}

    @property
    def bytes(self) -> int:
        """Memory that the indexes built so far take."""
        return sum(index.bytes for index in self._built.values())

    def is_built(self, pattern: Pattern) -> bool:
        """Whether the index of a pattern is there."""
        return pattern in self._built

    @property
    def patterns(self) -> list[Pattern]:
        """The patterns whose indexes are built, in the order in which they were built."""
        return list(self._built)

    def build(self, pattern: Pattern) -> SortedHash:
        """Build the index of a pattern, if there is none yet."""
        if pattern not in self._built:
            codes = [self._columns.codes[column] for column in pattern]
            self._built[pattern] = SortedHash(codes, self._columns.valid(pattern))
        return self._built[pattern]

    def drop(self, pattern: Pattern) -> None:
        """Drop the index of a pattern; it is built again when probed."""
        self._built.pop(pattern, None)

    def ranges(self, pattern: Pattern, codes: Sequence[Codes]) -> Ranges:
        """Return one range for each probe whose address is taken."""
        return self.build(pattern).ranges(codes)

    def confirm(
        self, pattern: Pattern, positions: IntArray, codes: Sequence[Codes]
    ) -> tuple[IntArray, BoolArray]:
        """Return the rows at index positions, and whether their codes equal the given ones."""
        return self.build(pattern).confirm(positions, codes)
