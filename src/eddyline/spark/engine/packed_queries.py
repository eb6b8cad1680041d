"""Queries as bytes that travel to workers: those that only compare columns, column by column.

Most queries of an engine differ only in the constants that they compare columns with. Those that
have the same columns and kinds of bounds are packed as arrays of numbers, slots and bounds, which
take a few bytes a query where pickled objects take sixty.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators.value_set import Key, ValueSet

_INTEGERS = (np.int8, np.int16, np.int32, np.int64)


class _Column(NamedTuple):
    """What the accepted values of one column have in common in all queries of a group."""

    name: str
    below: bool
    null: bool
    bounds: int
    kind: str


class _Group(NamedTuple):
    """Queries that compare the same columns in the same way.

    Parameters
    ----------
    columns, is_stored
        What they have in common.
    slots, numbers
        Of each query.
    bounds
        By column, the bounds of all queries one after another.

    """

    columns: tuple[_Column, ...]
    is_stored: bool
    slots: Sequence[int]
    numbers: Sequence[int]
    bounds: tuple[Sequence[Key], ...]

    def queries(self) -> Iterator[tuple[int, SharedQuery]]:
        """Return the queries with their slots."""
        count = len(self.slots)
        sets = [
            _unpacked_sets(column, bounds, count)
            for column, bounds in zip(self.columns, self.bounds, strict=True)
        ]
        names = [column.name for column in self.columns]
        rows = zip(*sets, strict=True) if sets else iter([()] * count)
        slots, numbers = np.asarray(self.slots).tolist(), np.asarray(self.numbers).tolist()
        for slot, number, values in zip(slots, numbers, rows, strict=True):
            accepts = dict(zip(names, values, strict=True))
            yield slot, SharedQuery(number, accepts, is_stored=self.is_stored)


class _Packed:
    """Becomes the queries by slot when it is unpickled."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (self._packed,)


def pack(queries: Iterable[tuple[int, SharedQuery]]) -> bytes:
    """Return queries with their slots, as a pickle of the queries by slot.

    Examples
    --------
    >>> query = SharedQuery(7, {"a": ValueSet((3,)), "b": ValueSet((1.5, 2.5), below=True)})
    >>> pickle.loads(pack([(0, query)])) == {0: query}
    True
    >>> above = {slot: SharedQuery(slot, {"a": ValueSet((slot % 90,))}) for slot in range(1_000)}
    >>> len(pack(above.items())) < 8_000, pickle.loads(pack(above.items())) == above
    (True, True)

    """
    groups: dict[tuple[tuple[_Column, ...], bool], tuple[list[int], list[SharedQuery]]] = {}
    others: dict[int, SharedQuery] = {}
    for slot, query in queries:
        if query.needs or query.clauses:
            others[slot] = query
        else:
            columns = tuple(_to_column(name, values) for name, values in query.accepts.items())
            slots, own = groups.setdefault((columns, query.is_stored), ([], []))
            slots.append(slot)
            own.append(query)
    packed = [
        _Group(
            columns,
            is_stored,
            _small(slots),
            _small([query.number for query in own]),
            tuple(
                _packed_bounds(column, [query.accepts[column.name] for query in own])
                for column in columns
            ),
        )
        for (columns, is_stored), (slots, own) in groups.items()
    ]
    whole = zlib.compress(pickle.dumps((packed, others), protocol=pickle.HIGHEST_PROTOCOL), 1)
    return pickle.dumps(_Packed(whole), protocol=pickle.HIGHEST_PROTOCOL)


def _unpack(packed: bytes) -> Mapping[int, SharedQuery]:
    """Return what was packed, by slot."""
    groups, others = pickle.loads(zlib.decompress(packed))
    found = dict(others)
    for group in groups:
        found.update(group.queries())
    return dict(sorted(found.items()))


def _to_column(name: str, values: ValueSet) -> _Column:
    kinds = {type(bound).__name__ for bound in values.bounds}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return _Column(name, values.below, values.null, len(values.bounds), kind)


def _packed_bounds(column: _Column, sets: Sequence[ValueSet]) -> Any:
    bounds = [bound for values in sets for bound in values.bounds]
    if column.kind == "int":
        return _small(bounds)
    return np.array(bounds, dtype=np.float64) if column.kind == "float" else bounds


def _unpacked_sets(column: _Column, packed: Any, count: int) -> list[ValueSet]:
    bounds = packed.tolist() if isinstance(packed, np.ndarray) else packed
    if column.bounds == 0:
        return [ValueSet((), column.below, column.null)] * count
    of_each = zip(*[iter(bounds)] * column.bounds, strict=True)
    return [ValueSet(own, column.below, column.null) for own in of_each]


def _small(numbers: Sequence[Any]) -> Any:
    """Return integers as an array of as few bytes as they fit into."""
    least, most = min(numbers, default=0), max(numbers, default=0)
    for kind in _INTEGERS:
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return np.array(numbers, dtype=kind)
    return list(numbers)
