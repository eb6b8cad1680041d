"""The searches that a state serves."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.index.cost import Workload
from eddyline.index.index import Pattern


@dataclass(frozen=True)
class Demand:
    """What searches a state serves, as an assessment found it.

    Parameters
    ----------
    frequencies
        Share of the searches by access pattern; empty if nothing is known.
    searches
        Searches that a stored row meets until it expires.

    """

    frequencies: Mapping[Pattern, float] = field(default_factory=dict)
    searches: float = 0.0

    @functools.cached_property
    def by_pattern(self) -> Mapping[Pattern, float]:
        """Searches by each pattern that a stored row meets until it expires."""
        return {pattern: self.searches * share for pattern, share in self.frequencies.items()}

    def on(self, rows: int) -> Workload:
        """Return the workload of a partition of so many rows, from its arrival to its end."""
        return Workload(self.frequencies, self.searches, rows, 1.0)

    def one_search(self, rows: int) -> Workload:
        """Return the workload of one search of so many rows."""
        return Workload(self.frequencies, 1.0, 1.0, rows)
