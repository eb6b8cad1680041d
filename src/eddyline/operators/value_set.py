"""Which values of one column a predicate accepts.

All comparisons of a query with constants, on one column, reduce to such a set: AND is the
intersection, OR the union. Membership switches at each bound, and a bound is the smallest value on
its upper side: `x > 5` over integers switches at 6. So a set is a short list of bounds, and bounds
are all that a grouped filter stores.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass

Key = int | float | bytes


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of an ordered domain, and whether NULL belongs to it.

    Parameters
    ----------
    bounds
        Ascending, all different; at each of them membership switches.
    below
        Whether the values below the first bound belong.
    null
        Whether NULL does.

    Examples
    --------
    >>> above = ValueSet((6,))                  # x > 5, over integers
    >>> below = ValueSet((10,), below=True)     # x < 10
    >>> above & below
    ValueSet(bounds=(6, 10), below=False, null=False)
    >>> (above & below).has(9), (above & below).has(10), (above | below).has(None)
    (True, False, False)

    """

    bounds: tuple[Key, ...] = ()
    below: bool = False
    null: bool = False

    def has(self, value: Key | None) -> bool:
        """Return True if a value belongs."""
        if value is None:
            return self.null
        crossed = bisect.bisect_right(self.bounds, value)
        return self.below ^ bool(crossed % 2)

    def __and__(self, other: ValueSet) -> ValueSet:
        return self._combine(other, lambda a, b: a and b)

    def __or__(self, other: ValueSet) -> ValueSet:
        return self._combine(other, lambda a, b: a or b)

    def __invert__(self) -> ValueSet:
        """The values that do not belong; NULL stays as it is, as in SQL."""
        return ValueSet(self.bounds, not self.below, self.null)

    def _combine(self, other: ValueSet, truth: Callable[[bool, bool], bool]) -> ValueSet:
        here, there = self.below, other.below
        belongs = below = truth(here, there)
        own, others, bounds = set(self.bounds), set(other.bounds), []
        for bound in sorted(own | others):
            here ^= bound in own
            there ^= bound in others
            if truth(here, there) != belongs:
                belongs = not belongs
                bounds.append(bound)
        return ValueSet(tuple(bounds), below, truth(self.null, other.null))


NOTHING = ValueSet()
NOT_NULL = ValueSet(below=True)
ONLY_NULL = ValueSet(null=True)
