"""Join keys as 64-bit codes, so that an index need not know their types.

Types of at most 64 bits are their own code: equal codes are equal values. Other types are hashed
before they reach Python, and equal codes are then compared by value. NULL has no partner; NaN
equals NaN, and -0.0 equals 0.0, as in Spark's joins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray, Codes, IntArray

_MULTIPLIER = np.uint64(0x9E37_79B9_7F4A_7C15)  # odd, so that multiplying loses nothing


@dataclass(frozen=True)
class KeyColumn:
    """One join column of some rows.

    Parameters
    ----------
    codes
        A code for each row; equal values have equal codes.
    is_valid
        Which rows are not NULL; None if all are.
    values
        The values, if equal codes may stand for different ones.

    """

    codes: Codes
    is_valid: BoolArray | None = None
    values: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: IntArray) -> KeyColumn:
        """Return the column at some rows."""
        return KeyColumn(
            self.codes[rows],
            None if self.is_valid is None else self.is_valid[rows],
            None if self.values is None else self.values.take(pa.array(rows)),
        )

    def equals(self, other: KeyColumn) -> BoolArray:
        """Return whether both are the same value, row by row; NULL equals nothing.

        Examples
        --------
        >>> one = key_column(pa.array([1.0, None, float("nan")]))
        >>> one.equals(one).tolist()
        [True, False, True]

        """
        is_equal: BoolArray = self.codes == other.codes
        for side in (self, other):
            if side.is_valid is not None:
                is_equal = is_equal & side.is_valid
        if self.values is not None and other.values is not None and is_equal.any():
            rows = np.flatnonzero(is_equal)
            chosen = pa.array(rows)
            same = pc.equal(self.values.take(chosen), other.values.take(chosen))
            is_equal[rows] = same.to_numpy(zero_copy_only=False)
        return is_equal


def key_column(values: pa.Array, hashes: pa.Array | None = None) -> KeyColumn:
    """Return an Arrow array as a key column.

    Parameters
    ----------
    values
        The values, of the type in which they are compared.
    hashes
        A 64-bit hash of each value, for types that are not their own code.

    Examples
    --------
    >>> column = key_column(pa.array([3, None, 3]))
    >>> bool(column.codes[0] == column.codes[2]), column.is_valid.tolist()
    (True, [True, False, True])
    >>> key_column(pa.array(["a", "b"]), pa.array([5, 5])).values is None
    False

    """
    is_valid = None
    if values.null_count:
        is_valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    if hashes is not None:
        return KeyColumn(_to_codes(_filled(hashes)), is_valid, values)
    return KeyColumn(_to_codes(_filled(values)), is_valid)


def is_own_code(data_type: pa.DataType) -> bool:
    """Whether values of a type fit into 64 bits and need no hash."""
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_floating(data_type)
        or types.is_boolean(data_type)
        or types.is_date(data_type)
        or types.is_timestamp(data_type)
    )


def _filled(values: pa.Array) -> pa.Array:
    if not values.null_count:
        return values
    return pc.fill_null(values, pa.scalar(0, pa.int64()).cast(values.type))


def _to_codes(values: pa.Array) -> Codes:
    if pa.types.is_floating(values.type):
        floats = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan
        codes: Codes = floats.view(np.uint64) * _MULTIPLIER
        return codes
    if pa.types.is_boolean(values.type) or pa.types.is_date32(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int8())
    elif not pa.types.is_integer(values.type):
        values = values.cast(pa.int64())
    numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    multiplied: Codes = numbers.view(np.uint64) * _MULTIPLIER
    return multiplied


def concat_keys(columns: Sequence[KeyColumn]) -> KeyColumn:
    """Return the key columns of several sets of rows as one; rows without the key are NULL."""
    is_valid = None
    if any(column.is_valid is not None for column in columns):
        is_valid = np.concatenate(
            [
                np.ones(len(column), dtype=bool) if column.is_valid is None else column.is_valid
                for column in columns
            ]
        )
    values = None
    present = [column.values for column in columns if column.values is not None]
    if present:
        values = pa.concat_arrays(
            [pa.nulls(len(c), present[0].type) if c.values is None else c.values for c in columns]
        )
    return KeyColumn(np.concatenate([column.codes for column in columns]), is_valid, values)
