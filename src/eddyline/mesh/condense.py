"""Condensing: many sampled rows become few training tuples, each with the weight of its rows.

A training tuple stands for sampled rows that have similar attributes and that the operators treat
alike. They are found by splitting the sample where what the operators do, weighted by what they
cost, differs most, until there are as many parts as training tuples are wanted.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.3.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import IntArray
from eddyline.mesh.cut import Cut, best_cut, variance_impurity
from eddyline.mesh.training import TrainingSet

#: Rows that a training tuple stands for, at least.
TUPLE_ROWS_MIN = 4


@dataclass(frozen=True)
class Condensed:
    """A condensed sample.

    Parameters
    ----------
    tuples
        The training tuples, each as the sampled rows it stands for, as many as its weight.
    attributes
        Names of the attributes that tell them apart.
    """

    tuples: list[IntArray]
    attributes: list[str]


def condense(training: TrainingSet, tuples_max: int, beyond_chance: bool = True) -> Condensed:
    """Return the training tuples, and the attributes that tell them apart.

    Parameters
    ----------
    training
        The sampled rows.
    tuples_max
        Largest number of training tuples.
    beyond_chance
        Split only where the rows differ by more than chance. If False, split until there are
        `tuples_max` training tuples.

    Examples
    --------
    >>> import pyarrow as pa
    >>> values = pa.array(["a", "b"] * 20)
    >>> drops = np.array([[True, False], [False, True]] * 20)
    >>> training = TrainingSet({"kind": values}, drops, [1.0, 1.0])
    >>> condensed = condense(training, tuples_max=8)
    >>> [len(rows) for rows in condensed.tuples], condensed.attributes
    ([20, 20], ['kind'])

    """
    targets = training.drops * training.cost_us
    number = itertools.count()
    done: list[IntArray] = []
    used: dict[str, None] = {}
    queue: list[tuple[float, int, IntArray, Cut]] = []

    def offer(rows: IntArray) -> None:
        chance_unit = float(targets[rows].var(axis=0).sum()) if beyond_chance else 0.0
        cut = best_cut(
            training.attributes, rows, targets, variance_impurity, TUPLE_ROWS_MIN, chance_unit
        )
        if cut is None:
            done.append(rows)
        else:
            heapq.heappush(queue, (-cut.gain, next(number), rows, cut))

    if training.rows:
        offer(np.arange(training.rows))
    while queue and len(done) + len(queue) < tuples_max:
        _, _, rows, cut = heapq.heappop(queue)
        used[cut.split.attribute] = None
        left = cut.goes_left(rows)
        offer(rows[left])
        offer(rows[~left])
    parts = done + [rows for _, _, rows, _ in queue]
    return Condensed(sorted(parts, key=lambda rows: int(rows[0])), list(used))
