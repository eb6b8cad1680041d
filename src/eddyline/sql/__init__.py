"""From SQL text to what a flow can share: parse, resolve, normalise, take apart."""

from eddyline.sql.names import Schemas
from eddyline.sql.parse import ROWS, STREAM, TABLE, parse, shown
from eddyline.sql.query import LookupSpec, PredicateSpec, Query, Window
from eddyline.sql.standing import Clause, StandingQuery

__all__ = [
    "ROWS",
    "STREAM",
    "TABLE",
    "Clause",
    "LookupSpec",
    "PredicateSpec",
    "Query",
    "Schemas",
    "StandingQuery",
    "Window",
    "parse",
    "shown",
]
