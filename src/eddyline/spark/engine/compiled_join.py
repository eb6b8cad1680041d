"""A join of streams that was parsed and checked, in the types of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import StructField, StructType

from eddyline.spark.engine.compared_key import ComparedKey, RoleBound
from eddyline.spark.engine.join_key import JoinKey

if TYPE_CHECKING:
    from eddyline.spark.engine.compiled_query import CompiledQuery


class RoleKey(NamedTuple):
    """A key of one role: position of the role in FROM, and the key."""

    role: int
    key: JoinKey


class RoleField(NamedTuple):
    """Where the rows of a role are in stored combinations.

    Parameters
    ----------
    alias
        Name of the role in the query.
    name
        Name of the struct that holds its rows.
    schema
        The columns of that struct that the query needs.

    """

    alias: str
    name: str
    schema: StructType


@dataclass(frozen=True)
class CompiledJoin:
    """The streams that a query joins, and how.

    Parameters
    ----------
    parts
        For each stream in FROM, the conditions on it alone, as a query over that stream.
    equalities
        Sets of keys that are equal, closed under transitivity; no two of one role in a set.
    windows_us
        For each role, how much older than the youngest row of a result its row may be, exclusive;
        None if time does not limit it.
    windows_rows
        For each role, the number of rows in its window; None if it has no window of rows.
    bounds
        What comparisons across streams say of the values of two roles.
    fields
        For each role, where its rows are in stored combinations.

    """

    parts: tuple[CompiledQuery, ...]
    equalities: tuple[frozenset[RoleKey], ...]
    windows_us: tuple[int | None, ...]
    windows_rows: tuple[int | None, ...]
    bounds: tuple[RoleBound, ...]
    fields: tuple[RoleField, ...]

    @property
    def row_schema(self) -> StructType:
        """A combination: a struct for each role, named by its alias."""
        return StructType([StructField(field.alias, field.schema) for field in self.fields])

    @property
    def is_timed(self) -> bool:
        """Whether time limits some role."""
        return any(window is not None for window in self.windows_us)

    @property
    def counts_rows(self) -> bool:
        """Whether some role has a window of rows."""
        return any(window is not None for window in self.windows_rows)

    def compared_keys(self, role: int) -> list[ComparedKey]:
        """Return what comparisons across streams use of a role."""
        return [
            key
            for bound in self.bounds
            for number, key in ((bound.low_role, bound.low), (bound.high_role, bound.high))
            if number == role
        ]

    def common_key(self) -> Mapping[int, JoinKey] | None:
        """Return for each role its key in an equality that all roles take part in, if any."""
        for equal in self.equalities:
            if len(equal) == len(self.parts):
                return {role_key.role: role_key.key for role_key in equal}
        return None
