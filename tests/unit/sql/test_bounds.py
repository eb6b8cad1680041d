"""Comparisons across streams, taken apart into bounds."""

from __future__ import annotations

import pytest

from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas(
    {"a": {"x": "int", "ts": "timestamp"}, "b": {"x": "int", "ts": "timestamp"}},
    times={"a": "ts", "b": "ts"},
)


def bounds(condition: str) -> list[tuple[str, str, float, bool]]:
    query = parse(f"SELECT a.x FROM a, b WHERE {condition} WINDOW 5 SECONDS", SCHEMAS)
    assert query.join is not None
    names = "ab"
    return [
        (names[own.low.part], names[own.high.part], own.offset, own.nan_fits)
        for own in query.join.bounds
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.x < b.x", [("a", "b", 0, False)]),
        ("a.x >= b.x", [("b", "a", 0, False)]),
        ("a.x + 2 <= b.x - 3", [("a", "b", -5, False)]),
        ("a.x - b.x < 5", [("a", "b", 5, False)]),
        ("a.x - b.x > 5", [("b", "a", -5, True)]),
        ("5 < a.x - b.x", [("b", "a", -5, True)]),
        ("abs(a.x - b.x) < 5", [("a", "b", 5, False), ("b", "a", 5, False)]),
        ("5 >= abs(b.x - a.x)", [("b", "a", 5, False), ("a", "b", 5, False)]),
        ("NOT a.x > b.x", [("a", "b", 0, False)]),
        ("a.x - b.x = 5", [("a", "b", 5, False), ("b", "a", -5, False)]),
        ("-a.x > -b.x", [("a", "b", 0, False)]),
        ("a.x BETWEEN b.x AND b.x + 9", [("b", "a", 0, False), ("a", "b", 9, False)]),
        (
            "b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE",
            [("a", "b", 0, False), ("b", "a", 60e6, False)],
        ),
        ("a.x < b.x OR a.x > 7", []),
        ("a.x + b.x < 5", []),
        ("abs(a.x - b.x) > 5", []),
        ("a.x <> b.x", []),
        ("a.x * b.x < 5", []),
        ("abs(a.x - b.x) < abs(a.x)", []),
        ("abs(a.x) < b.x", [("a", "b", 0, False)]),
    ],
)
def test_bounds(condition: str, expected: list[tuple[str, str, float, bool]]) -> None:
    assert bounds(condition) == expected
