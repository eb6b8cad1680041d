"""A mapping from numbers that were handed out one after another: eight bytes an entry.

A dict of numbers takes several times as much an entry, and its keys are objects. An engine
with a hundred thousand queries has several mappings by their numbers.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import Generic, TypeVar

Value = TypeVar("Value")
_CHUNK_BITS = 8
_CHUNK = 1 << _CHUNK_BITS
_MASK = _CHUNK - 1


class Numbered(MutableMapping[int, Value], Generic[Value]):
    """A mapping from whole numbers, most of which lie side by side.

    Iteration is in the order in which chunks of numbers came, and ascending within each.

    Parameters
    ----------
    items
        Pairs to begin with.

    Examples
    --------
    >>> names = Numbered([(7, "g"), (8, "h")])
    >>> names[9] = "i"
    >>> del names[7]
    >>> dict(names), 7 in names, len(names)
    ({8: 'h', 9: 'i'}, False, 2)

    """

    __slots__ = ("_chunks", "_count")

    def __init__(self, items: Iterable[tuple[int, Value]] = ()) -> None:
        self._chunks: dict[int, list[Value | None]] = {}
        self._count = 0
        for number, value in items:
            self[number] = value

    def __getitem__(self, number: int) -> Value:
        chunk = self._chunks.get(number >> _CHUNK_BITS)
        value = None if chunk is None else chunk[number & _MASK]
        if value is None:
            raise KeyError(number)
        return value

    def __setitem__(self, number: int, value: Value) -> None:
        chunk = self._chunks.get(number >> _CHUNK_BITS)
        if chunk is None:
            chunk = self._chunks[number >> _CHUNK_BITS] = [None] * _CHUNK
        self._count += chunk[number & _MASK] is None
        chunk[number & _MASK] = value

    def __delitem__(self, number: int) -> None:
        self[number]  # raises if there is none
        chunk = self._chunks[number >> _CHUNK_BITS]
        chunk[number & _MASK] = None
        self._count -= 1
        if all(value is None for value in chunk):
            del self._chunks[number >> _CHUNK_BITS]

    def __iter__(self) -> Iterator[int]:
        for number, _ in self.pairs():
            yield number

    def pairs(self) -> Iterator[tuple[int, Value]]:
        """Return all numbers with their values."""
        for high, chunk in list(self._chunks.items()):
            for number, value in enumerate(chunk, start=high << _CHUNK_BITS):
                if value is not None:
                    yield number, value

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.get(number) is not None

    def values(self) -> ValuesView[Value]:
        """Return a view of all values, which is faster than one look-up for each."""
        return _Values(self)

    def items(self) -> ItemsView[int, Value]:
        """Return a view of all pairs."""
        return _Items(self)

    def listed(self) -> list[Value]:
        """Return all values, in the order of iteration."""
        return [value for chunk in self._chunks.values() for value in chunk if value is not None]


class _Values(ValuesView[Value]):
    _mapping: Numbered[Value]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._mapping.listed())


class _Items(ItemsView[int, Value]):
    _mapping: Numbered[Value]

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        return self._mapping.pairs()
