"""Notes: how what a worker has seen travels back to the driver together with the rows.

The router's verdict is one nullable binary column. NULL drops the row, an empty value keeps it, and
now and then the first row of a batch carries a note as well: a flag (is the row kept?) and JSON.
An `observe` behind the router collects the notes, so there is no second pass over the data, and
rows that are dropped never leave the Arrow plane's output as anything but a NULL.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.arrays import BoolArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT, _DROPPED = b"\x01", b"\x00"


def encode(verdict: BoolArray, note: dict[str, Any] | None) -> pa.Array:
    """Return the verdict column of a batch, with a note on its first row if there is one.

    Examples
    --------
    >>> encode(np.array([False, True]), None).to_pylist()
    [None, b'']
    >>> encode(np.array([False, True]), {"rows": 2}).to_pylist()
    [b'\\x00{"rows":2}', b'']

    """
    rows = len(verdict)
    if note is None or rows == 0:
        offsets, payload = _zeros(rows + 1), pa.py_buffer(b"")
    else:
        text = (_KEPT if verdict[0] else _DROPPED) + json.dumps(
            note, separators=(",", ":")
        ).encode()
        ends = np.full(rows + 1, len(text), dtype=np.int32)
        ends[0] = 0
        offsets, payload = pa.py_buffer(ends), pa.py_buffer(text)
        verdict = verdict.copy()
        verdict[0] = True
    present = pa.py_buffer(np.packbits(verdict, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), rows, [present, offsets, payload])


@functools.lru_cache(maxsize=8)
def _zeros(count: int) -> pa.Buffer:
    """Return the offsets of values that are all empty: the same for most batches."""
    return pa.py_buffer(bytes(4 * count))


def judged(df: DataFrame, verdict: str) -> DataFrame:
    """Leave only rows that are kept or carry a note; the verdict column then holds the notes.

    Whoever collects the notes reads the bare column: for the rows without one that is much cheaper
    than any expression, because Spark does not compile what it observes.
    """
    present = df.filter(f"{verdict} IS NOT NULL")
    return present.withColumn(verdict, F.expr(f"nullif({verdict}, X'')"))


def kept(df: DataFrame, verdict: str) -> DataFrame:
    """Leave only the rows that are kept, without their notes."""
    is_kept = f"{verdict} IS NULL OR substring({verdict}, 1, 1) = X'{_KEPT.hex()}'"
    return df.filter(is_kept).drop(verdict)


def decode(collected: Iterable[Any]) -> list[dict[str, Any]]:
    """Read the notes that `observe` has collected, in whichever form they arrive.

    In batch they are bytes; in the progress of a stream they are base64 text.

    Examples
    --------
    >>> decode([b'\\x01{"rows":2}', "AXsicm93cyI6Mn0="])
    [{'rows': 2}, {'rows': 2}]

    """
    notes = []
    for item in collected:
        raw = base64.b64decode(item) if isinstance(item, str) else bytes(item)
        notes.append(json.loads(raw[1:]))
    return notes
