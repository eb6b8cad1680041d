"""Synthetic filters with the correlation model of the A-Greedy paper (its section 9.2).

The filters are divided into groups. Filters of different groups are independent; two filters of
one group give the same answer on 80 % of the rows. A filter's answers are drawn beforehand, and
evaluating it costs some random probes of a table with 10,000 entries, as in the paper.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, Rows
from eddyline.operators import Batch, ColumnReader, Operator, Outcome

INDEX_ENTRIES = 10_000
SAME_ANSWER = 0.8


def draw_answers(
    rng: np.random.Generator,
    rows: int,
    selectivities: Sequence[float],
    correlation: int,
    same_answer: float = SAME_ANSWER,
) -> BoolArray:
    """Return one answer (True passes) for each row and filter.

    Parameters
    ----------
    rng
        Source of randomness.
    rows
        Number of rows.
    selectivities
        Share of rows that each filter passes, unconditionally.
    correlation
        Number of filters in a group (the paper's capital gamma): 1 for independent filters.
    same_answer
        Share of rows on which two filters of a group with equal selectivity agree.

    Examples
    --------
    >>> answers = draw_answers(np.random.default_rng(0), 20_000, [0.5] * 4, correlation=2)
    >>> [round(float((answers[:, 0] == answers[:, other]).mean()), 2) for other in (1, 2)]
    [0.8, 0.5]

    """
    answers = np.empty((rows, len(selectivities)), dtype=bool)
    for begin in range(0, len(selectivities), correlation):
        shared = rng.random(rows)
        for filter_ in range(begin, min(begin + correlation, len(selectivities))):
            selectivity = selectivities[filter_]
            by_chance = selectivity**2 + (1 - selectivity) ** 2
            copied = max(0.0, (same_answer - by_chance) / (1 - by_chance)) ** 0.5
            follows = rng.random(rows) < copied
            answers[:, filter_] = np.where(follows, shared, rng.random(rows)) < selectivity
    return answers


class SyntheticFilter(Operator):
    """A filter whose answers are a column of the batch, and whose cost can be set.

    Parameters
    ----------
    name
        Name of the filter.
    column
        Index of the column that holds its answers.
    probes
        Random probes of a table for each row. With 0 the filter does no work, for experiments
        that only count evaluations.

    Examples
    --------
    >>> answers = np.array([[True], [False], [True]])
    >>> filters, readers = make_filters(probes=[3])
    >>> filters[0].evaluate(Batch(to_columns(answers), readers), rows=None).passed.tolist()
    [True, False, True]

    """

    def __init__(self, name: str, column: int, probes: int = 0) -> None:
        super().__init__(name, (column,))
        self._probes = probes
        self._table = probed_table()

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Do the probes of these rows and return their answers."""
        if self._probes:
            # Row by row: the cost is proportional to the rows, with no share for the call.
            table = self._table
            for row in range(batch.rows) if rows is None else rows.tolist():
                entry = row % INDEX_ENTRIES
                for _ in range(self._probes):
                    entry = table[entry]
        answers = batch.columns[self.columns[0]].to_numpy()
        return Outcome((answers if rows is None else answers[rows]).view(bool))


@functools.cache
def probed_table() -> list[int]:
    """Return the table that all filters probe: one table, equally warm for all of them."""
    table: list[int] = np.random.default_rng(7).permutation(INDEX_ENTRIES).tolist()
    return table


def to_columns(answers: BoolArray) -> list[pa.Array]:
    """Return the answers as Arrow columns of a batch; bytes, as these are read without a copy."""
    return [pa.array(np.ascontiguousarray(column).view(np.int8)) for column in answers.T]


def make_filters(probes: Sequence[int]) -> tuple[list[Operator], list[ColumnReader]]:
    """Return filters with the given costs, and the readers of their columns."""
    filters: list[Operator] = [
        SyntheticFilter(f"F{i}", i, probes_each) for i, probes_each in enumerate(probes)
    ]
    return filters, [ColumnReader(f"answer_{i}") for i in range(len(probes))]
