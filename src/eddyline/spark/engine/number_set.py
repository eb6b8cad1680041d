"""Sets of query numbers, kept as ranges: queries that are added together often match together."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator


class NumberSet:
    """An immutable set of integers.

    Parameters
    ----------
    ranges
        First and last number of each range, in order, without gaps of zero between them.

    Examples
    --------
    >>> numbers = NumberSet.of([4, 1, 2, 3, 9])
    >>> numbers.ranges, 3 in numbers, 5 in numbers
    (((1, 4), (9, 9)), True, False)
    >>> numbers.without({2}).ranges
    ((1, 1), (3, 4), (9, 9))

    """

    def __init__(self, ranges: Iterable[Iterable[int]]) -> None:
        self.ranges = tuple((first, last) for first, last in ranges)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> NumberSet:
        """Return the set of some numbers."""
        ranges: list[list[int]] = []
        for number in sorted(set(numbers)):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return cls(ranges)

    def __contains__(self, number: int) -> bool:
        position = bisect.bisect_right(self.ranges, number, key=lambda pair: pair[0]) - 1
        return position >= 0 and number <= self.ranges[position][1]

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberSet) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __repr__(self) -> str:
        return f"NumberSet({list(self)})"

    def without(self, numbers: Collection[int]) -> NumberSet:
        """Return the set without some numbers."""
        if not any(number in self for number in numbers):
            return self
        return NumberSet.of(number for number in self if number not in numbers)
