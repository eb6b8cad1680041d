"""SQL text to `Query`, in steps that each do one thing; an error names the place and the fix."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.fabric.shared.query import Clause
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import COMPARISON_SIGNS, MIRRORED, ColumnTypes, to_constant, to_values
from eddyline.sql.dialect import SPARK
from eddyline.sql.names import (
    Schemas,
    Source,
    find_sources,
    registered,
    rename_functions,
    resolve_columns,
)
from eddyline.sql.normal_form import to_clauses
from eddyline.sql.query import LookupSpec, PredicateSpec, Query, Window
from eddyline.sql.reading import read_select, shortened, split_window

LITERALS_MAX = 256
#: How the conditions of a query call the stream it reads.
STREAM = "_stream"
#: How its result calls the matching rows, and what stands before the names of static tables.
ROWS, TABLE = "rows", "table_"


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
    select = read_select(body)
    sources = find_sources(select, schemas)
    written = _with_placeholders(body, select, sources, schemas)
    resolve_columns(select, sources)
    rename_functions(select, schemas)
    return replace(_take_apart(text, select, sources, schemas, window), written=written)


def _take_apart(
    text: str,
    select: exp.Select,
    sources: list[Source],
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
        tuple(sorted({n for node in select.walk() for n in [registered(node, schemas)] if n})),
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


def _check_joined(sources: list[Source], stream: Source, others: list[exp.Expression]) -> None:
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
        if registered(call, schemas) is None:
            call, other, comparison = other, call, MIRRORED[comparison]
        constant = to_constant(other)
        if constant is None:  # compared with something else
            call = literal
    name = registered(call, schemas)
    inside = call.expressions if name else [literal]
    if any(_calls_functions(part, schemas) for part in inside):
        raise QueryError(
            f"{shortened(text)}: call a Python function by itself, f(x) or NOT f(x), or compare "
            f"its answer with a constant, f(x) > 0.5; it may not stand within another expression"
        )
    if name is None:
        return PredicateSpec(text, text)
    arguments = tuple(argument.sql(**SPARK) for argument in call.expressions)
    return PredicateSpec(text, "", name, arguments, comparison, constant)


def _with_placeholders(
    body: str, select: exp.Select, sources: list[Source], schemas: Schemas
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


def _understood(select: exp.Select, sources: list[Source]) -> str:
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


def _placeholder(source: Source) -> str:
    return ROWS if source.is_stream else TABLE + source.name


def _calls_functions(node: exp.Expression, schemas: Schemas) -> bool:
    return any(registered(inner, schemas) for inner in node.walk())


def _lookups(
    stream: Source, tables: list[Source], others: list[exp.Expression]
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
    select: exp.Select, stream: Source, others: list[exp.Expression]
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


def _result_sql(select: exp.Select, sources: list[Source], others: list[exp.Expression]) -> str:
    items = ", ".join(_escaped(item.sql(**SPARK)) for item in select.expressions)
    tables = ", ".join(f"{{{_placeholder(source)}}} AS `{source.alias}`" for source in sources)
    where = " AND ".join(f"({_escaped(part.sql(**SPARK))})" for part in others)
    return f"SELECT {items} FROM {tables}" + (f" WHERE {where}" if where else "")


def _is_plain(item: exp.Expression, stream: Source) -> bool:
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


def shown(text: str) -> str:
    """Return a condition over `STREAM` as its author would write it.

    Examples
    --------
    >>> shown("`_stream`.`lux` > 500")
    '`lux` > 500'

    """
    return text.replace(f"`{STREAM}`.", "")


def _of_stream(node: exp.Expression) -> exp.Expression:
    """Return a copy in which columns are those of `STREAM`, whatever the query calls it."""
    copied = node.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", exp.to_identifier(STREAM, True))
    return copied


def _escaped(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")
