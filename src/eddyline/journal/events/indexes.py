"""Decisions about the indexes over join state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.journal.events.event import Event

#: Shares of searches that differ by less are alike.
LIKE = 0.1


@dataclass(frozen=True, kw_only=True)
class IndexAssessed(Event):
    """The searches of a state were assessed, and the best configuration for them selected.

    Parameters
    ----------
    state
        The state.
    requests, entries
        Searches that were counted, and statistics that were kept of them.
    frequencies
        Share of the searches by access pattern, as the assessment reports them.
    before, after
        Bits of each join column, from the high bits of a bucket id to the low ones, until now and
        selected; the same text if the configuration stays.
    cost_before, cost_after
        Expected cost of the searches of a partition with either, in milliseconds.

    """

    state: str
    requests: int
    entries: int
    frequencies: Mapping[str, float]
    before: str
    after: str
    cost_before: float
    cost_after: float

    def is_like(self, other: IndexAssessed) -> bool:
        """Whether both found the same configurations, and frequencies that hardly differ."""
        patterns = self.frequencies.keys() | other.frequencies.keys()
        return (self.before, self.after) == (other.before, other.after) and all(
            abs(self.frequencies.get(p, 0.0) - other.frequencies.get(p, 0.0)) < LIKE
            for p in patterns
        )

    def sentence(self) -> str:
        """Return the event as one line for people."""
        ranked = sorted(self.frequencies.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{pattern} {share:.0%}" for pattern, share in ranked)
        kept = f"{self.before} stays" if self.before == self.after else f"{self.after} is better"
        return f"{self.requests:,} searches of {self.state} ({shares}): {kept}"


@dataclass(frozen=True, kw_only=True)
class IndexReconfigured(Event):
    """New rows of a state are indexed with another configuration from now on.

    Parameters
    ----------
    state
        The state.
    before, after
        Bits of each join column, from the high bits of a bucket id to the low ones.
    cost_before, cost_after
        Expected cost of the searches of a partition with either, in milliseconds.
    partitions, migrated
        Partitions that hold stored rows, and how many of them are indexed again.

    """

    state: str
    before: str
    after: str
    cost_before: float
    cost_after: float
    partitions: int
    migrated: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"{self.state} is indexed with {self.after} instead of {self.before} "
            f"({self.cost_before:.3g} → {self.cost_after:.3g} ms of searches a partition; "
            f"{self.migrated} of {self.partitions} partitions are indexed again)"
        )


@dataclass(frozen=True, kw_only=True)
class IndexRivalChosen(Event):
    """Searches by an access pattern cost less with another index than the bit-address index.

    Parameters
    ----------
    state, pattern
        The state, and the columns that are searched.
    rival
        The index.
    rows, searches
        Rows of the partition for which it was chosen first, and searches expected of it.

    """

    state: str
    pattern: str
    rival: str
    rows: int
    searches: float

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"searches of {self.state} by {self.pattern} use a {self.rival}: {self.searches:,.0f} "
            f"searches of {self.rows:,} rows cost less than with the bit-address index"
        )
