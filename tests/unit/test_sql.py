"""Queries, taken apart."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp, parse_one

from eddyline.errors import QueryError
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import ColumnTypes, to_values
from eddyline.sql.names import Schemas
from eddyline.sql.normal_form import to_clauses
from eddyline.sql.parse import parse
from eddyline.sql.query import Window

SCHEMAS = Schemas(
    {"light": {"room": "string", "lux": "int", "at": "timestamp", "is_on": "boolean"}},
    {"rooms": {"room": "string", "floor": "int"}},
    {"is_bright": "is_bright__1"},
)


def test_all_comparisons_of_a_column_become_one_set_of_values() -> None:
    query = parse("SELECT room FROM light WHERE lux >= 3 AND lux < 9 AND NOT lux = 5", SCHEMAS)
    assert query.accepts == {"lux": ValueSet((3, 5, 6, 9))}
    assert not query.clauses
    assert not query.predicates


def test_alternatives_over_one_column_are_values_too() -> None:
    query = parse("SELECT room FROM light WHERE lux < 3 OR lux IN (7, 8)", SCHEMAS)
    assert query.accepts == {"lux": ValueSet((3, 7, 9), below=True)}


def test_alternatives_over_several_columns_are_clauses() -> None:
    query = parse("SELECT room FROM light WHERE lux > 3 OR (is_on AND room = 'a')", SCHEMAS)
    assert [sorted(clause.accepts) for clause in query.clauses] == [
        ["is_on", "lux"],
        ["lux", "room"],
    ]


def test_predicates_are_shared_whatever_the_query_calls_its_stream() -> None:
    first = parse("SELECT room FROM light WHERE length(room) > 3", SCHEMAS)
    second = parse("SELECT l.lux FROM light AS l WHERE length( l.ROOM ) > 3", SCHEMAS)
    assert first.required == second.required


def test_python_functions_are_told_from_spark_s() -> None:
    query = parse(
        "SELECT room FROM light WHERE is_bright(lux + 1) AND NOT IS_BRIGHT(lux) "
        "AND 2 < is_bright(lux) AND length(room) > 1",
        SCHEMAS,
    )
    called, negated, compared, spark_s = query.predicates
    assert (called.function, called.arguments) == ("is_bright", ("`_stream`.`lux` + 1",))
    assert (negated.function, negated.comparison) == ("is_bright", "not")
    assert (compared.comparison, compared.constant) == (">", 2)
    assert spark_s.function is None
    assert query.functions == ("is_bright",)
    assert query.conditions == ("length(`_stream`.`room`) > 1",)


@pytest.mark.parametrize("predicate", ["is_bright(lux) + 1 > 2", "is_bright(is_bright(lux))"])
def test_a_python_function_within_an_expression_is_refused(predicate: str) -> None:
    with pytest.raises(QueryError, match="call a Python function by itself"):
        parse(f"SELECT room FROM light WHERE {predicate}", SCHEMAS)


def test_functions_and_texts_reach_spark_as_they_were_written() -> None:
    text = (
        "SELECT log10(lux), to_json(struct(*)) FROM light WHERE to_char(lux, '999') = 'it''s' "
        "AND date_trunc(room, at) > at AND room rlike '\\\\d{2}'"
    )
    query = parse(text, SCHEMAS)
    assert [spec.condition for spec in query.predicates] == [
        "to_char(`_stream`.`lux`, '999') = 'it\\'s'",
        "date_trunc(`_stream`.`room`, `_stream`.`at`) > `_stream`.`at`",
        "`_stream`.`room` RLIKE '\\\\d{2}'",
    ]
    assert query.result.startswith("SELECT log10(`light`.`lux`), to_json(struct(*)) FROM {rows}")
    assert query.columns == ("room", "lux", "at", "is_on")
    assert "{{2}}" in query.written
    assert "FROM {rows} AS `light` WHERE" in query.written


def test_a_join_becomes_a_lookup_and_a_result() -> None:
    query = parse(
        "SELECT l.room, r.floor + 1 AS next FROM light l JOIN rooms r ON l.room = r.room "
        "WHERE r.floor > 2 AND lux > 1 AND lux > floor",
        SCHEMAS,
    )
    (lookup,) = query.lookups
    assert (lookup.table, lookup.columns, lookup.keys) == ("rooms", ("room",), ("room",))
    assert lookup.condition == "(`floor` > 2)"
    assert set(query.columns) == {"room", "lux"}
    assert "`l`.`lux` > `r`.`floor`" in query.result
    assert "FROM {rows} AS `l`, {table_rooms} AS `r`" in query.result
    assert query.accepts == {"lux": ValueSet((2,))}


def test_windows_are_kept() -> None:
    assert parse("SELECT * FROM light WINDOW 30 seconds", SCHEMAS).window == Window(30, "seconds")
    assert parse("SELECT * FROM light WHERE lux > 1 WINDOW 5 ROWS;", SCHEMAS).window == Window(
        5, "rows"
    )


@pytest.mark.parametrize(
    "predicate",
    [
        "room > 5",  # Spark casts the text
        "lux > '5'",
        "at > '2024-13-01'",
        "at > 'yesterday'",
        "at > DATE '1500-01-01'",
        "lux + 1 > 2",
        "lux <=> 3",
        "room = lux",
        "is_on = 1",
        "lux IN (1, room)",
    ],
)
def test_what_types_make_doubtful_is_left_to_spark(predicate: str) -> None:
    types = ColumnTypes(SCHEMAS.streams["light"])
    assert to_values(parse_one(predicate, dialect="spark"), types) is None


def test_times_are_read_in_the_zone_of_the_session() -> None:
    def bound(zone: str) -> object:
        types = ColumnTypes({"at": "timestamp"}, zone)
        found = to_values(parse_one("at >= '2024-07-01 12:00:00'", dialect="spark"), types)
        return found and found[1].bounds[0]

    utc = bound("UTC")
    assert bound("Europe/Berlin") == utc - 2 * 3600 * 10**6
    assert bound("no such zone") is None


def test_an_hour_that_comes_twice_is_left_to_spark() -> None:
    types = ColumnTypes({"at": "timestamp"}, "Europe/Berlin")
    twice = parse_one("at >= '2024-10-27 02:30:00'", dialect="spark")
    assert to_values(twice, types) is None


def truth(node: exp.Expression, values: dict[str, bool | None]) -> bool | None:
    node = node.unnest()
    if isinstance(node, exp.Not):
        inside = truth(node.this, values)
        return None if inside is None else not inside
    if isinstance(node, exp.And | exp.Or):
        sides = (truth(node.left, values), truth(node.right, values))
        decisive = isinstance(node, exp.Or)
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    return values[node.name]


def test_the_normal_form_is_true_exactly_when_the_condition_is() -> None:
    rng = random.Random(0)

    def condition(depth: int) -> str:
        if depth == 0:
            return rng.choice("abcd")
        joined = f" {rng.choice(['AND', 'OR'])} ".join(condition(depth - 1) for _ in range(2))
        return f"NOT ({joined})" if rng.random() < 0.4 else f"({joined})"

    for _ in range(60):
        parsed = parse_one(condition(3))
        clauses = to_clauses(parsed, literals_max=rng.choice([4, 1_000]))
        for _ in range(20):
            values = {name: rng.choice([True, False, None]) for name in "abcd"}
            whole = all(any(truth(p, values) is True for p in clause) for clause in clauses)
            assert whole == (truth(parsed, values) is True)


def test_a_condition_that_would_grow_too_large_stays_whole() -> None:
    text = " OR ".join(f"(a{n} = 1 AND b{n} = 2)" for n in range(12))
    clauses = to_clauses(parse_one(text), literals_max=64)
    assert sum(len(clause) for clause in clauses) <= 64


def test_ambiguous_and_unknown_names_are_explained() -> None:
    with pytest.raises(QueryError, match=r"'room' is ambiguous; write one of light.room, r.room"):
        parse("SELECT room FROM light, rooms r WHERE light.room = r.room", SCHEMAS)
    with pytest.raises(QueryError, match="'x' does not stand in FROM"):
        parse("SELECT x.* FROM light", SCHEMAS)
