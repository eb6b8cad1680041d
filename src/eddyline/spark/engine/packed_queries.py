"""Queries as bytes that travel to workers: those of one form column by column.

Most queries of an engine differ only in the constants that they compare columns with. Those that
have the same columns, clauses and kinds of bounds are packed as arrays of numbers, slots and
bounds, which take a few bytes a query where pickled objects take sixty.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.value_set import Key, ValueSet

_INTEGERS = (np.int8, np.int16, np.int32, np.int64)


class _Form(NamedTuple):
    """A query without its number and its value sets: names of columns, and keys of predicates."""

    accepts: tuple[str, ...]
    needs: tuple[str, ...]
    #: Of each clause: its columns, its predicates, and the columns of each of its terms.
    clauses: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]], ...]
    is_stored: bool

    @classmethod
    def of(cls, query: SharedQuery) -> _Form:
        """Return the form of a query."""
        clauses = tuple(
            (tuple(clause.accepts), clause.needs, tuple(map(tuple, clause.terms)))
            for clause in query.clauses
        )
        return cls(tuple(query.accepts), query.needs, clauses, query.is_stored)

    def query(self, number: int, values: Iterator[ValueSet]) -> SharedQuery:
        """Return a query of this form, given its value sets in the order of `_sets`."""
        accepts = dict(zip(self.accepts, values, strict=False))
        clauses = tuple(
            Clause(
                dict(zip(names, values, strict=False)),
                needs,
                tuple([dict(zip(term, values, strict=False)) for term in terms]),
            )
            for names, needs, terms in self.clauses
        )
        return SharedQuery(number, accepts, self.needs, clauses, self.is_stored)


def _sets(query: SharedQuery) -> list[ValueSet]:
    """Return the value sets of a query."""
    sets = list(query.accepts.values())
    for clause in query.clauses:
        sets += clause.accepts.values()
        for term in clause.terms:
            sets += term.values()
    return sets


class _Column(NamedTuple):
    """What value sets in the same place have in common in all queries of a group."""

    below: bool
    null: bool
    bounds: int
    kind: str


class _Group(NamedTuple):
    """Queries that compare the same columns in the same way.

    Parameters
    ----------
    form, columns
        What they have in common.
    slots, numbers
        Of each query.
    bounds
        By place of a value set, the bounds of all queries one after another.

    """

    form: _Form
    columns: tuple[_Column, ...]
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
        rows = zip(*sets, strict=True) if sets else iter([()] * count)
        slots, numbers = np.asarray(self.slots).tolist(), np.asarray(self.numbers).tolist()
        for slot, number, values in zip(slots, numbers, rows, strict=True):
            yield slot, self.form.query(number, iter(values))


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
    groups: dict[tuple[_Form, tuple[_Column, ...]], list[tuple[int, SharedQuery]]] = {}
    for slot, query in queries:
        columns = tuple(map(_to_column, _sets(query)))
        groups.setdefault((_Form.of(query), columns), []).append((slot, query))
    others: dict[int, SharedQuery] = {}
    packed = []
    for (form, columns), own in groups.items():
        if len(own) == 1:  # such as one with a native condition of its own
            others.update(own)
            continue
        by_place = zip(*[_sets(query) for _, query in own], strict=True)
        bounds = tuple(map(_packed_bounds, columns, by_place))
        slots, numbers = [slot for slot, _ in own], [query.number for _, query in own]
        packed.append(_Group(form, columns, _small(slots), _small(numbers), bounds))
    whole = zlib.compress(pickle.dumps((packed, others), protocol=pickle.HIGHEST_PROTOCOL), 1)
    return pickle.dumps(_Packed(whole), protocol=pickle.HIGHEST_PROTOCOL)


def _unpack(packed: bytes) -> Mapping[int, SharedQuery]:
    """Return what was packed, by slot."""
    groups, others = pickle.loads(zlib.decompress(packed))
    found = dict(others)
    for group in groups:
        found.update(group.queries())
    return dict(sorted(found.items()))


def _to_column(values: ValueSet) -> _Column:
    kinds = {type(bound).__name__ for bound in values.bounds}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return _Column(values.below, values.null, len(values.bounds), kind)


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
