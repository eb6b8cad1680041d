"""Comparisons across streams, taken apart into bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas(
    {"a": {"x": "int", "ts": "timestamp"}, "b": {"x": "int", "ts": "timestamp"}},
    times={"a": "ts", "b": "ts"},
)


def bounds(condition: str, schemas: Schemas = SCHEMAS) -> list[tuple[str, str, float, bool]]:
    query = parse(f"SELECT a.x FROM a, b WHERE {condition} WINDOW 5 SECONDS", schemas)
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


def test_without_ansi_whole_numbers_may_begin_again_from_below() -> None:
    schemas = replace(SCHEMAS, ansi=False)
    assert bounds("a.x < b.x", schemas)
    assert not bounds("a.x - b.x < 5", schemas)
    assert not bounds("a.x < b.x + 5", schemas)
    assert not bounds("-a.x > -b.x", schemas)


DAY_US = 86_400 * 10**6


@pytest.mark.parametrize(
    ("zone", "kind", "unit", "bounded", "window_us"),
    [
        ("UTC", "timestamp", "DAY", True, DAY_US + 1),
        ("Europe/Berlin", "timestamp", "HOURS", True, DAY_US // 24 + 1),
        # A day may have 25 hours, and an hour of the clock may come twice.
        ("Europe/Berlin", "timestamp", "DAY", False, 2 * DAY_US + 1),
        ("Europe/Berlin", "timestamp_ntz", "HOURS", True, DAY_US + DAY_US // 24 + 1),
    ],
)
def test_days_on_which_clocks_are_changed(
    zone: str, kind: str, unit: str, bounded: bool, window_us: int
) -> None:
    columns = {"x": "int", "ts": kind}
    schemas = replace(SCHEMAS, streams={"a": columns, "b": columns}, timezone=zone)
    condition = f"b.ts <= a.ts + INTERVAL 1 {unit} AND b.ts >= a.ts"
    assert (len(bounds(condition, schemas)) == 2) == bounded
    query = parse(f"SELECT a.x FROM a, b WHERE {condition}", schemas)
    assert query.join is not None
    assert query.join.windows_us[0] == window_us
