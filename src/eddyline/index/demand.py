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

    def after(self, frequencies: Mapping[Pattern, float], share: float, searches: float) -> Demand:
        """Return the demand after newer searches.

        Parameters
        ----------
        frequencies
            Share of the newer searches by access pattern; if empty, nothing changes.
        share
            Weight of the older ones, from 0 to 1.
        searches
            Searches that a stored row meets until it expires.

        Examples
        --------
        >>> Demand({(0,): 1.0}, 8.0).after({(1,): 1.0}, 0.25, 8.0)
        Demand(frequencies={(0,): 0.25, (1,): 0.75}, searches=8.0)

        """
        if not frequencies:
            return self
        weight = share if self.frequencies else 0.0
        patterns = dict.fromkeys([*self.frequencies, *frequencies])
        mixed = {
            pattern: weight * self.frequencies.get(pattern, 0.0)
            + (1 - weight) * frequencies.get(pattern, 0.0)
            for pattern in patterns
        }
        return Demand({p: frequency for p, frequency in mixed.items() if frequency}, searches)

    def on(self, rows: int) -> Workload:
        """Return the workload of a partition of so many rows, from its arrival to its end."""
        return Workload(self.frequencies, self.searches, rows, 1.0)

    def one_search(self, rows: int) -> Workload:
        """Return the workload of one search of so many rows."""
        return Workload(self.frequencies, 1.0, 1.0, rows)
