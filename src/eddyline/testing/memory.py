"""How much memory the arrays of an object take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def array_bytes(thing: object, _visited: set[int] | None = None) -> int:
    """Return the bytes of all NumPy arrays, and of all texts, that an object reaches.

    Examples
    --------
    >>> array_bytes({"a": [np.zeros(10), np.zeros(5)]})
    120

    """
    visited = set() if _visited is None else _visited
    if id(thing) in visited:
        return 0
    visited.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, bytes):
        return len(thing)
    parts: Iterable[object]
    if isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, list | tuple | set):
        parts = thing
    else:
        parts = vars(thing).values() if hasattr(thing, "__dict__") else ()
    return sum(array_bytes(part, visited) for part in parts)
