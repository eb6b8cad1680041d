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
            partitions[attribute] = self.partition_by(attribute, batch, rows)
        return partitions

    def partition_by(self, attribute: int, batch: Batch, rows: Rows | None) -> IntArray:
        """Return the partition of each row by one attribute."""
        began = time.perf_counter()
        partitions = self._partitions[attribute].assign(batch.arrow(self._columns[attribute], rows))
        if len(partitions) >= TIMED_ROWS_MIN:
            self._row_us[attribute].append((time.perf_counter() - began) * 1e6 / len(partitions))
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


class BatchPartitions:
    """The partitions of a batch's rows by attribute, found when they are first asked for.

    Parameters
    ----------
    attributes
        The attributes, and how their domains are partitioned.
    batch
        The batch.
    rows
        The rows that matter; all others get partition 0.

    """

    def __init__(self, attributes: PartitionedAttributes, batch: Batch, rows: Rows) -> None:
        self._attributes = attributes
        self._batch = batch
        self._rows = rows
        self._found: dict[int, IntArray] = {}

    def by(self, attribute: int) -> IntArray:
        """Return the partition of each row of the batch by an attribute."""
        found = self._found.get(attribute)
        if found is None:
            if len(self._rows) == self._batch.rows:
                found = self._attributes.partition_by(attribute, self._batch, None)
            else:
                found = np.zeros(self._batch.rows, dtype=np.int64)
                own = self._attributes.partition_by(attribute, self._batch, self._rows)
                found[self._rows] = own
            self._found[attribute] = found
        return found


def group_by_route(
    content: ContentLearns,
    classifier: IntArray,
    partitions: Mapping[int, IntArray],
    rows: Rows,
    cost_us: FloatArray,
    default: tuple[int, ...],
) -> list[tuple[tuple[int, ...], Rows]]:
    """Return routes with the rows that take them.

    Parameters
    ----------
    content
        The selectivities by operator and partition.
    classifier
        The classifier attribute of each operator.
    partitions
        For each attribute in use the partition of each of the rows.
    rows
        The rows to group.
    cost_us
        Cost of each operator.
    default
        The route of rows whose own route would have too few rows.

    """
    in_use = sorted(set(classifier.tolist()) - {NO_ATTRIBUTE})
    if not in_use or not len(rows):
        return [(default, rows)]
    # One line for each combination of partitions that occurs, not for each row.
    first, kind_of_row = _kinds([partitions[attribute] for attribute in in_use])
    of_kinds = np.zeros((content.detailed.shape[1], len(first)), dtype=np.int64)
    for attribute in in_use:
        of_kinds[attribute] = partitions[attribute][first]
    expected = content.selectivities(of_kinds, classifier)
    numbers, routes = routes_by_rank(expected, cost_us, SELECTIVITY_GRID)
    if len(routes) == 1:
        return [(routes[0], rows)]
    route_of_row = numbers[kind_of_row]
    counts = np.bincount(route_of_row, minlength=len(routes))
    rows_min = min(RUSTER_ROWS_MIN, len(rows) // 16)
    groups = [
        (routes[number], rows[route_of_row == number])
        for number in np.flatnonzero(counts >= max(rows_min, 1)).tolist()
    ]
    if counts.min() < rows_min:
        groups.append((default, rows[counts[route_of_row] < rows_min]))
    return groups


def _kinds(partitions: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the position of a row of each combination that occurs, and the kind of each row."""
    key, keys = partitions[0], int(partitions[0].max()) + 1
    for other in partitions[1:]:
        if keys > TABLE_KEYS_MAX:  # numbered again, so that keys stay small
            _, key = np.unique(key, return_inverse=True)
            keys = int(key.max()) + 1
        size = int(other.max()) + 1
        key, keys = key * size + other, keys * size
    if keys > TABLE_KEYS_MAX:
        _, first, kind_of_row = np.unique(key, return_index=True, return_inverse=True)
        return first, kind_of_row
    some_row = np.full(keys, -1, dtype=np.int64)
    some_row[key] = np.arange(len(key))
    present = np.flatnonzero(some_row >= 0)
    kind_of_key = np.zeros(keys, dtype=np.int64)
    kind_of_key[present] = np.arange(len(present))
    return some_row[present], kind_of_key[key]
