"""Lookup: a semi- or anti-join with a table small enough to be held by every worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray, Rows
from eddyline.operators.batch import Batch
from eddyline.operators.operator import Operator, Outcome

_NAN = object()  # NaN equals NaN in a join, but not in a Python set


class LookupTable:
    """The distinct keys of a table, as a set.

    Keys with a NULL in them are left out: in SQL they equal nothing, not even each other.

    Examples
    --------
    >>> table = LookupTable([pa.array(["a", None, "b"])])
    >>> len(table)
    2
    >>> table.contains([pa.array(["b", "c", None])])
    array([ True, False, False])

    """

    def __init__(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        self._types = [key.type for key in keys]
        columns = [_hashable(key) for key in keys]
        if len(columns) == 1:
            self._keys = frozenset(columns[0]) - {None}
        else:
            self._keys = frozenset(key for key in zip(*columns, strict=True) if None not in key)

    def __len__(self) -> int:
        return len(self._keys)

    def contains(self, keys: list[pa.Array]) -> BoolArray:
        """Return for each row whether its key is in the table."""
        present = self._keys
        keys = [_as_type(key, own) for key, own in zip(keys, self._types, strict=True)]
        if len(keys) == 1:
            # Each distinct value is looked up once, however often it stands in the batch.
            encoded = keys[0].dictionary_encode()
            values = _hashable(encoded.dictionary)
            found = np.fromiter((v in present for v in values), dtype=bool, count=len(values))
            found = np.append(found, False)  # NULL keys, at index -1
            answers: BoolArray = found[pc.fill_null(encoded.indices, -1).to_numpy()]
            return answers
        rows = zip(*[_hashable(key) for key in keys], strict=True)
        return np.fromiter((row in present for row in rows), dtype=bool, count=len(keys[0]))


class Lookup(Operator):
    """Keeps rows whose key is in the table, or with `anti` those whose key is not.

    As in a left semi join and a left anti join: a row with a NULL in its key has no match, so
    the semi-join drops it and the anti-join keeps it.

    Examples
    --------
    >>> from eddyline.operators import ColumnReader
    >>> batch = Batch([pa.array(["a", "z", None])], [ColumnReader("domain")])
    >>> blocked = LookupTable([pa.array(["a", "b"])])
    >>> Lookup("blocked", (0,), blocked, anti=True).evaluate(batch, None).passed
    array([False,  True,  True])

    """

    def __init__(
        self, name: str, columns: tuple[int, ...], table: LookupTable, anti: bool = False
    ) -> None:
        super().__init__(name, columns)
        self._table = table
        self._anti = anti

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Look up the keys of all rows asked about."""
        found = self._table.contains([batch.arrow(column, rows) for column in self.columns])
        return Outcome(~found if self._anti else found)


def _as_type(keys: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the keys as one plain array of the table's type."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    return keys if keys.type == wanted else keys.cast(wanted)


def _hashable(keys: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values that are equal, as Python objects, exactly when they are equal in SQL."""
    if pa.types.is_temporal(keys.type):
        keys = keys.cast(pa.int32() if keys.type.bit_width == 32 else pa.int64())
    if pa.types.is_floating(keys.type):
        return [_NAN if value != value else value for value in keys.to_pylist()]  # noqa: PLR0124
    values: list[Any] = keys.to_pylist()
    return values
