"""CDIA: counters of frequent access patterns; rare ones are merged into patterns that serve them.

Hierarchical heavy hitters over the lattice of search benefits. Where CSRIA drops a pattern, CDIA
adds its requests to a pattern with one column less, an index on which serves them too.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from eddyline.index.assessment.dia import benefits, bottom_up, parents
from eddyline.index.assessment.segments import Entry, SegmentedAssessment
from eddyline.index.index import Pattern

#: How the parent that receives the requests of a rare pattern is chosen.
Combination = Literal["random", "highest_count"]
_COMBINATIONS = ("random", "highest_count")


class CDIA(SegmentedAssessment):
    """Compact DIA: merges leaves whose frequency is below the error rate into a parent.

    No request is lost: the frequencies add up to 1. What no pattern with columns can receive goes
    to the top node, the pattern (), which is always reported. A reported frequency is at least
    that of the pattern itself less ε, and at most that of all searches the pattern provides a
    benefit to. Every pattern with a frequency of at least θ of its own is in the result.

    Parameters
    ----------
    error
        Most by which the frequency of a pattern is underestimated (ε).
    threshold
        Frequency from which a pattern is reported (θ); above `error`.
    combination
        The parent that receives a rare pattern, among those counted so far: drawn at random, or
        the one with the highest count.
    seed
        Of the random choices.

    Examples
    --------
    >>> assessment = CDIA(error=0.01, threshold=0.2)
    >>> for pattern, requests in {(0,): 50, (1,): 30, (0, 1): 15, (2,): 5}.items():
    ...     assessment.add(pattern, requests)
    >>> assessment.frequencies()
    {(0,): 0.65, (1,): 0.3, (): 0.05}

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 5.4.2 and definition 5. Cormode et al.,
    Finding Hierarchical Heavy Hitters in Data Streams, VLDB 2003.

    """

    name: ClassVar[str] = "CDIA"

    def __init__(
        self,
        error: float = 0.05,
        threshold: float = 0.1,
        combination: Combination = "highest_count",
        seed: int = 0,
    ) -> None:
        super().__init__(error, threshold)
        if combination not in _COMBINATIONS:
            raise ValueError(f"combination must be one of {_COMBINATIONS}; got {combination!r}")
        self.combination = combination
        self.seed = seed
        self._rng = np.random.default_rng(seed)

    def _compress(self, segment_id: int) -> None:
        kept: list[Pattern] = []
        # Parents come after their children, so one that became a leaf is merged in the same pass.
        levels = max(map(len, self._table))
        for level in range(levels, 0, -1):
            for pattern in sorted(node for node in self._table if len(node) == level):
                entry = self._table[pattern]
                is_rare = entry.count + entry.missed < segment_id
                if is_rare and not any(benefits(pattern, node) for node in kept):
                    self._merge(self._table, pattern, segment_id - 1, self._rng)
                else:
                    kept.append(pattern)

    def _merge(
        self,
        table: dict[Pattern, Entry],
        pattern: Pattern,
        missed: int,
        rng: np.random.Generator,
    ) -> None:
        """Move the count of a node to a parent, which is created if there is none."""
        entry = table.pop(pattern)
        possible = parents(pattern)
        counted = [parent for parent in possible if parent in table]
        if self.combination == "random":
            choices = counted or possible
            chosen = choices[int(rng.integers(len(choices)))]
        else:
            chosen = max(counted, key=lambda parent: table[parent].count, default=possible[0])
        table.setdefault(chosen, Entry(0, missed)).count += entry.count

    def frequencies(self) -> dict[Pattern, float]:
        """Return the patterns whose frequency, with those merged into them, is at least θ.

        What may be missed counts towards θ, unlike in the paper: a frequency of θ that was
        underestimated by ε would not be found otherwise.
        """
        table = {pattern: Entry(e.count, e.missed) for pattern, e in self._table.items()}
        rng = np.random.default_rng((self.seed, self.requests))
        for level in range(max(map(len, table), default=0), 0, -1):
            for pattern in sorted(node for node in table if len(node) == level):
                entry = table[pattern]
                if (entry.count + entry.missed) / self.requests < self.threshold:
                    # A parent created here has fewer than ε requests of its own, less than θ.
                    self._merge(table, pattern, 0, rng)
        return {node: table[node].count / self.requests for node in bottom_up(table)}
