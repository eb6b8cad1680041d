"""Rows by the partitions of their attributes, and the route of each combination that occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import FloatArray, IntArray, Rows
from eddyline.attributes.partition import AttributePartition
from eddyline.attributes.screening import screen_attribute
from eddyline.content import NO_ATTRIBUTE, ContentLearns, routes_by_rank
from eddyline.operators import Batch

RUSTER_ROWS_MIN = 64
SELECTIVITY_GRID = 0.05
TABLE_KEYS_MAX = 1 << 14


class PartitionedAttributes:
    """The attributes of a batch: where they are, which can help, and how rows are partitioned.

    Parameters
    ----------
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    partitions
        Partitions of each attribute's domain.

    """

    def __init__(self, attributes: Mapping[str, int], partitions: int) -> None:
        self.names = list(attributes)
        self._columns = list(attributes.values())
        self._partitions = [AttributePartition(partitions) for _ in attributes]

    def name(self, attribute: int) -> str | None:
        """Return the name of an attribute; None for `NO_ATTRIBUTE`."""
        return None if attribute == NO_ATTRIBUTE else self.names[attribute]

    def screen(self, batch: Batch, rows: Rows) -> dict[int, str]:
        """Return the attributes that cannot classify rows, by these rows, and why."""
        reasons = {
            attribute: screen_attribute(batch.arrow(column, rows))
            for attribute, column in enumerate(self._columns)
        }
        return {attribute: why for attribute, why in reasons.items() if why is not None}

    def partition(self, batch: Batch, rows: Rows, attributes: Sequence[int]) -> IntArray:
        """Return the partition of each row, for the given attributes; 0 for all others."""
        partitions = np.zeros((len(self._columns), len(rows)), dtype=np.int64)
        for attribute in attributes:
            values = batch.arrow(self._columns[attribute], rows)
            partitions[attribute] = self._partitions[attribute].assign(values)
        return partitions


def group_by_route(
    content: ContentLearns, partitions: IntArray, cost_us: FloatArray, default: tuple[int, ...]
) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return routes with the positions of the rows that take them.

    Parameters
    ----------
    content
        The selectivities by operator and partition.
    partitions
        By attribute and row; only attributes in use are read.
    cost_us
        Cost of each operator.
    default
        The route of rows whose own route would have too few rows.

    """
    rows, in_use = partitions.shape[1], content.attributes_in_use()
    if not in_use:
        return [(default, np.arange(rows))]
    # One line for each combination of partitions that occurs, not for each row.
    size = content.options.partitions + 1
    key = np.zeros(rows, dtype=np.int64)
    for attribute in in_use:
        key = key * size + partitions[attribute]
    first, kind_of_row = _kinds(key, size ** len(in_use))
    expected = content.selectivities(partitions[:, first])
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
