"""The verdict column: which rows a router keeps, with a note to the driver on some of them.

The router's verdict is one nullable binary column. NULL drops the row, an empty value keeps it, and
now and then the first row of a batch carries a note as well: a flag (is the row kept?) and JSON.
Dropped rows leave the Arrow plane as nothing but a NULL (docs/decisions/0001).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.arrays import BoolArray
from eddyline.spark.common.side_channel import pack, unpack
from eddyline.spark.where.note import WorkerNote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT, _DROPPED = b"\x01", b"\x00"


def encode(verdict: BoolArray, note: WorkerNote | None) -> pa.Array:
    """Return the verdict column of a batch, with a note on its first row if there is one.

    Examples
    --------
    >>> encode(np.array([False, True]), None).to_pylist()
    [None, b'']
    >>> from eddyline.fabric import Totals
    >>> note = WorkerNote("worker 1", Totals(predicates=2))
    >>> noted, other = encode(np.array([False, True]), note).to_pylist()
    >>> noted[:11], other
    (b'\\x00{"version"', b'')

    """
    rows = len(verdict)
    if note is None or rows == 0:
        offsets, payload = _empty_offsets(rows + 1), pa.py_buffer(b"")
    else:
        text = (_KEPT if verdict[0] else _DROPPED) + pack(note.to_dict())
        ends = np.full(rows + 1, len(text), dtype=np.int32)
        ends[0] = 0
        offsets, payload = pa.py_buffer(ends), pa.py_buffer(text)
        verdict = verdict.copy()
        verdict[0] = True
    present = pa.py_buffer(np.packbits(verdict, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), rows, [present, offsets, payload])


@functools.lru_cache(maxsize=8)
def _empty_offsets(count: int) -> pa.Buffer:
    """Return the offsets of values that are all empty: the same for most batches."""
    return pa.py_buffer(bytes(4 * count))


def keep_judged(df: DataFrame, verdict: str) -> DataFrame:
    """Keep the rows that are kept or carry a note; the verdict column then holds the notes."""
    present = df.filter(f"{verdict} IS NOT NULL")
    return present.withColumn(verdict, F.expr(f"nullif({verdict}, X'')"))


def drop_notes(df: DataFrame, verdict: str) -> DataFrame:
    """Keep the rows that are kept, without their notes."""
    is_kept = f"{verdict} IS NULL OR substring({verdict}, 1, 1) = X'{_KEPT.hex()}'"
    return df.filter(is_kept).drop(verdict)


def decode_notes(collected: Iterable[Any] | None) -> list[WorkerNote]:
    """Read the notes of verdict columns that `observe` has collected.

    Examples
    --------
    >>> from eddyline.fabric import Totals
    >>> column = encode(np.array([False, True]), WorkerNote("worker 1", Totals(predicates=2)))
    >>> [note.worker for note in decode_notes(column.to_pylist()[:1])]
    ['worker 1']

    """
    return [WorkerNote.from_dict(plain) for plain in unpack(collected, skip=len(_KEPT))]
