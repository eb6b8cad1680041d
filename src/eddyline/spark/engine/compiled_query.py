"""A query that was parsed and checked: its parts, and where its results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.types import DataType

from eddyline.fabric.shared.query import SharedQuery
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.state.join_plan import part_number
from eddyline.sql.query import Query


@dataclass(eq=False)
class CompiledQuery:
    """A query that can be run.

    Parameters
    ----------
    number
        As in the catalogue; 0 until the catalogue has the query.
    name
        As the user gave it.
    query
        Its parts.
    sink
        Kind of its sink.
    argument_types
        Types of the arguments that it calls Python functions with, by SQL text.
    select_may_fail
        Whether computing its SELECT could fail on some row.
    select_calls_python
        Whether its SELECT calls a registered Python function.
    join
        How it joins streams; None for a query over one stream.

    """

    number: int
    name: str
    query: Query
    sink: str
    argument_types: Mapping[str, DataType] = field(default_factory=dict)
    select_may_fail: bool = False
    select_calls_python: bool = False
    join: CompiledJoin | None = None
    _filters: list[CompiledQuery] = field(default_factory=list)

    @property
    def is_part(self) -> bool:
        """Whether this is a role of a join: its rows go to a SteM."""
        return self.sink == "part"

    @property
    def has_idle_window(self) -> bool:
        """Whether it has a window although it reads one stream."""
        return self.query.join is None and self.query.window is not None

    @property
    def is_stored(self) -> bool:
        """Whether its rows are stored; False if counting the rows that match is enough."""
        return not self.is_part and (self.sink != "count" or not self.query.is_row_for_row)

    def filters(self) -> list[CompiledQuery]:
        """Return what eddies run: the query, or each role of its join with a number of its own."""
        if self.join is None:
            return [self]
        if not self._filters:
            self._filters = [
                replace(part, number=part_number(self.number, role))
                for role, part in enumerate(self.join.parts)
            ]
        return self._filters

    def shared(self) -> SharedQuery:
        """Return the parts that an eddy shares with other queries."""
        return self.query.shared(self.number, self.is_stored or self.is_part)
