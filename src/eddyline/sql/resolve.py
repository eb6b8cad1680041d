"""Step 2, resolve: every name in the query gets its source.

Streams and tables in FROM, columns and registered functions are looked up without regard to upper
and lower case. Afterwards each column is qualified with the alias of its source, and registered
functions have the names by which Spark knows them. In conditions a column has the name that it has
in its source, so that equal conditions are equal texts; in SELECT it keeps its written name, which
becomes the name in the result.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.dialect import to_sql
from eddyline.sql.names import NameResolver, Source, did_you_mean
from eddyline.sql.read import ReadQuery
from eddyline.sql.schemas import Schemas
from eddyline.sql.specs import Window
from eddyline.sql.tree import copy_tree, from_items
from eddyline.sql.window_clauses import WindowClauses


@dataclass(frozen=True)
class ResolvedQuery:
    """Result of `resolve`.

    Parameters
    ----------
    text, body, schemas
        As in `ReadQuery`.
    select
        The SELECT with resolved names.
    sources
        Items of FROM in their written order.
    functions
        Names of the registered functions that it calls, sorted.
    has_constant_conditions
        True if TRUE, FALSE or NULL stands in place of a condition or of one side of a comparison.
        Such conditions are simplified away, and with them what only Spark can check.

    """

    text: str
    body: str
    schemas: Schemas
    select: exp.Select
    sources: tuple[Source, ...]
    functions: tuple[str, ...]
    has_constant_conditions: bool

    @functools.cached_property
    def streams(self) -> list[Source]:
        """The streams that the query reads, in the order of FROM."""
        return [source for source in self.sources if source.is_stream]

    @property
    def stream(self) -> Source:
        """The first stream that the query reads."""
        return self.streams[0]

    @property
    def tables(self) -> list[Source]:
        """The static tables that the query joins."""
        return [source for source in self.sources if not source.is_stream]

    def registered_function(self, node: exp.Expression) -> str | None:
        """Return the name of the registered function that this node calls, or None."""
        if not isinstance(node, exp.Anonymous):
            return None
        spark_names = self.schemas.functions
        return next((name for name in self.functions if spark_names[name] == node.this), None)

    def calls_function(self, node: exp.Expression) -> bool:
        """Whether a registered function is called anywhere in the expression."""
        return bool(self.functions) and any(
            self.registered_function(call) for call in node.find_all(exp.Anonymous)
        )


def resolve(query: ReadQuery) -> ResolvedQuery:
    """Give every name in the query its source.

    Examples
    --------
    >>> from eddyline.sql.read import QueryText, read
    >>> schemas = Schemas({"light": {"room": "string", "lux": "int"}})
    >>> query = resolve(read(QueryText("SELECT LUX FROM light l WHERE Room = 'hall'", schemas)))
    >>> query.select.sql()
    'SELECT "l"."LUX" FROM light AS l WHERE "l"."room" = \\'hall\\''

    """
    select = copy_tree(query.select)
    sources = _resolve_sources(select, query.schemas, query.windows)
    using = _resolve_using(select, sources)
    names = NameResolver(sources, query.schemas, using)
    lateral_aliases: set[str] = set()
    for item in list(select.expressions):  # resolving may replace an item
        alias = item.alias if isinstance(item, exp.Alias) else ""
        names.resolve(item, lateral_aliases)
        if alias:
            lateral_aliases.add(alias.lower())
    for part in (*(select.args.get("joins") or ()), select.args.get("where")):
        if part is not None:
            names.resolve(part, None)
    return ResolvedQuery(
        text=query.text,
        body=query.body,
        schemas=query.schemas,
        select=select,
        sources=sources,
        functions=tuple(sorted(names.functions)),
        has_constant_conditions=names.has_constant_conditions,
    )


def _resolve_sources(
    select: exp.Select, schemas: Schemas, windows: WindowClauses
) -> tuple[Source, ...]:
    sources: list[Source] = []
    items = from_items(select)
    begins = [_position(item) for item in items]
    for item, begin, end in zip(items, begins, [*begins[1:], None], strict=True):
        own = windows.between(begin, end)
        source = _resolve_source(item, schemas, own or windows.of_query)
        if own is not None and not source.is_stream:
            raise QueryError(f"{source.alias!r} is a static table and cannot have a window")
        if any(other.alias.lower() == source.alias.lower() for other in sources):
            raise QueryError(f"{source.alias!r} stands twice in FROM; give one an alias")
        sources.append(source)
    streams = [source.name for source in sources if source.is_stream]
    if not streams:
        raise QueryError(
            f"a query reads at least one stream, this one reads none; streams are "
            f"{', '.join(schemas.streams) or 'none yet: register with engine.stream'}"
        )
    return tuple(sources)


def _resolve_using(select: exp.Select, sources: Sequence[Source]) -> dict[str, str]:
    """Write USING as ON; return the alias that each of its columns is taken from."""
    taken_from: dict[str, str] = {}
    for number, join in enumerate(select.args.get("joins") or (), start=1):
        conditions = []
        for column in join.args.get("using") or ():
            name = column.name
            earlier = [s for s in sources[:number] if _has(s, name)]
            if not earlier or not _has(sources[number], name):
                raise QueryError(
                    f"USING ({name}): the column must be in {sources[number].alias} and in a "
                    f"source before it"
                )
            left = taken_from.setdefault(name.lower(), earlier[0].alias)
            sides = [
                exp.column(name, table, quoted=True) for table in (left, sources[number].alias)
            ]
            conditions.append(exp.EQ(this=sides[0], expression=sides[1]))
        if conditions:
            join.set("on", exp.and_(*conditions))
            join.set("using", None)
    return taken_from


def _has(source: Source, name: str) -> bool:
    return any(name.lower() == own.lower() for own in source.columns)


def _position(item: exp.Expression) -> int:
    """Return where the name of a source begins in the text."""
    name = item.this if isinstance(item, exp.Table) else None
    return int(name.meta.get("start", 0)) if isinstance(name, exp.Identifier) else 0


def _resolve_source(item: exp.Expression, schemas: Schemas, window: Window | None) -> Source:
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
        raise QueryError(f"FROM takes names of streams and tables, not {to_sql(item)}")
    written = ".".join(part.name for part in item.parts)
    for name, columns in schemas.streams.items():
        if name.lower() == written.lower():
            return Source(name, item.alias or name, columns, is_stream=True, window=window)
    for name, columns in schemas.tables.items():
        if name.lower() == written.lower():
            return Source(name, item.alias or name, columns, is_stream=False, window=None)
    suggestion = did_you_mean(written, [*schemas.streams, *schemas.tables])
    raise QueryError(
        f"no stream or table {written!r}{suggestion}; "
        f"streams are {', '.join(schemas.streams) or 'none'}, "
        f"tables {', '.join(schemas.tables) or 'none'}"
    )
