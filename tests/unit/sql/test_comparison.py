"""Comparisons of columns with constants, as value sets."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import ColumnTypes, to_values
from tests.unit.sql.support import SCHEMAS

TYPES = ColumnTypes(
    {"a": "int", "b": "double", "s": "string", "f": "boolean", "m": "decimal(10,2)", "d": "date"}
)


@pytest.mark.parametrize(
    ("predicate", "column", "values"),
    [
        ("a > 5", "a", ValueSet((6,))),
        ("5 > a", "a", ValueSet((5,), below=True)),
        ("a >= -2.5", "a", ValueSet((-2,))),
        ("a <> 3", "a", ValueSet((3, 4), below=True)),
        ("NOT a = 3", "a", ValueSet((3, 4), below=True)),
        ("a = 2.5", "a", ValueSet()),
        ("a < 1e1", "a", ValueSet((10,), below=True)),
        ("a IN (1, 2, NULL)", "a", ValueSet((1, 3))),
        ("a NOT IN (1, 2)", "a", ValueSet((1, 3), below=True)),
        ("a NOT IN (1, NULL)", "a", ValueSet()),
        ("a IS NULL", "a", ValueSet(null=True)),
        ("a IS NOT NULL", "a", ValueSet(below=True)),
        ("NOT (a IS NOT NULL)", "a", ValueSet(null=True)),
        ("b >= 0.5", "b", ValueSet((0.5,))),
        ("s = 'x'", "s", ValueSet((b"x", b"x\x00"))),
        ("f", "f", ValueSet((1, 2))),
        ("NOT f", "f", ValueSet((1, 2), below=True)),
        ("f = false", "f", ValueSet((0, 1))),
        ("m < 1.005", "m", ValueSet((101,), below=True)),
        ("d >= DATE '1970-01-03'", "d", ValueSet((2,))),
    ],
)
def test_comparisons_become_value_sets(predicate: str, column: str, values: ValueSet) -> None:
    assert to_values(parse_one(predicate, dialect="spark"), TYPES) == (column, values)


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


@pytest.mark.parametrize("ansi", [True, False])
def test_texts_in_a_list_are_compared_as_texts_without_ansi(ansi: bool) -> None:
    types = ColumnTypes({"d": "date", "at": "timestamp", "s": "string"}, ansi=ansi)

    def is_value_set(predicate: str) -> bool:
        return to_values(parse_one(predicate, dialect="spark"), types) is not None

    assert is_value_set("d IN ('2024-01-05')") == ansi
    assert is_value_set("at NOT IN ('2024-01-05', NULL)") == ansi
    assert is_value_set("d = '2024-01-05'")
    assert is_value_set("s IN ('2024-01-05')")
    assert is_value_set("d IN (DATE '2024-01-05')")


def test_times_are_read_in_the_zone_of_the_session() -> None:
    def bound(zone: str) -> object:
        types = ColumnTypes({"at": "timestamp"}, zone)
        comparison = to_values(parse_one("at >= '2024-07-01 12:00:00'", dialect="spark"), types)
        return comparison and comparison[1].bounds[0]

    utc = bound("UTC")
    assert bound("Europe/Berlin") == utc - 2 * 3600 * 10**6
    assert bound("no such zone") is None


def test_an_hour_that_comes_twice_is_left_to_spark() -> None:
    types = ColumnTypes({"at": "timestamp"}, "Europe/Berlin")
    twice = parse_one("at >= '2024-10-27 02:30:00'", dialect="spark")
    assert to_values(twice, types) is None
