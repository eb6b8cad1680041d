"""How many bits of a bucket id each join column has: the configuration of a bit-address index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.index.index import Pattern


@dataclass(frozen=True)
class Configuration:
    """Bits of a bit-address index (in the paper: index key map, IC).

    Parameters
    ----------
    bits
        For each join column, the number of its bits; 0 for a column that is not indexed.
    order
        The columns from the high bits of a bucket id to the low ones. Searches by columns in the
        high bits walk fewer, longer ranges of buckets. Default: as written.

    Examples
    --------
    >>> configuration = Configuration((5, 2, 3))
    >>> configuration.total, configuration.given((0, 2))
    (10, 8)
    >>> configuration.ranges((0, 2)), configuration.ranges((0,)), configuration.ranges((2,))
    (4, 1, 128)
    >>> Configuration((4, 0, 4), (1, 0, 2)) == Configuration((4, 0, 4), (0, 1, 2))
    True

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 4.1.

    """

    bits: tuple[int, ...]
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check that the order is a permutation of the columns, and bring it into one form."""
        if not self.bits or min(self.bits) < 0:
            raise ValueError(f"bits must be numbers from 0, one for each column; got {self.bits}")
        order = self.order or tuple(range(len(self.bits)))
        if sorted(order) != list(range(len(self.bits))):
            raise ValueError(
                f"the order {order} is not a permutation of the {len(self.bits)} columns"
            )
        # Columns without bits come last, so that configurations that mean the same are equal.
        indexed = [column for column in order if self.bits[column]]
        others = [column for column, bits in enumerate(self.bits) if not bits]
        object.__setattr__(self, "order", (*indexed, *others))

    @property
    def total(self) -> int:
        """Number of bits of a bucket id."""
        return sum(self.bits)

    def given(self, pattern: Pattern) -> int:
        """Return the number of bits that a search by some columns knows (in the paper: B_ap)."""
        return sum(self.bits[column] for column in pattern)

    def wild(self, pattern: Pattern) -> int:
        """Return the number of unknown bits above the lowest bit that a search knows."""
        unknown, above = 0, 0
        for column in self.order:
            if column not in pattern:
                unknown += self.bits[column]
            elif self.bits[column]:
                above = unknown
        return above

    def ranges(self, pattern: Pattern) -> int:
        """Return the number of ranges of buckets that a search by some columns walks."""
        return 1 << self.wild(pattern)

    def within(self, limits: Sequence[int]) -> Configuration:
        """Return the configuration with at most so many bits for each column."""
        return Configuration(tuple(map(min, self.bits, limits)), self.order)

    def to_list(self) -> list[list[int]]:
        """Return plain values that fit into JSON.

        Examples
        --------
        >>> Configuration.from_list(Configuration((2, 3), (1, 0)).to_list())
        Configuration(bits=(2, 3), order=(1, 0))

        """
        return [list(self.bits), list(self.order)]

    @classmethod
    def from_list(cls, plain: Sequence[Sequence[int]]) -> Configuration:
        """Read what `to_list` wrote."""
        bits, order = plain
        return cls(tuple(bits), tuple(order))
