"""The side channel: how what a worker has seen travels back to the driver together with the rows.

A worker attaches a note, as JSON bytes, to one of the rows it returns. `observe` collects the notes
in the driver's process on the way, so there is no second pass over the data and nothing that grows
with it. In a column of notes all other rows are NULL, which `collect_list` ignores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Name of the observed metric that holds the notes.
METRIC = "notes"


def pack(note: dict[str, Any]) -> bytes:
    """Return a note, already as plain values, as bytes for a binary column."""
    return json.dumps(note, separators=(",", ":")).encode()


def unpack(collected: Iterable[Any] | None, skip: int = 0) -> list[dict[str, Any]]:
    """Read the notes that `observe` has collected, in whichever form they arrive.

    In batch they are bytes; in the progress of a stream they are base64 text.

    Parameters
    ----------
    collected
        The value of the metric.
    skip
        Number of bytes before the JSON of each note.

    Examples
    --------
    >>> unpack([b'{"rows":2}', "eyJyb3dzIjoyfQ=="])
    [{'rows': 2}, {'rows': 2}]

    """
    notes = []
    for item in collected or ():
        raw = base64.b64decode(item) if isinstance(item, str) else bytes(item)
        notes.append(json.loads(raw[skip:]))
    return notes


def collected(column: str) -> Column:
    """Return the metric that collects a binary column of notes, for `DataFrame.observe`.

    Pass a bare column: Spark does not compile what it observes, so any expression over all rows
    would cost much more than this.
    """
    from pyspark.sql import functions as F

    return F.expr(f"collect_list({column}) AS {METRIC}")
