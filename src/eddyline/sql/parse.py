"""From SQL text to `Query`: the pipeline and its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eddyline.sql.assemble import assemble
from eddyline.sql.deep import with_deep_recursion
from eddyline.sql.group import group
from eddyline.sql.join_graph import join_graph
from eddyline.sql.lookups import lookups
from eddyline.sql.normalise import normalise
from eddyline.sql.query import Query
from eddyline.sql.read import QueryText, read
from eddyline.sql.resolve import resolve
from eddyline.sql.schemas import Schemas

#: Each step takes the state that the previous one returns; none changes the state it is given.
STEPS: tuple[Callable[[Any], Any], ...] = (
    read,  # text -> SELECT tree and window clause
    resolve,  # names -> sources, columns and functions
    normalise,  # ON and WHERE -> conjuncts, each in conjunctive normal form
    group,  # conjuncts over the stream -> value sets, shared predicates, clauses
    join_graph,  # all other conjuncts -> edges between sources
    lookups,  # edges between the stream and a static table -> lookups
    assemble,  # everything -> Query, with the SQL that makes its result
)


def parse(text: str, schemas: Schemas) -> Query:
    """Compile the SQL text of a continuous query.

    Parameters
    ----------
    text
        One SELECT over a stream and any number of static tables, with an optional window clause
        at its end.
    schemas
        The streams, tables and functions that it may name.

    Raises
    ------
    QueryError
        If the text cannot be read, names something unknown, or asks for what a continuous query
        cannot do. The message names the place and a remedy.

    Examples
    --------
    >>> schemas = Schemas({"light": {"room": "string", "lux": "int"}})
    >>> query = parse("SELECT room FROM light l WHERE l.lux > 500 WINDOW 30 SECONDS", schemas)
    >>> query.accepts
    {'lux': ValueSet(bounds=(501,), below=False, null=False)}
    >>> query.window, query.result
    (Window(size=30, unit='seconds'), 'SELECT `l`.`room` FROM {rows} AS `l`')
    >>> parse("SELECT room FROM light WHERE luxx > 500", schemas)
    Traceback (most recent call last):
    ...
    eddyline.errors.QueryError: no column 'luxx' (did you mean 'lux'?); light has room, lux

    """
    return with_deep_recursion(lambda: _run_steps(QueryText(text, schemas)))


def _run_steps(state: Any) -> Query:
    for step in STEPS:
        state = step(state)
    query: Query = state
    return query
