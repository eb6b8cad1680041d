"""SQL text to `Query`, in steps that each do one thing; an error names the place and the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from eddyline.errors import QueryError
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import COMPARISON_SIGNS, MIRRORED, ColumnTypes, to_constant, to_values
from eddyline.sql.dialect import SPARK, Verbatim
from eddyline.sql.normal_form import to_clauses
from eddyline.sql.query import LookupSpec, PredicateSpec, Query, Window
from eddyline.sql.standing import Clause

LITERALS_MAX = 256
#: How the conditions of a query call the stream it reads.
STREAM = "_stream"
#: How its result calls the matching rows, and what stands before the names of static tables.
ROWS, TABLE = "rows", "table_"

_WINDOW = re.compile(
    r"\s+WINDOW\s+(\d+)\s+(SECOND|MINUTE|HOUR|ROW)S?\s*;?\s*$", re.IGNORECASE | re.DOTALL
)
_UNSUPPORTED = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "a named WINDOW",
    "laterals": "LATERAL VIEW",
    "qualify": "QUALIFY",
    "pivots": "PIVOT",
}
_CHANGING = frozenset(
    "rand randn random uuid shuffle now current_timestamp current_date curdate localtimestamp "
    "unix_timestamp monotonically_increasing_id input_file_name spark_partition_id "
    "current_time currenttimestamp currentdate localtime".split()
)


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
class _Source:
    """A stream or table in FROM, as this query calls it."""

    name: str
    alias: str
    columns: Mapping[str, str]
    is_stream: bool


def parse(text: str, schemas: Schemas) -> Query:
    """Take a query apart.

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
    body, window = split_window(text)
    select = _read(body)
    _refuse_unsupported(select)
    sources = _sources(select, schemas)
    written = _with_placeholders(body, select, sources, schemas)
    _resolve_columns(select, sources)
    _rename_functions(select, schemas)
    return replace(_take_apart(text, select, sources, schemas, window), written=written)


def split_window(text: str) -> tuple[str, Window | None]:
    """Return the query without its window, and the window.

    Examples
    --------
    >>> split_window("SELECT a FROM s WINDOW 5 minutes")
    ('SELECT a FROM s', Window(size=5, unit='minutes'))

    """
    found = _WINDOW.search(text)
    if found is None:
        return text.strip().rstrip(";"), None
    if int(found[1]) == 0:
        raise QueryError("a window of 0 has no rows in it; give it a size of at least 1")
    return text[: found.start()].strip(), Window(int(found[1]), found[2].lower() + "s")


def _read(body: str) -> exp.Select:
    if not body:
        raise QueryError("the query is empty; write SELECT ... FROM a stream")
    try:
        parsed = sqlglot.parse(body, dialect=Verbatim)
    except (ParseError, TokenError) as error:
        raise QueryError(_where_it_failed(error)) from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        what = parsed[0].key.upper() if len(parsed) == 1 and parsed[0] else "several statements"
        raise QueryError(f"expected one SELECT, not {what}: {_shortened(body)}")
    return parsed[0]


def _where_it_failed(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"cannot read the SQL: {error}"
    first = details[0]
    said = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", first["description"])
    near = f"{first['start_context'][-30:]}{first['highlight']}{first['end_context'][:20]}"
    return (
        f"cannot read the SQL at line {first['line']}, column {first['col']}: {said}, near "
        f"{near.strip()!r}"
    )


def _refuse_unsupported(select: exp.Select) -> None:
    for key, name in _UNSUPPORTED.items():
        if select.args.get(key):
            raise QueryError(
                f"{name} is not supported in a continuous query: every row is judged by itself; "
                f"do it on run.results(...)"
            )
    for node in select.walk():
        if isinstance(node, exp.Subquery | exp.Exists | exp.Union) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            raise QueryError(
                f"a query inside a query is not supported: {_shortened(node.sql(**SPARK))}; "
                f"register its result with engine.table(...) and join it"
            )
        if isinstance(node, exp.Func) and _function_name(node).lower() in _CHANGING:
            raise QueryError(
                f"{_function_name(node).lower()}() gives another answer each time, so results "
                f"could not be told apart from chance; add it as a column of the stream"
            )


def _sources(select: exp.Select, schemas: Schemas) -> list[_Source]:
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
    sources: list[_Source] = []
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


def _source(table: exp.Expression, schemas: Schemas) -> _Source:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError(f"FROM takes names of streams and tables, not {table.sql(**SPARK)}")
    if table.args.get("pivots") or table.args.get("sample"):
        raise QueryError(f"{_shortened(table.sql(**SPARK))} is not supported in FROM")
    written = ".".join(part.name for part in table.parts)
    for known, is_stream in ((schemas.streams, True), (schemas.tables, False)):
        for name, columns in known.items():
            if name.lower() == written.lower():
                return _Source(name, table.alias or name, columns, is_stream)
    meant = _did_you_mean(written, [*schemas.streams, *schemas.tables])
    raise QueryError(
        f"no stream or table {written!r}{meant}; "
        f"streams are {', '.join(schemas.streams) or 'none'}, "
        f"tables {', '.join(schemas.tables) or 'none'}"
    )


def _resolve_columns(select: exp.Select, sources: list[_Source]) -> None:
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


def _find(column: exp.Column, by_alias: Mapping[str, _Source]) -> tuple[_Source, str, list[str]]:
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


def _take_apart(
    text: str,
    select: exp.Select,
    sources: list[_Source],
    schemas: Schemas,
    window: Window | None,
) -> Query:
    (stream,) = [source for source in sources if source.is_stream]
    conjuncts = _conjuncts(select)
    own = [part for part in conjuncts if _sources_of(part) <= {stream.alias}]
    others = [part for part in conjuncts if not _sources_of(part) <= {stream.alias}]
    _check_joined(sources, stream, others)
    columns = ColumnTypes(stream.columns, schemas.timezone)
    accepts: dict[str, ValueSet] = {}
    clauses: list[Clause] = []
    required: dict[str, None] = {}
    predicates: dict[str, PredicateSpec] = {}
    conditions: list[str] = []
    for part in own:
        is_spark_s = not _calls_functions(part, schemas)
        if is_spark_s:
            conditions.append(_of_stream(part).sql(**SPARK))
        for literals in to_clauses(_of_stream(part), LITERALS_MAX):
            if not is_spark_s and not any(_calls_functions(n, schemas) for n in literals):
                conditions.append(" OR ".join(f"({n.sql(**SPARK)})" for n in literals))
            clause = _clause(literals, columns, schemas, predicates)
            if len(clause.accepts) == 1 and not clause.needs:
                ((column, values),) = clause.accepts.items()
                accepts[column] = accepts[column] & values if column in accepts else values
            elif len(clause.needs) == 1 and not clause.accepts:
                required[clause.needs[0]] = None
            else:
                clauses.append(clause)
    tables = [source for source in sources if not source.is_stream]
    return Query(
        text,
        stream.name,
        accepts,
        tuple(clauses),
        tuple(predicates.values()),
        tuple(required),
        tuple(_lookups(stream, tables, others)),
        _columns_of_result(select, stream, others),
        _result_sql(select, sources, others),
        tuple(table.name for table in tables),
        window,
        all(_is_plain(item, stream) for item in select.expressions) and not tables,
        tuple(sorted({n for node in select.walk() for n in [_registered(node, schemas)] if n})),
        tuple(conditions),
        understood=_understood(select, sources),
    )


def _conjuncts(select: exp.Select) -> list[exp.Expression]:
    conditions = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    where = select.args.get("where")
    if where is not None:
        conditions.append(where.this)
    return [part for condition in conditions for part in _flat(condition)]


def _flat(condition: exp.Expression) -> list[exp.Expression]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*_flat(condition.left), *_flat(condition.right)]
    return [condition]


def _sources_of(node: exp.Expression) -> set[str]:
    return {column.table for column in node.find_all(exp.Column)}


def _check_joined(sources: list[_Source], stream: _Source, others: list[exp.Expression]) -> None:
    """Refuse a table that nothing equates with the stream, or with a table that is joined."""
    joined = {stream.alias}
    waiting = {source.alias for source in sources} - joined
    equalities = [_sources_of(part) for part in others if isinstance(part, exp.EQ)]
    while linked := {a for a in waiting for e in equalities if a in e and e & joined}:
        joined |= linked
        waiting -= linked
    if waiting:
        raise QueryError(
            f"nothing joins {', '.join(sorted(waiting))} with the rest; add an equality, for "
            f"example {stream.alias}.x = {min(waiting)}.x"
        )


def _clause(
    literals: list[exp.Expression],
    columns: ColumnTypes,
    schemas: Schemas,
    predicates: dict[str, PredicateSpec],
) -> Clause:
    accepts: dict[str, ValueSet] = {}
    needs: dict[str, None] = {}
    for literal in literals:
        values = to_values(literal, columns)
        if values is not None:
            column, own = values
            accepts[column] = accepts[column] | own if column in accepts else own
        else:
            spec = _predicate(literal, schemas)
            predicates[spec.key] = spec
            needs[spec.key] = None
    return Clause(accepts, tuple(needs))


def _predicate(literal: exp.Expression, schemas: Schemas) -> PredicateSpec:
    """Return a predicate to share: a call of one Python function, or Spark's to evaluate."""
    text = literal.sql(**SPARK)
    call, comparison, constant = literal, "", None
    if isinstance(literal, exp.Not):
        call, comparison = literal.this.unnest(), "not"
    elif type(literal) in COMPARISON_SIGNS:
        call, other = literal.this.unnest(), literal.expression.unnest()
        comparison = COMPARISON_SIGNS[type(literal)]
        if _registered(call, schemas) is None:
            call, other, comparison = other, call, MIRRORED[comparison]
        constant = to_constant(other)
        if constant is None:  # compared with something else
            call = literal
    name = _registered(call, schemas)
    inside = call.expressions if name else [literal]
    if any(_calls_functions(part, schemas) for part in inside):
        raise QueryError(
            f"{_shortened(text)}: call a Python function by itself, f(x) or NOT f(x), or compare "
            f"its answer with a constant, f(x) > 0.5; it may not stand within another expression"
        )
    if name is None:
        return PredicateSpec(text, text)
    arguments = tuple(argument.sql(**SPARK) for argument in call.expressions)
    return PredicateSpec(text, "", name, arguments, comparison, constant)


def _with_placeholders(
    body: str, select: exp.Select, sources: list[_Source], schemas: Schemas
) -> str:
    """Return the query as it was written, but for the names of streams, tables and functions."""
    known = {name.lower(): for_spark for name, for_spark in schemas.functions.items()}
    tables = [select.args["from_"].this, *[j.this for j in select.args.get("joins") or []]]
    changes = []
    for table, source in zip(tables, sources, strict=True):
        alias = "" if table.alias else f" AS `{source.alias}`"
        changes.append((table.this.meta, f"{{{_placeholder(source)}}}{alias}"))
    changes += [
        (call.meta, known[str(call.this).lower()])
        for call in select.find_all(exp.Anonymous)
        if str(call.this).lower() in known
    ]
    text, at = "", 0
    for meta, name in sorted(changes, key=lambda change: int(change[0]["start"])):
        text += _escaped(body[at : meta["start"]]) + name
        at = meta["end"] + 1
    return text + _escaped(body[at:])


def _understood(select: exp.Select, sources: list[_Source]) -> str:
    """Return the whole query as it was understood; it must mean to Spark what was written."""
    copied = select.copy()
    tables = [copied.args["from_"].this, *[j.this for j in copied.args.get("joins") or []]]
    for number, (table, source) in enumerate(zip(tables, sources, strict=True)):
        table.set("this", exp.to_identifier(f"_source_{number}_"))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(source.alias, True)))
    text = _escaped(copied.sql(**SPARK))
    for number, source in enumerate(sources):
        text = text.replace(f"_source_{number}_", f"{{{_placeholder(source)}}}")
    return text


def _placeholder(source: _Source) -> str:
    return ROWS if source.is_stream else TABLE + source.name


def _rename_functions(select: exp.Select, schemas: Schemas) -> None:
    """Call registered functions by the names that Spark knows them by."""
    known = {name.lower(): for_spark for name, for_spark in schemas.functions.items()}
    for node in select.find_all(exp.Anonymous):
        node.set("this", known.get(str(node.this).lower(), node.this))


def _registered(node: exp.Expression, schemas: Schemas) -> str | None:
    """Return the name of the registered function that is called here, if one is."""
    if not isinstance(node, exp.Anonymous):
        return None
    return next((n for n, for_spark in schemas.functions.items() if for_spark == node.this), None)


def _calls_functions(node: exp.Expression, schemas: Schemas) -> bool:
    return any(_registered(inner, schemas) for inner in node.walk())


def _lookups(
    stream: _Source, tables: list[_Source], others: list[exp.Expression]
) -> list[LookupSpec]:
    """Return, for each table, which rows of the stream can have a partner in it."""
    lookups = []
    for table in tables:
        columns, keys = [], []
        for part in others:
            sides = (part.left.unnest(), part.right.unnest()) if isinstance(part, exp.EQ) else ()
            for mine, other in (sides, sides[::-1]) if sides else ():
                if (
                    isinstance(mine, exp.Column)
                    and mine.table == stream.alias
                    and isinstance(other, exp.Column)
                    and other.table == table.alias
                ):
                    columns.append(mine.name)
                    keys.append(other.name)
        if not keys:
            continue
        own = [_unqualified(p).sql(**SPARK) for p in others if _sources_of(p) == {table.alias}]
        condition = " AND ".join(f"({part})" for part in own)
        key = f"{table.name}({', '.join(keys)}) = ({', '.join(columns)})"
        key += f" where {condition}" if condition else ""
        lookups.append(LookupSpec(key, table.name, tuple(columns), tuple(keys), condition))
    return lookups


def _columns_of_result(
    select: exp.Select, stream: _Source, others: list[exp.Expression]
) -> tuple[str, ...]:
    used = {
        column.name
        for part in [*select.expressions, *others]
        for column in part.find_all(exp.Column)
        if column.table == stream.alias and not isinstance(column.this, exp.Star)
    }
    stars = [s for item in select.expressions for s in item.find_all(exp.Star)]
    if any(
        not isinstance(star.parent, exp.Column) or star.parent.table == stream.alias
        for star in stars
    ):
        used |= set(stream.columns)
    # At least one: a result of constants needs as many rows as match.
    used = used or {next(iter(stream.columns))}
    return tuple(name for name in stream.columns if name in used)


def _result_sql(select: exp.Select, sources: list[_Source], others: list[exp.Expression]) -> str:
    items = ", ".join(_escaped(item.sql(**SPARK)) for item in select.expressions)
    tables = ", ".join(f"{{{_placeholder(source)}}} AS `{source.alias}`" for source in sources)
    where = " AND ".join(f"({_escaped(part.sql(**SPARK))})" for part in others)
    return f"SELECT {items} FROM {tables}" + (f" WHERE {where}" if where else "")


def _is_plain(item: exp.Expression, stream: _Source) -> bool:
    if isinstance(item, exp.Alias):
        item = item.this
    if isinstance(item, exp.Star):
        return True
    return isinstance(item, exp.Column) and item.table in (stream.alias, "")


def _unqualified(node: exp.Expression) -> exp.Expression:
    """Return a copy in which columns are named without their source."""
    copied = node.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", None)
    return copied


def _of_stream(node: exp.Expression) -> exp.Expression:
    """Return a copy in which columns are those of `STREAM`, whatever the query calls it."""
    copied = node.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", exp.to_identifier(STREAM, True))
    return copied


def _function_name(node: exp.Func) -> str:
    return str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()


def _escaped(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")


def _did_you_mean(written: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(written.lower(), [name.lower() for name in known], n=1)
    match = next((name for name in known if close and name.lower() == close[0]), None)
    return f" (did you mean {match!r}?)" if match else ""


def _shortened(sql: str, characters_max: int = 60) -> str:
    return sql if len(sql) <= characters_max else sql[: characters_max - 3] + "..."
