"""Results of joins on their way to whoever stores them: positions in blocks of rows.

A row is in many results. A block holds the rows that results of a slice are made of, so that their
columns are gathered from the SteM once, and results are positions in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, BoolArray, IntArray
from eddyline.joins.plan import Role
from eddyline.joins.stem import SteM

FEW_WORDS = 8  # up to so many, whole columns of words are combined faster than rows


@dataclass
class RowBlock:
    """Rows of one SteM.

    Parameters
    ----------
    stem
        The SteM.
    ids
        Ids of the rows there.

    """

    stem: SteM
    ids: IntArray
    _struct: pa.StructArray | None = field(default=None, repr=False)

    def payload(self, schema: pa.Schema) -> pa.StructArray:
        """Return stored columns of the rows; always asked for with the same schema."""
        if self._struct is None:
            columns = self.stem.payload(self.ids, schema)
            self._struct = pa.StructArray.from_arrays(columns, fields=list(schema))
        return self._struct


@dataclass(frozen=True)
class Combinations:
    """Results of some queries over the same roles.

    Parameters
    ----------
    blocks, positions
        For each role, the rows it may have, and which of them it has in each result.
    newest_us
        Event time of the youngest row of each result.
    interested
        Bitmap of the queries that each is a result of; none is empty. A single one if all are
        results of the same queries.

    """

    blocks: Mapping[Role, RowBlock]
    positions: Mapping[Role, IntArray]
    newest_us: IntArray
    interested: Bitmaps

    def __len__(self) -> int:
        return len(self.newest_us)

    def bitmaps(self) -> Bitmaps:
        """Return a bitmap for each result."""
        return np.broadcast_to(self.interested, (len(self), self.interested.shape[1]))

    def payload(self, role: Role, schema: pa.Schema) -> pa.StructArray:
        """Return stored columns of the rows of a role."""
        return self.blocks[role].payload(schema).take(pa.array(self.positions[role]))


def any_bit(bitmaps: Bitmaps) -> BoolArray:
    """Return for each row whether a bit is set.

    Examples
    --------
    >>> any_bit(np.array([[0, 0], [0, 4]], dtype=np.uint64))
    array([False,  True])

    """
    words = bitmaps.shape[1]
    if words > FEW_WORDS:
        return np.asarray(bitmaps.any(axis=1))
    union = bitmaps[:, 0]
    for word in range(1, words):
        union = union | bitmaps[:, word]
    is_set: BoolArray = union != 0
    return is_set


def shared_bitmap(bitmaps: Bitmaps) -> Bitmaps:
    """Return the bitmap that all rows have, as the only one; the bitmaps if they differ.

    Examples
    --------
    >>> shared_bitmap(np.array([[5], [5]], dtype=np.uint64)).tolist()
    [[5]]

    """
    if len(bitmaps) > 1 and (bitmaps[1:] == bitmaps[0]).all():
        return bitmaps[:1]
    return bitmaps


def take_bitmaps(bitmaps: Bitmaps, rows: IntArray) -> Bitmaps:
    """Return the bitmaps of some rows; a single one is that of all rows."""
    return bitmaps if len(bitmaps) == 1 else bitmaps[rows]
