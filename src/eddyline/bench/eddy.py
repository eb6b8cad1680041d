"""An eddy with content-based routing that takes one row at a time, as in the paper's comparison."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.attributes.gain import gain_ratio
from eddyline.attributes.partition import AttributePartition
from eddyline.content import ContentOptions

Predicate = Callable[[int], bool]

NO_ATTRIBUTE = -1
LOOK_ROWS = 64  # of a batch, to follow the bounds of attributes


class TupleEddy:
    """Routes each row, after each visit, to the operator that drops most rows like it.

    Content-Learns with the paper's parameters: one operator after the other is profiled on some of
    the rows, and gets the attribute with the best gain ratio as its classifier attribute.

    Parameters
    ----------
    predicates
        Called with a row's number.
    cost_us
        Of each.
    attributes
        How many columns may tell rows apart.
    seed
        For the choice of rows to profile with.

    """

    def __init__(
        self,
        predicates: Sequence[Predicate],
        cost_us: Sequence[float],
        attributes: int,
        seed: int = 0,
    ) -> None:
        self._options = ContentOptions.paper()
        self._predicates = list(predicates)
        self._cost_us = list(cost_us)
        options = self._options
        self._partitions = [
            AttributePartition(options.partitions, options.values_max, options.cut_by)
            for _ in range(attributes)
        ]
        self._random = random.Random(seed)
        operators, self._size = len(predicates), self._options.partitions + 1
        self._classifier = [NO_ATTRIBUTE] * operators
        self._overall = [0.5] * operators
        self._selectivity = [[0.5] * self._size for _ in range(operators)]
        self._profiled = 0
        self._begin_profile()

    def run(self, first_row: int, columns: Sequence[pa.Array]) -> list[int]:
        """Return those of the rows that pass everything, given their attributes."""
        for partition, column in zip(self._partitions, columns, strict=True):
            partition.look(column.slice(0, LOOK_ROWS))
        assigned = [p.assign(c).tolist() for p, c in zip(self._partitions, columns, strict=True)]
        return [
            first_row + at
            for at, partition in enumerate(zip(*assigned, strict=True))
            if self._route(first_row + at, partition)
        ]

    def _route(self, row: int, partition: tuple[int, ...]) -> bool:
        memory, cost_us, classifier = self._options.memory, self._cost_us, self._classifier
        ready = set(range(len(self._predicates)))
        is_profiled = self._random.random() < self._options.profile_probability
        while ready:
            if is_profiled:
                chosen = self._profiled
            else:
                # Back at the eddy after each visit: which of those left is best for this row?
                chosen, best = -1, -1.0
                for operator in ready:
                    attribute = classifier[operator]
                    if attribute == NO_ATTRIBUTE:
                        selectivity = self._overall[operator]
                    else:
                        selectivity = self._selectivity[operator][partition[attribute]]
                    rank = (1.0 - selectivity) / cost_us[operator]
                    if rank > best:
                        chosen, best = operator, rank
            passed = self._predicates[chosen](row)
            self._overall[chosen] = memory * self._overall[chosen] + (1 - memory) * passed
            if (attribute := classifier[chosen]) != NO_ATTRIBUTE:
                own, at = self._selectivity[chosen], partition[attribute]
                own[at] = memory * own[at] + (1 - memory) * passed
            if is_profiled:
                self._profile(partition, passed)
                is_profiled = False
            if not passed:
                return False
            ready.discard(chosen)
        return True

    def _begin_profile(self) -> None:
        self._sampled = 0
        self._into = [[0] * self._size for _ in self._partitions]
        self._out = [[0] * self._size for _ in self._partitions]

    def _profile(self, partition: tuple[int, ...], passed: bool) -> None:
        for attribute, at in enumerate(partition):
            self._into[attribute][at] += 1
            self._out[attribute][at] += passed
        self._sampled += 1
        if self._sampled < self._options.sample_rows:
            return
        ratios = gain_ratio(np.array(self._into), np.array(self._out))
        best = int(np.argmax(ratios))
        if ratios[best] < self._options.gain_ratio_min:
            best = NO_ATTRIBUTE
        if best != self._classifier[self._profiled]:
            self._classifier[self._profiled] = best
            self._selectivity[self._profiled] = [self._overall[self._profiled]] * self._size
        self._profiled = (self._profiled + 1) % len(self._predicates)
        self._begin_profile()
