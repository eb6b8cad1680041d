"""A query that was parsed and checked: its parts, and where its results go.

A driver may have a hundred thousand of them, most of a few shapes. What queries of one shape have
in common is kept once, by their template (`query_templates.py`), and what a query has of its own is
made from its text again when it is needed (`docs/decisions/0036`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql.types import DataType

from eddyline.fabric.shared.query import SharedQuery
from eddyline.spark.engine.catalogue_entries import QueryEntry
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.state.join_plan import part_number
from eddyline.sql.query import Query
from eddyline.sql.specs import PredicateSpec


class QuerySource(Protocol):
    """What was compiled from the text of a query, or of another one with other constants.

    The attributes are those of `CompiledQuery`.
    """

    @property
    def outline(self) -> Query:
        """Its parts, or those of a query with other constants."""

    @property
    def select_may_fail(self) -> bool:
        """Whether computing its SELECT could fail on some row."""

    @property
    def select_calls_python(self) -> bool:
        """Whether its SELECT calls a registered Python function."""

    @property
    def join(self) -> CompiledJoin | None:
        """How it joins streams."""

    def query_of(self, text: str) -> Query:
        """Return the query that has a text."""

    def predicates_of(self, text: str) -> Sequence[PredicateSpec]:
        """Return the shared predicates of the query that has a text."""

    def argument_types_of(self, text: str) -> Mapping[str, DataType]:
        """Return the types of its arguments of Python functions."""

    def shared(self, number: int, text: str, is_stored: bool) -> SharedQuery:
        """Return what an eddy shares of the query that has a text."""


@dataclass(eq=False, slots=True)
class Compilation:
    """What was compiled from the text of one query; the fields are those of `CompiledQuery`."""

    outline: Query
    argument_types: Mapping[str, DataType] = field(default_factory=dict)
    select_may_fail: bool = False
    select_calls_python: bool = False
    join: CompiledJoin | None = None
    #: The roles of a join, once they are needed.
    filters: list[CompiledQuery] = field(default_factory=list)

    def query_of(self, text: str) -> Query:
        """Return the query."""
        return self.outline

    def predicates_of(self, text: str) -> Sequence[PredicateSpec]:
        """Return its shared predicates."""
        return self.outline.predicates

    def argument_types_of(self, text: str) -> Mapping[str, DataType]:
        """Return the types of its arguments of Python functions."""
        return self.argument_types

    def shared(self, number: int, text: str, is_stored: bool) -> SharedQuery:
        """Return what an eddy shares of it."""
        return self.outline.shared(number, is_stored)


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

    __slots__ = ("_entry", "_source")

    def __init__(
        self,
        number: int,
        name: str,
        query: Query,
        sink: str,
        argument_types: Mapping[str, DataType] | None = None,
        select_may_fail: bool = False,
        select_calls_python: bool = False,
        join: CompiledJoin | None = None,
    ) -> None:
        #: For its number, its name and its sink: that of the catalogue, once there is one.
        self._entry = QueryEntry(number, name, "", sink)
        self._source: QuerySource = Compilation(
            query, argument_types or {}, select_may_fail, select_calls_python, join
        )

    @classmethod
    def of(cls, entry: QueryEntry, source: QuerySource) -> CompiledQuery:
        """Return the query of an entry, compiled."""
        made = cls.__new__(cls)
        made._entry, made._source = entry, source
        return made

    def changed(self, **changes: Any) -> CompiledQuery:
        """Return a copy with other values of some parameters, apart from name and sink."""
        entry = self._entry
        if "number" in changes:
            entry = QueryEntry(changes.pop("number"), entry.name, entry.text, entry.sink)
        if "query" in changes:
            changes["outline"] = changes.pop("query")
        values = {
            "outline": self.query,
            "argument_types": self.argument_types,
            "select_may_fail": self.select_may_fail,
            "select_calls_python": self.select_calls_python,
            "join": self.join,
        }
        return CompiledQuery.of(entry, Compilation(**{**values, **changes}))

    def enter(self, entry: QueryEntry) -> None:
        """Take number, name and sink from the catalogue from now on."""
        self._entry = entry

    @property
    def number(self) -> int:
        """Its number."""
        return self._entry.number

    @property
    def name(self) -> str:
        """Its name."""
        return self._entry.name

    @property
    def sink(self) -> str:
        """Kind of its sink."""
        return self._entry.sink

    @property
    def query(self) -> Query:
        """Its parts; made from its text each time if the query is of a template."""
        return self._source.query_of(self._entry.text)

    @property
    def outline(self) -> Query:
        """Its parts, for all that does not depend on constants: it may have others than `query`."""
        return self._source.outline

    @property
    def argument_types(self) -> Mapping[str, DataType]:
        """Types of the arguments of Python functions."""
        return self._source.argument_types_of(self._entry.text)

    @property
    def predicates(self) -> Sequence[PredicateSpec]:
        """Its shared predicates, for which less is made than for all of its parts."""
        return self._source.predicates_of(self._entry.text)

    @property
    def select_may_fail(self) -> bool:
        """Whether computing its SELECT could fail on some row."""
        return self._source.select_may_fail

    @property
    def select_calls_python(self) -> bool:
        """Whether its SELECT calls a registered Python function."""
        return self._source.select_calls_python

    @property
    def join(self) -> CompiledJoin | None:
        """How it joins streams."""
        return self._source.join

    @property
    def is_part(self) -> bool:
        """Whether this is a role of a join: its rows go to a SteM."""
        return self.sink == "part"

    @property
    def has_idle_window(self) -> bool:
        """Whether it has a window although it reads one stream."""
        return self.outline.join is None and self.outline.window is not None

    @property
    def is_stored(self) -> bool:
        """Whether its rows are stored; False if counting the rows that match is enough."""
        return not self.is_part and (self.sink != "count" or not self.outline.is_row_for_row)

    def filters(self) -> list[CompiledQuery]:
        """Return what eddies run: the query, or each role of its join with a number of its own."""
        source = self._source
        if source.join is None or not isinstance(source, Compilation):
            return [self]
        if not source.filters:
            source.filters = [
                part.changed(number=part_number(self.number, role))
                for role, part in enumerate(source.join.parts)
            ]
        return source.filters

    def shared(self) -> SharedQuery:
        """Return the parts that an eddy shares with other queries."""
        is_stored = self.is_stored or self.is_part
        return self._source.shared(self.number, self._entry.text, is_stored)
