"""What a task reports of the indexes over one SteM; the next micro-batch begins with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eddyline.index.demand import Demand
from eddyline.index.index import Pattern
from eddyline.index.tuner import Tuner
from eddyline.index.words import bits_in_words, pattern_in_words
from eddyline.joins.stem import SteM

#: Names of the join columns that a search gives. Positions may change from plan to plan.
ColumnNames = tuple[str, ...]


@dataclass(frozen=True)
class NamedDemand:
    """A demand whose access patterns are names of columns.

    Parameters
    ----------
    frequencies
        Share of the searches by access pattern.
    searches
        Searches that a stored row meets until it expires.

    """

    frequencies: Mapping[ColumnNames, float]
    searches: float

    @classmethod
    def of(cls, demand: Demand, names: Sequence[str]) -> NamedDemand:
        """Return a demand with the names of columns in place of their positions."""
        named = {
            tuple(names[column] for column in pattern): share
            for pattern, share in demand.frequencies.items()
        }
        return cls(named, demand.searches)

    def positions(self, names: Sequence[str]) -> Demand:
        """Return the demand with positions; patterns with other columns are left out."""
        place = {name: column for column, name in enumerate(names)}
        frequencies: dict[Pattern, float] = {
            tuple(sorted(place[name] for name in pattern)): share
            for pattern, share in self.frequencies.items()
            if place.keys() >= set(pattern)
        }
        return Demand(frequencies, self.searches)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        shares = [[list(pattern), share] for pattern, share in self.frequencies.items()]
        return {"frequencies": shares, "searches": self.searches}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NamedDemand:
        """Read what `to_dict` wrote."""
        frequencies = {tuple(pattern): share for pattern, share in plain["frequencies"]}
        return cls(frequencies, plain["searches"])


@dataclass(frozen=True)
class IndexNote:
    """What the indexes over a SteM did in one task, or in all tasks of a micro-batch.

    Parameters
    ----------
    demand
        What the last assessment found; without patterns before the first.
    searches
        Number of searches by access pattern and index, both in words.
    configurations
        Number of partitions by configuration, in words.
    bytes, rows
        Memory of the indexes built so far, and rows that they are over.
    build_s
        Seconds that building indexes took.

    """

    demand: NamedDemand
    searches: Mapping[tuple[str, str], int] = field(default_factory=dict)
    configurations: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    rows: int = 0
    build_s: float = 0.0

    @classmethod
    def of(cls, stem: SteM, tuner: Tuner, names: Sequence[str]) -> IndexNote:
        """Return what the indexes over a SteM did."""
        searches: Counter[tuple[str, str]] = Counter()
        for (pattern, index), probes in stem.counts.searches.items():
            searches[pattern_in_words(pattern, names), index] += probes
        partitions = stem.partitions()
        return cls(
            NamedDemand.of(tuner.demand(stem.name), names),
            dict(searches),
            dict(Counter(bits_in_words(each.configuration, names) for each in partitions)),
            sum(each.bytes for each in partitions),
            sum(map(len, partitions)),
            stem.counts.build_s,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "demand": self.demand.to_dict(),
            "searches": [[*key, probes] for key, probes in self.searches.items()],
            "configurations": dict(self.configurations),
            "bytes": self.bytes,
            "rows": self.rows,
            "build_s": self.build_s,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> IndexNote:
        """Read what `to_dict` wrote."""
        return cls(
            NamedDemand.from_dict(plain["demand"]),
            {(pattern, index): probes for pattern, index, probes in plain["searches"]},
            plain["configurations"],
            plain["bytes"],
            plain["rows"],
            plain["build_s"],
        )

    @classmethod
    def merge(cls, notes: Iterable[IndexNote]) -> IndexNote:
        """Return the notes of several tasks as one; of the demands, the one of most searches.

        Examples
        --------
        >>> note = IndexNote(NamedDemand({("k",): 1.0}, 5.0), {("k", "sorted hash"): 7}, {"k:9": 1})
        >>> merged = IndexNote.merge([note, note])
        >>> merged.searches, merged.configurations
        ({('k', 'sorted hash'): 14}, {'k:9': 2})

        """
        listed = list(notes)
        searches: Counter[tuple[str, str]] = Counter()
        configurations: Counter[str] = Counter()
        for note in listed:
            searches.update(note.searches)
            configurations.update(note.configurations)
        return cls(
            max((note.demand for note in listed), key=lambda demand: demand.searches),
            dict(searches),
            dict(configurations),
            sum(note.bytes for note in listed),
            sum(note.rows for note in listed),
            sum(note.build_s for note in listed),
        )
