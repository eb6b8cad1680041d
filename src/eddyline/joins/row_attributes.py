"""Columns of new rows that may tell classes of rows apart: keys, and what is stored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.arrays import Rows
from eddyline.attributes.screening import screen_type
from eddyline.joins.keys import KeyColumn, key_column
from eddyline.joins.run import Run
from eddyline.operators import Batch, ColumnReader

ATTRIBUTES_MAX = 12

# An integer's code is the integer times an odd number, so the inverse of that brings it back.
_INVERSE = np.uint64(pow(int(key_column(pa.array([1])).codes[0]), -1, 1 << 64))


def attribute_names(run: Run) -> tuple[str, ...]:
    """Return the names of the columns that may classify rows like these, keys first.

    Examples
    --------
    >>> rows = pa.record_batch({"price": [1.5], "tags": [["a"]]})
    >>> run = Run([key_column(pa.array([7]))], np.zeros(1, dtype=np.int64), {}, rows)
    >>> attribute_names(run)
    ('key 0', 'price')

    """
    keys = [f"key {number}" for number in range(len(run.keys))]
    stored = [field.name for field in run.payload.schema if screen_type(field.type) is None]
    return tuple([*keys, *stored][:ATTRIBUTES_MAX])


class RowAttributes(Batch):
    """The columns that may classify the rows of a run; made for the rows that are asked for.

    Examples
    --------
    >>> rows = pa.record_batch({"price": [1.5, 2.5]})
    >>> run = Run([key_column(pa.array([7, -8]))], np.zeros(2, dtype=np.int64), {}, rows)
    >>> attributes = RowAttributes(run)
    >>> attributes.arrow(0, np.array([1])).to_pylist(), attributes.arrow(1, None).to_pylist()
    ([-8], [1.5, 2.5])

    """

    def __init__(self, run: Run) -> None:
        names = attribute_names(run)
        self._keys = run.keys[: len(names)]
        stored = [run.payload[name] for name in names[len(self._keys) :]]
        super().__init__(stored, [ColumnReader(name) for name in names], len(run))

    def arrow(self, column: int, rows: Rows | None) -> pa.Array:
        """Return the values of a column in the given rows."""
        if column >= len(self._keys):
            return super().arrow(column - len(self._keys), rows)
        key = self._keys[column]
        return _key_values(key if rows is None else key.take(rows))


def _key_values(key: KeyColumn) -> pa.Array:
    """Return a key as values that ranges can be made of.

    The codes of integers, dates and times become what they were. Those of floating-point numbers
    become their bits, which have the order of the numbers where these are positive.
    """
    if key.values is not None:
        return key.values
    numbers = (key.codes * _INVERSE).view(np.int64)
    return pa.array(numbers, mask=None if key.is_valid is None else ~key.is_valid)
