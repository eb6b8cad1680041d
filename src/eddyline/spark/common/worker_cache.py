"""What a worker process keeps from task to task: a bounded cache, never the truth.

Spark reuses its Python workers, but a partition may move to another process at any time and idle
ones die. Whatever is kept here can be built again from the plan.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class WorkerCache(Generic[Key, Value]):
    """The values used last, by key; the one used longest ago is dropped first.

    Parameters
    ----------
    entries_max
        Number of values to keep.

    Examples
    --------
    >>> cache: WorkerCache[str, int] = WorkerCache(entries_max=2)
    >>> for number, key in enumerate("abc"):
    ...     cache.put(key, number)
    >>> cache.get("a"), cache.get("c"), list(cache)
    (None, 2, [('b', 1), ('c', 2)])

    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return a value and count it as used; None if it is not here."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keep a value; the one used longest ago makes room."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def drop(self, key: Key) -> None:
        """Forget a value."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        """Yield keys and values, the one used longest ago first."""
        return iter(list(self._entries.items()))
