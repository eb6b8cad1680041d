"""What the names in a query stand for: streams, tables, columns and functions."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.dialect import SPARK
from eddyline.sql.reading import shortened


@dataclass(frozen=True)
class Schemas:
    """What names in a query may stand for.

    Parameters
    ----------
    streams, tables
        Columns and their types, as Spark names them, by name.
    functions
        The registered Python functions by name, and the name that Spark knows each by.
    timezone
        Of the session: text is compared with timestamps in it.

    """

    streams: Mapping[str, Mapping[str, str]]
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    timezone: str = "UTC"


@dataclass(frozen=True)
class Source:
    """A stream or table in FROM, as this query calls it."""

    name: str
    alias: str
    columns: Mapping[str, str]
    is_stream: bool


def find_sources(select: exp.Select, schemas: Schemas) -> list[Source]:
    """Return the one stream and the tables that stand in FROM."""
    from_ = select.args.get("from_")
    if from_ is None:
        raise QueryError("FROM is missing: name the stream that the query reads")
    tables = [from_.this]
    for join in select.args.get("joins") or []:
        kind = " ".join(part for part in (join.side, join.kind) if part)
        if kind not in ("", "CROSS", "INNER") or join.args.get("method"):
            raise QueryError(
                f"{join.args.get('method') or ''} {kind} JOIN is not supported; a continuous query "
                f"joins with static tables by equality (JOIN ... ON, or FROM a, b WHERE)".strip()
            )
        if join.args.get("using"):
            raise QueryError("JOIN ... USING is not supported; write JOIN ... ON a.x = b.x")
        tables.append(join.this)
    sources: list[Source] = []
    for table in tables:
        sources.append(_source(table, schemas))
        aliases = [source.alias.lower() for source in sources]
        if aliases.count(aliases[-1]) > 1:
            raise QueryError(f"{sources[-1].alias!r} stands twice in FROM; give one an alias")
    streams = [source.name for source in sources if source.is_stream]
    if len(streams) != 1:
        raise QueryError(
            f"a query reads one stream, this one reads {', '.join(streams) or 'none'}; "
            f"streams are {', '.join(schemas.streams) or 'none yet: register with engine.stream'}"
        )
    return sources


def _source(table: exp.Expression, schemas: Schemas) -> Source:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError(f"FROM takes names of streams and tables, not {table.sql(**SPARK)}")
    if table.args.get("pivots") or table.args.get("sample"):
        raise QueryError(f"{shortened(table.sql(**SPARK))} is not supported in FROM")
    written = ".".join(part.name for part in table.parts)
    for known, is_stream in ((schemas.streams, True), (schemas.tables, False)):
        for name, columns in known.items():
            if name.lower() == written.lower():
                return Source(name, table.alias or name, columns, is_stream)
    meant = _did_you_mean(written, [*schemas.streams, *schemas.tables])
    raise QueryError(
        f"no stream or table {written!r}{meant}; "
        f"streams are {', '.join(schemas.streams) or 'none'}, "
        f"tables {', '.join(schemas.tables) or 'none'}"
    )


def resolve_columns(select: exp.Select, sources: list[Source]) -> None:
    """Give every column its source, and the name it has there; upper and lower case are alike."""
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
        source, name, fields = _find(column, by_alias)
        resolved: exp.Expression = exp.column(
            exp.to_identifier(name, True), exp.to_identifier(source.alias, True)
        )
        for inner in fields:
            resolved = exp.Dot(this=resolved, expression=exp.to_identifier(inner, True))
        column.replace(resolved)


def _find(column: exp.Column, by_alias: Mapping[str, Source]) -> tuple[Source, str, list[str]]:
    """Return the source of a column, its name there, and the fields of a struct behind it."""
    parts = [part.name for part in column.parts]
    if len(parts) > 1 and parts[0].lower() in by_alias:
        candidates, parts = [by_alias[parts[0].lower()]], parts[1:]
    else:
        candidates = list(by_alias.values())
    found = [
        (source, name)
        for source in candidates
        for name in source.columns
        if name.lower() == parts[0].lower()
    ]
    if len(found) == 1:
        return found[0][0], found[0][1], parts[1:]
    if found:
        aliases = ", ".join(f"{source.alias}.{name}" for source, name in found)
        raise QueryError(f"column {parts[0]!r} is ambiguous; write one of {aliases}")
    known = {name for source in candidates for name in source.columns}
    has = "; ".join(f"{source.name} has {', '.join(source.columns)}" for source in candidates)
    raise QueryError(f"no column {parts[0]!r}{_did_you_mean(parts[0], known)}; {has}")


def rename_functions(select: exp.Select, schemas: Schemas) -> None:
    """Call registered functions by the names that Spark knows them by."""
    known = {name.lower(): for_spark for name, for_spark in schemas.functions.items()}
    for node in select.find_all(exp.Anonymous):
        node.set("this", known.get(str(node.this).lower(), node.this))


def registered(node: exp.Expression, schemas: Schemas) -> str | None:
    """Return the name of the registered function that is called here, if one is."""
    if not isinstance(node, exp.Anonymous):
        return None
    return next((n for n, for_spark in schemas.functions.items() if for_spark == node.this), None)


def _did_you_mean(written: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(written.lower(), [name.lower() for name in known], n=1)
    match = next((name for name in known if close and name.lower() == close[0]), None)
    return f" (did you mean {match!r}?)" if match else ""
