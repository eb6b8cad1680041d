"""A query that was parsed and checked: its parts, and where its results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import DataType

from eddyline.fabric.shared.query import SharedQuery
from eddyline.sql.query import Query


@dataclass
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

    """

    number: int
    name: str
    query: Query
    sink: str
    argument_types: Mapping[str, DataType] = field(default_factory=dict)
    select_may_fail: bool = False
    select_calls_python: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether its rows are stored; False if counting the rows that match is enough."""
        return self.sink != "count" or not self.query.is_row_for_row

    def shared(self) -> SharedQuery:
        """Return the parts that an eddy shares with other queries."""
        return self.query.shared(self.number, self.is_stored)
