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
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.operators.operator import BoolArray

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


def carries_or_keeps(verdict: str) -> str:
    """Return the condition, as SQL, for rows that are kept or carry a note."""
    return f"{verdict} IS NOT NULL"


def only_notes(verdict: str) -> str:
    """Return the notes, as SQL; NULL for rows that carry none."""
    return f"CASE WHEN octet_length({verdict}) > 0 THEN {verdict} END"


def keeps(verdict: str) -> str:
    """Return the condition, as SQL, for rows that are kept."""
    return f"octet_length({verdict}) = 0 OR substring({verdict}, 1, 1) = X'{_KEPT.hex()}'"


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
