"""Rows by the partitions of their attributes, and the route of each combination that occurs."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import FloatArray, IntArray, Rows
from eddyline.attributes.layout import Layout
from eddyline.attributes.partition import AttributePartition
from eddyline.attributes.screening import screen_attribute, screen_type
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions, routes_by_rank
from eddyline.operators import Batch

RUSTER_ROWS_MIN = 64
SELECTIVITY_GRID = 0.05
TABLE_KEYS_MAX = 1 << 14
LOOK_ROWS_MAX = 32_768  # between two judgements of the attributes
LOOK_SAMPLE_ROWS = 512  # of a chunk, for a judgement
PARTITION_US = 0.05  # typical cost of finding the partition of a row
TIMED_ROWS_MIN = 256  # of a call, for its time to say what a row takes
TIMED_CALLS = 9


class PartitionedAttributes:
    """The attributes of a batch: where they are, which can help, and how rows are partitioned.

    What suits an attribute is judged again and again: after 64 rows, 128, 256 and so on, and then
    every 32,768 rows.

    Parameters
    ----------
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    options
        Parameters of Content-Learns: how domains are partitioned.

    """

    def __init__(self, attributes: Mapping[str, int], options: ContentOptions) -> None:
        self.names = list(attributes)
        self._columns = list(attributes.values())
        self._partitions = [
            AttributePartition(options.partitions, options.values_max, options.cut_by)
            for _ in attributes
        ]
        self._rows = 0
        self._rows_at_next_look = 0
        # What a row took in the last calls with many rows, by attribute.
        self._row_us: list[deque[float]] = [deque(maxlen=TIMED_CALLS) for _ in attributes]

    def name(self, attribute: int) -> str | None:
        """Return the name of an attribute; None for `NO_ATTRIBUTE`."""
        return None if attribute == NO_ATTRIBUTE else self.names[attribute]

    def is_look_due(self, rows: int) -> bool:
        """Whether the attributes should be judged again, now that so many rows have come."""
        due = self._rows >= self._rows_at_next_look and rows > 0
        self._rows += rows
        if due:
            step = min(max(self._rows, 64), LOOK_ROWS_MAX)
            self._rows_at_next_look = self._rows + step
        return due

    def look(self, batch: Batch, rows: Rows) -> tuple[dict[int, str], dict[int, IntArray]]:
        """Judge the attributes by a sample of the newest rows.

        Returns the attributes that cannot classify rows with the reasons, and, for attributes that
        are partitioned anew, the old partition of each new one.
        """
        step = -(-len(rows) // LOOK_SAMPLE_ROWS)
        picked = rows[::step]
        useless, moved = {}, {}
        for attribute, column in enumerate(self._columns):
            values = batch.arrow(column, picked)
            partition = self._partitions[attribute]
            why = screen_type(values.type)
            if why is None:
                old = partition.look(values)
                assert partition.sample is not None
                if old is not None and partition.layout is not None:
                    moved[attribute] = partition.layout.moved_from(old)
                why = screen_attribute(partition.sample)
            if why is not None:
                useless[attribute] = why
        return useless, moved

    def partition(self, batch: Batch, rows: Rows | None, attributes: Sequence[int]) -> IntArray:
        """Return the partition of each row, for the given attributes; 0 for all others."""
        count = batch.rows if rows is None else len(rows)
        partitions = np.zeros((len(self._columns), count), dtype=np.int64)
        for attribute in attributes:
            began = time.perf_counter()
            values = batch.arrow(self._columns[attribute], rows)
            partitions[attribute] = self._partitions[attribute].assign(values)
            if count >= TIMED_ROWS_MIN:
                self._row_us[attribute].append((time.perf_counter() - began) * 1e6 / count)
        return partitions

    def cost_us(self, attribute: int, measured: bool) -> float:
        """Return what it costs to find the partition of a row.

        Parameters
        ----------
        attribute
            Its number.
        measured
            Whether to return what it took lately rather than a typical cost.
        """
        if not measured or not self._row_us[attribute]:
            return PARTITION_US
        return statistics.median(self._row_us[attribute])

    def layout(self, attribute: int) -> Layout | None:
        """Return how the domain of an attribute is partitioned; None if that is not known yet."""
        return self._partitions[attribute].layout

    def restore(self, attribute: int, layout: Layout) -> bool:
        """Partition an attribute as another worker did; return False if sizes differ."""
        partition = self._partitions[attribute]
        if layout.size != partition.size:
            return False
        partition.restore(layout)
        return True


def group_by_route(
    content: ContentLearns,
    classifier: IntArray,
    partitions: IntArray,
    cost_us: FloatArray,
    default: tuple[int, ...],
) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return routes with the positions of the rows that take them.

    Parameters
    ----------
    content
        The selectivities by operator and partition.
    classifier
        The classifier attribute of each operator.
    partitions
        By attribute and row; only attributes in use are read.
    cost_us
        Cost of each operator.
    default
        The route of rows whose own route would have too few rows.

    """
    rows, in_use = partitions.shape[1], sorted(set(classifier.tolist()) - {NO_ATTRIBUTE})
    if not in_use:
        return [(default, np.arange(rows))]
    # One line for each combination of partitions that occurs, not for each row.
    size = content.detailed.shape[2]
    key, keys = partitions[in_use[0]], size
    for attribute in in_use[1:]:
        if keys > TABLE_KEYS_MAX:  # numbered again, so that keys stay small
            _, key = np.unique(key, return_inverse=True)
            keys = int(key.max()) + 1 if rows else 1
        key, keys = key * size + partitions[attribute], keys * size
    first, kind_of_row = _kinds(key, keys)
    expected = content.selectivities(partitions[:, first], classifier)
    numbers, routes = routes_by_rank(expected, cost_us, SELECTIVITY_GRID)
    route_of_row = numbers[kind_of_row]
    counts = np.bincount(route_of_row, minlength=len(routes))
    rows_min = min(RUSTER_ROWS_MIN, rows // 16)
    groups = [
        (routes[number], np.flatnonzero(route_of_row == number))
        for number in np.flatnonzero(counts >= max(rows_min, 1)).tolist()
    ]
    rest = np.flatnonzero(counts[route_of_row] < rows_min)
    if len(rest):
        groups.append((default, rest))
    return groups


def _kinds(key: IntArray, keys: int) -> tuple[IntArray, IntArray]:
    """Return the position of a row of each kind that occurs, and the kind of each row."""
    if keys > TABLE_KEYS_MAX:
        _, first, kind_of_row = np.unique(key, return_index=True, return_inverse=True)
        return first, kind_of_row
    some_row = np.full(keys, -1, dtype=np.int64)
    some_row[key] = np.arange(len(key))
    present = np.flatnonzero(some_row >= 0)
    kind_of_key = np.zeros(keys, dtype=np.int64)
    kind_of_key[present] = np.arange(len(present))
    return some_row[present], kind_of_key[key]
