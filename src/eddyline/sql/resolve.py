"""Step 2, resolve: every name in the query gets its source.

Streams and tables in FROM, columns and registered functions are looked up without regard to upper
and lower case. Afterwards each column is qualified with the alias of its source and has the name
that it has there, and registered functions have the names by which Spark knows them.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.dialect import SPARK
from eddyline.sql.query import Window
from eddyline.sql.read import ReadQuery
from eddyline.sql.schemas import Schemas
from eddyline.sql.tree import from_items


@dataclass(frozen=True)
class Source:
    """A stream or static table in FROM.

    Parameters
    ----------
    name
        Registered name.
    alias
        Name within the query.
    columns
        All its columns and their types.
    is_stream
        False for a static table.
    window
        Window over the stream. The window clause of a query applies to each of its streams.

    """

    name: str
    alias: str
    columns: Mapping[str, str]
    is_stream: bool
    window: Window | None


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

    """

    text: str
    body: str
    schemas: Schemas
    select: exp.Select
    sources: tuple[Source, ...]

    @property
    def stream(self) -> Source:
        """The one stream that the query reads."""
        (stream,) = [source for source in self.sources if source.is_stream]
        return stream

    @property
    def tables(self) -> list[Source]:
        """The static tables that the query joins."""
        return [source for source in self.sources if not source.is_stream]

    def registered_function(self, node: exp.Expression) -> str | None:
        """Return the name of the registered function that this node calls, or None."""
        if not isinstance(node, exp.Anonymous):
            return None
        functions = self.schemas.functions.items()
        return next((name for name, spark_name in functions if spark_name == node.this), None)

    def calls_function(self, node: exp.Expression) -> bool:
        """Whether a registered function is called anywhere in the expression."""
        return any(self.registered_function(inner) for inner in node.walk())


def resolve(query: ReadQuery) -> ResolvedQuery:
    """Give every name in the query its source.

    Examples
    --------
    >>> from eddyline.sql.read import QueryText, read
    >>> schemas = Schemas({"light": {"room": "string", "lux": "int"}})
    >>> query = resolve(read(QueryText("SELECT LUX FROM light l WHERE room = 'hall'", schemas)))
    >>> query.select.sql()
    'SELECT "l"."lux" FROM light AS l WHERE "l"."room" = \\'hall\\''

    """
    select = query.select.copy()
    sources = _resolve_sources(select, query.schemas, query.window)
    _resolve_columns(select, sources)
    _rename_functions(select, query.schemas)
    return ResolvedQuery(query.text, query.body, query.schemas, select, sources)


def _resolve_sources(
    select: exp.Select, schemas: Schemas, window: Window | None
) -> tuple[Source, ...]:
    sources: list[Source] = []
    for item in from_items(select):
        source = _resolve_source(item, schemas, window)
        if any(other.alias.lower() == source.alias.lower() for other in sources):
            raise QueryError(f"{source.alias!r} stands twice in FROM; give one an alias")
        sources.append(source)
    streams = [source.name for source in sources if source.is_stream]
    if len(streams) != 1:
        raise QueryError(
            f"a query reads one stream, this one reads {', '.join(streams) or 'none'}; "
            f"streams are {', '.join(schemas.streams) or 'none yet: register with engine.stream'}"
        )
    return tuple(sources)


def _resolve_source(item: exp.Expression, schemas: Schemas, window: Window | None) -> Source:
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
        raise QueryError(f"FROM takes names of streams and tables, not {item.sql(**SPARK)}")
    written = ".".join(part.name for part in item.parts)
    for name, columns in schemas.streams.items():
        if name.lower() == written.lower():
            return Source(name, item.alias or name, columns, is_stream=True, window=window)
    for name, columns in schemas.tables.items():
        if name.lower() == written.lower():
            return Source(name, item.alias or name, columns, is_stream=False, window=None)
    suggestion = _did_you_mean(written, [*schemas.streams, *schemas.tables])
    raise QueryError(
        f"no stream or table {written!r}{suggestion}; "
        f"streams are {', '.join(schemas.streams) or 'none'}, "
        f"tables {', '.join(schemas.tables) or 'none'}"
    )


def _resolve_columns(select: exp.Select, sources: Sequence[Source]) -> None:
    by_alias = {source.alias.lower(): source for source in sources}
    for star in list(select.find_all(exp.Star)):
        if star.args.get("except_") or star.args.get("replace"):
            raise QueryError("SELECT * EXCEPT is not supported; name the columns")
    for column in list(select.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            if column.table.lower() not in by_alias:
                raise QueryError(f"{column.table!r} does not stand in FROM")
            column.set("table", exp.to_identifier(by_alias[column.table.lower()].alias, True))
            continue
        source, name, fields = _find_column(column, by_alias)
        resolved: exp.Expression = exp.column(
            exp.to_identifier(name, True), exp.to_identifier(source.alias, True)
        )
        for field in fields:
            resolved = exp.Dot(this=resolved, expression=exp.to_identifier(field, True))
        column.replace(resolved)


def _find_column(
    column: exp.Column, by_alias: Mapping[str, Source]
) -> tuple[Source, str, list[str]]:
    """Return the source of a column, its name there, and the path of struct fields after it."""
    parts = [part.name for part in column.parts]
    candidates = list(by_alias.values())
    if len(parts) > 1 and parts[0].lower() in by_alias:
        candidates, parts = [by_alias[parts[0].lower()]], parts[1:]
    matches = [
        (source, name)
        for source in candidates
        for name in source.columns
        if name.lower() == parts[0].lower()
    ]
    if len(matches) == 1:
        source, name = matches[0]
        return source, name, parts[1:]
    if matches:
        choices = ", ".join(f"{source.alias}.{name}" for source, name in matches)
        raise QueryError(f"column {parts[0]!r} is ambiguous; write one of {choices}")
    names = {name for source in candidates for name in source.columns}
    has = "; ".join(f"{source.name} has {', '.join(source.columns)}" for source in candidates)
    raise QueryError(f"no column {parts[0]!r}{_did_you_mean(parts[0], names)}; {has}")


def _rename_functions(select: exp.Select, schemas: Schemas) -> None:
    spark_names = {name.lower(): spark_name for name, spark_name in schemas.functions.items()}
    for call in select.find_all(exp.Anonymous):
        call.set("this", spark_names.get(str(call.this).lower(), call.this))


def _did_you_mean(written: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(written.lower(), [name.lower() for name in names], n=1)
    match = next((name for name in names if close and name.lower() == close[0]), None)
    return f" (did you mean {match!r}?)" if match else ""
