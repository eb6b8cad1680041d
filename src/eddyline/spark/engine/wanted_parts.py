"""Which roles of joins want a row, as a column that travels with it to the join tasks.

Eddies say so with a list of numbers. Where comparisons with constants decide alone, and queries
are few, the JVM says so with a bitmap, and rows cross into Python only once.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import Column

#: A bitmap is one signed number of 64 bits. With more conditions an eddy is faster anyway.
BITS_MAX = 63


class WantedParts(abc.ABC):
    """Says which roles want a row."""

    @property
    @abc.abstractmethod
    def identity(self) -> object:
        """Equal for two that make the same columns."""

    @abc.abstractmethod
    def of_stream(self, stream: int) -> Column:
        """Return the roles that want a row of a stream, given by number."""

    @abc.abstractmethod
    def is_wanted(self, stream: int, parts: Sequence[int] | None) -> Column:
        """Return whether one of some roles wants a row of a stream; None stands for all roles."""

    @abc.abstractmethod
    def bits(self, stream: int) -> tuple[int, ...]:
        """Return the numbers of the roles that bits of a bitmap stand for; empty for lists."""


@dataclass(frozen=True)
class ListedParts(WantedParts):
    """Lists of numbers, from the eddies.

    Parameters
    ----------
    column
        Name of the column with the numbers of the queries and roles that want a row.

    """

    column: str

    @property
    def identity(self) -> object:
        """The name of the column."""
        return self.column

    def of_stream(self, stream: int) -> Column:
        """Return those of the numbers that stand for roles."""
        return F.filter(self.column, lambda number: number < 0)

    def is_wanted(self, stream: int, parts: Sequence[int] | None) -> Column:
        """Return whether the list has one of the numbers."""
        if parts is None:
            return F.exists(self.column, lambda number: number < 0)
        return F.arrays_overlap(F.col(self.column), F.array(*map(F.lit, parts)))

    def bits(self, stream: int) -> tuple[int, ...]:
        """Return nothing."""
        return ()


class PartBits(WantedParts):
    """Bitmaps, computed in the JVM.

    Parameters
    ----------
    streams
        The streams of the engine.
    roles
        All roles of the joins; `can_be_bits` holds for them.

    """

    def __init__(self, streams: Iterable[StreamInfo], roles: Sequence[CompiledQuery]) -> None:
        self._numbers: dict[int, tuple[int, ...]] = {}
        self._texts: dict[int, str] = {}
        for stream in streams:
            own = [role for role in roles if role.query.stream == stream.name]
            self._numbers[stream.number] = tuple(role.number for role in own)
            self._texts[stream.number] = stream.localised(_to_bitmap(own))

    @property
    def identity(self) -> object:
        """The numbers and conditions of all roles."""
        return (tuple(self._numbers.items()), tuple(self._texts.items()))

    def of_stream(self, stream: int) -> Column:
        """Return the bitmap."""
        return F.expr(self._texts[stream])

    def is_wanted(self, stream: int, parts: Sequence[int] | None) -> Column:
        """Return whether one of the bits is set."""
        bitmap, numbers = F.expr(self._texts[stream]), self._numbers[stream]
        if parts is not None:
            mask = sum(1 << numbers.index(part) for part in parts)
            bitmap = bitmap.bitwiseAND(F.lit(mask))
        return bitmap != 0

    def bits(self, stream: int) -> tuple[int, ...]:
        """Return the numbers of the stream's roles, one for each bit."""
        return self._numbers[stream]


def can_be_bits(queries: Iterable[CompiledQuery]) -> bool:
    """Whether all queries join streams, and compare with constants to choose the rows of each."""
    count: dict[str, int] = {}
    for compiled in queries:
        if compiled.join is None:
            return False
        for role in compiled.filters():
            query = role.query
            count[query.stream] = count.get(query.stream, 0) + 1
            if query.required or query.clauses or query.lookups or count[query.stream] > BITS_MAX:
                return False
    return bool(count)


def _to_bitmap(roles: Sequence[CompiledQuery]) -> str:
    always = sum(1 << bit for bit, role in enumerate(roles) if not role.query.where)
    texts = [f"{always}L"]
    texts += [
        f"CASE WHEN {role.query.where} THEN {1 << bit}L ELSE 0L END"
        for bit, role in enumerate(roles)
        if role.query.where
    ]
    return " | ".join(texts)
