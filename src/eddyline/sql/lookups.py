"""Step 6, lookups: equalities with a static table become semi-joins.

Only a row of the stream with a partner in the table can be in the result. Where columns of the
stream must equal columns of the table, workers can check this with the keys of the table before the
row is stored; Spark still performs the join when the result is read.
"""

from __future__ import annotations

from dataclasses import replace

from eddyline.sql.join_graph import JoinedQuery, JoinGraph
from eddyline.sql.names import Source
from eddyline.sql.specs import LookupSpec
from eddyline.sql.tree import table_sql


def lookups(query: JoinedQuery) -> JoinedQuery:
    """Add a lookup for each static table that has a key in common with the stream.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int"}}, {"t": {"k": "int", "v": "int"}})
    >>> (lookup,) = parse("SELECT v FROM s, t WHERE s.a = t.k AND t.v > 3", schemas).lookups
    >>> lookup.table, lookup.columns, lookup.keys, lookup.condition
    ('t', ('a',), ('k',), '(`v` > 3)')

    """
    found = []
    for stream in query.resolved.streams:
        specs = [_to_lookup(stream, table, query.graph) for table in query.resolved.tables]
        found.append(tuple(spec for spec in specs if spec is not None))
    return replace(query, lookups=tuple(found))


def _to_lookup(stream: Source, table: Source, graph: JoinGraph) -> LookupSpec | None:
    pairs = graph.equal_columns(stream.alias, table.alias)
    if not pairs:
        return None
    columns, keys = zip(*pairs, strict=True)
    local = [table_sql(condition) for condition in graph.local_conditions(table.alias)]
    condition = " AND ".join(f"({text})" for text in local)
    key = f"{table.name}({', '.join(keys)}) = ({', '.join(columns)})"
    if condition:
        key += f" where {condition}"
    return LookupSpec(key, table.name, columns, keys, condition)
