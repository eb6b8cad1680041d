"""A batch of rows as Arrow columns, converted to Python objects only where needed.

A column that several Python predicates read is converted to Python objects once; a predicate that
runs after others converts only the rows that are still alive.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.arrays import Rows
from eddyline.operators.shared_value import SharedValue, SharedValues


class ColumnReader:
    """How a column is named, and how it becomes Python objects or a pandas Series.

    Subclass it where a column needs more than Arrow's own conversion.
    """

    #: Whether a predicate could change the objects; then each predicate gets its own.
    mutable = False

    def __init__(self, name: str) -> None:
        self.name = name

    def to_objects(self, array: pa.Array) -> list[Any]:
        """Return the values as Python objects."""
        values: list[Any] = array.to_pylist()
        return values

    def to_pandas(self, array: pa.Array) -> Any:
        """Return the values as a pandas Series."""
        return array.to_pandas()


class Batch:
    """Some rows, by column.

    Parameters
    ----------
    columns
        Arrow arrays of one length.
    readers
        One for each column.
    rows
        Number of rows; needed where there are no columns.
    shared
        Values that predicates share; their positions count from -1 downwards.

    Examples
    --------
    >>> batch = Batch([pa.array([10, None, 30])], [ColumnReader("a")])
    >>> batch.objects(0, None)
    [10, None, 30]
    >>> batch.objects(0, np.array([2]))
    [30]

    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        readers: Sequence[ColumnReader],
        rows: int | None = None,
        shared: Sequence[SharedValue] = (),
    ) -> None:
        self.columns = columns
        self.readers = readers
        self.rows = len(columns[0]) if rows is None else rows
        self.shared = shared
        self._shared_values: dict[int, SharedValues] = {}
        self._converted: dict[int, _Converted] = {}
        #: Time spent on making Python objects. All predicates that read a column share them, so
        #: the time must not count as the cost of the predicate that happened to be first.
        self.converting_us = 0.0

    def arrow(self, column: int, rows: Rows | None) -> pa.Array:
        """Return the column's values in the given rows as an Arrow array."""
        array = self.columns[column]
        if rows is not None:
            array = array.take(pa.array(rows))
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def pandas(self, column: int, rows: Rows | None) -> Any:
        """Return the column's values in the given rows as a pandas Series or DataFrame."""
        return self.readers[column].to_pandas(self.arrow(column, rows))

    def objects(self, column: int, rows: Rows | None) -> list[Any]:
        """Return the column's values in the given rows as Python objects.

        Those of a shared value may be a `FailedValue`; `has_failed_values` tells.
        """
        if column < 0:
            return self._shared(column).of_rows(rows, self._arguments)
        converted = self._converted.get(column)
        if converted is not None:
            found = converted.find(rows)
            if found is not None:
                return found
        began = time.perf_counter()
        values = self.readers[column].to_objects(self.arrow(column, rows))
        self.converting_us += (time.perf_counter() - began) * 1e6
        if converted is None and not self.readers[column].mutable:
            self._converted[column] = _Converted(values, rows)
        return values

    def has_failed_values(self, columns: Sequence[int]) -> bool:
        """Whether computing one of these raised, where they are shared values."""
        return any(column < 0 and self._shared(column).has_failed for column in columns)

    def _shared(self, column: int) -> SharedValues:
        values = self._shared_values.get(column)
        if values is None:
            values = SharedValues(self.shared[-1 - column], self.rows)
            self._shared_values[column] = values
        return values

    def _arguments(self, columns: Sequence[int], rows: Rows) -> list[list[Any]]:
        return [self.objects(column, rows) for column in columns]

    def describe_row(self, row: int, columns: Sequence[int]) -> dict[str, str]:
        """Return a row's values by column for an error message, each cut to a readable length.

        A shared value is described by the columns that it is computed from.
        """
        described: dict[str, str] = {}
        for column in columns:
            if column < 0:
                described |= self.describe_row(row, self.shared[-1 - column].columns)
                continue
            value = self.columns[column].slice(row, 1)
            try:
                text = repr(self.readers[column].to_objects(value)[0]).replace("\n", "\\n")
            except Exception:  # such as a date far in the future
                text = f"(a {value.type} that Python cannot hold)"
            short = text if len(text) <= 200 else f"{text[:200]}... ({len(text):,} characters)"
            described[self.readers[column].name] = short
        return described


class _Converted:
    """Python objects of a column, for all rows of the batch or for some of them."""

    def __init__(self, values: list[Any], rows: Rows | None) -> None:
        self._values = values
        self._rows = rows
        self._indexable: NDArray[np.object_] | None = None

    def find(self, rows: Rows | None) -> list[Any] | None:
        """Return the objects of the given rows if all of them are here."""
        if rows is None:
            return self._values if self._rows is None else None
        positions = rows
        if self._rows is not None:
            if len(rows) == 0 or len(self._rows) == 0:
                return [] if len(rows) == 0 else None
            positions = np.searchsorted(self._rows, rows)
            positions = np.minimum(positions, len(self._rows) - 1)
            if not np.array_equal(self._rows[positions], rows):
                return None
        if self._indexable is None:
            self._indexable = np.fromiter(self._values, dtype=object, count=len(self._values))
        found: list[Any] = self._indexable[positions].tolist()
        return found
