"""The names of columns and functions in the parts of a query."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.schemas import Schemas
from eddyline.sql.specs import Window

_RESOLVED = (exp.Column, exp.Star, exp.Anonymous, exp.Null, exp.Boolean)


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


class NameResolver:
    """Resolves the names in one query.

    Parameters
    ----------
    sources
        Items of FROM.
    schemas
        What the query may name.
    using
        For columns of USING, in lower case, the alias of the source that they are taken from.

    """

    def __init__(
        self, sources: Sequence[Source], schemas: Schemas, using: Mapping[str, str] | None = None
    ) -> None:
        self._using = using or {}
        self._by_alias = {source.alias.lower(): source for source in sources}
        self._schemas = schemas
        #: Registered functions that are called.
        self.functions: set[str] = set()
        self.has_constant_conditions = False

    def resolve(self, part: exp.Expression, lateral_aliases: Collection[str] | None) -> None:
        """Resolve the names in an item of SELECT, a join or WHERE, which is changed.

        Parameters
        ----------
        part
            The expression.
        lateral_aliases
            For an item of SELECT, the aliases of the items before it, in lower case; else None.

        """
        for node in [node for node in part.walk() if isinstance(node, _RESOLVED)]:
            if isinstance(node, exp.Column):
                if isinstance(node.this, exp.Star):
                    self._resolve_star(node)
                else:
                    self._resolve_column(node, lateral_aliases)
            elif isinstance(node, exp.Anonymous):
                self._rename_function(node)
            elif isinstance(node, exp.Star):
                if node.args.get("except_") or node.args.get("replace"):
                    raise QueryError("SELECT * EXCEPT is not supported; name the columns")
            elif isinstance(node, exp.Null):
                self.has_constant_conditions |= not isinstance(node.parent, exp.Is | exp.In)
            else:
                compared = isinstance(node.parent, exp.Is | exp.EQ | exp.NEQ)
                self.has_constant_conditions |= not compared

    def _resolve_column(self, column: exp.Column, lateral_aliases: Collection[str] | None) -> None:
        written_parts = [part.name for part in column.parts]
        candidates, parts = self._candidates(written_parts)
        is_alias = lateral_aliases and written_parts[0].lower() in lateral_aliases
        if is_alias and not _have_column(candidates, parts[0]):
            return  # Spark takes a column before an alias
        source, name = _find_column(parts[0], candidates)
        written = name if lateral_aliases is None else parts[0]
        column.replace(_path(source, [written, *parts[1:]]))

    def _resolve_star(self, column: exp.Column) -> None:
        """Resolve all columns of a source, or all fields of a struct."""
        parts = [part.name for part in column.parts[:-1]]
        if len(parts) == 1 and parts[0].lower() in self._by_alias:
            alias = self._by_alias[parts[0].lower()].alias
            column.set("table", exp.Identifier(this=alias, quoted=True))
            return
        candidates, parts = self._candidates(parts)
        if not _have_column(candidates, parts[0]):
            raise QueryError(f"{parts[0]!r} does not stand in FROM")
        source, name = _find_column(parts[0], candidates)
        column.replace(exp.Dot(this=_path(source, [name, *parts[1:]]), expression=exp.Star()))

    def _candidates(self, parts: list[str]) -> tuple[list[Source], list[str]]:
        """Return the sources that a name may belong to, and the name without its source."""
        sources = list(self._by_alias.values())
        if parts[0].lower() in self._using and parts[0].lower() not in self._by_alias:
            return [self._by_alias[self._using[parts[0].lower()].lower()]], parts
        if len(parts) > 1 and parts[0].lower() in self._by_alias:
            source = self._by_alias[parts[0].lower()]
            is_struct = _have_column(sources, parts[0]) and not _have_column([source], parts[1])
            if not is_struct:
                return [source], parts[1:]
        return sources, parts

    def _rename_function(self, call: exp.Anonymous) -> None:
        written = str(call.this).lower()
        for name, spark_name in self._schemas.functions.items():
            if name.lower() == written:
                if any(argument.is_star for argument in call.expressions):
                    raise QueryError(
                        f"{name}(*) is not supported; name the columns that the function is "
                        f"called with"
                    )
                self.functions.add(name)
                call.set("this", spark_name)


def _have_column(sources: Sequence[Source], written: str) -> bool:
    return any(name.lower() == written.lower() for source in sources for name in source.columns)


def _path(source: Source, parts: Sequence[str]) -> exp.Expression:
    """Return a column of a source, with the path of struct fields after it."""
    path: exp.Expression = exp.Column(
        this=exp.Identifier(this=parts[0], quoted=True),
        table=exp.Identifier(this=source.alias, quoted=True),
    )
    for field in parts[1:]:
        path = exp.Dot(this=path, expression=exp.Identifier(this=field, quoted=True))
    return path


def _find_column(written: str, candidates: Sequence[Source]) -> tuple[Source, str]:
    """Return the source of a column and its name there."""
    matches = [
        (source, name)
        for source in candidates
        for name in source.columns
        if name.lower() == written.lower()
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        choices = ", ".join(f"{source.alias}.{name}" for source, name in matches)
        raise QueryError(f"column {written!r} is ambiguous; write one of {choices}")
    names = {name for source in candidates for name in source.columns}
    has = "; ".join(f"{source.name} has {', '.join(source.columns)}" for source in candidates)
    raise QueryError(f"no column {written!r}{did_you_mean(written, names)}; {has}")


def did_you_mean(written: str, names: Collection[str]) -> str:
    """Return a suggestion for a name that is not known; empty if none is close.

    Examples
    --------
    >>> did_you_mean("luxx", ["room", "lux"])
    " (did you mean 'lux'?)"

    """
    close = difflib.get_close_matches(written.lower(), [name.lower() for name in names], n=1)
    match = next((name for name in names if close and name.lower() == close[0]), None)
    return f" (did you mean {match!r}?)" if match else ""
