"""An eddy with content-based routing that takes one row at a time, as in the paper's comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.content.learns import ContentOptions

Predicate = Callable[[int], bool]


class TupleEddy:
    """Routes each row, after each visit, to the operator that drops most rows like it.

    It is told which column classifies rows: what it costs is routing alone, not learning.

    Parameters
    ----------
    predicates
        Called with a row's number.
    cost_us
        Of each.
    options
        Partitions, and how fast selectivities follow.

    """

    def __init__(
        self,
        predicates: Sequence[Predicate],
        cost_us: Sequence[float],
        options: ContentOptions | None = None,
    ) -> None:
        self._options = options or ContentOptions.paper()
        self._predicates = list(predicates)
        self._cost_us = list(cost_us)
        self._selectivity = [[0.5] * len(predicates) for _ in range(self._options.partitions)]

    def run(self, partition_of_row: Sequence[int]) -> list[int]:
        """Return the rows that pass everything."""
        kept = []
        memory, predicates, cost_us = self._options.memory, self._predicates, self._cost_us
        everything = frozenset(range(len(predicates)))
        for row, partition in enumerate(partition_of_row):
            selectivity = self._selectivity[partition]
            ready = set(everything)
            while ready:
                # Back at the eddy after each visit: which of those left is best for this row?
                chosen, best = -1, -1.0
                for operator in ready:
                    rank = (1.0 - selectivity[operator]) / cost_us[operator]
                    if rank > best:
                        chosen, best = operator, rank
                passed = predicates[chosen](row)
                selectivity[chosen] = memory * selectivity[chosen] + (1 - memory) * passed
                if not passed:
                    break
                ready.discard(chosen)
            else:
                kept.append(row)
        return kept
