"""Random queries over random rows, for comparing an engine with Spark SQL."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

SCHEMA = (
    "id long, a int, b double, s string, d date, ts timestamp, f boolean, m decimal(10,2), "
    "x float, n bigint"
)
ROOMS = "room string, floor int, name string"


def is_vowel(s: str | None) -> bool | None:
    """Return whether a text begins with a vowel: the Python function that queries call."""
    return None if s is None else s[:1] in "aeiou"


def rows(rng: random.Random, count: int, first_id: int) -> list[tuple[Any, ...]]:
    """Return rows of `SCHEMA` with NULL, NaN and values at the limits of their types."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return [
        (
            first_id + n,
            maybe(rng.randint(-5, 20)),
            maybe(rng.choice([math.nan, math.inf, -0.0, 0.5, rng.uniform(-3, 3)])),
            maybe(rng.choice(["", "a", "ab", "b", "e", "é", "zz"])),
            maybe(datetime.date(2024, 1, rng.randint(1, 28))),
            maybe(datetime.datetime(2024, 1, rng.randint(1, 28), rng.randint(0, 23))),
            maybe(rng.random() < 0.5),
            maybe(Decimal(rng.randint(-300, 300)) / 100),
            maybe(rng.choice([0.1, 0.5, math.nan, -2.0])),
            maybe(rng.choice([2**53 + 1, -(2**63), 2**63 - 1, rng.randint(-9, 9)])),
        )
        for n in range(count)
    ]


def predicate(rng: random.Random) -> str:
    """Return one predicate: value sets, native conditions and Python functions."""
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    day = f"2024-01-{rng.randint(1, 28):02}"
    return rng.choice(
        [
            f"a {sign} {rng.randint(-5, 20)}",
            f"{rng.randint(-5, 20)} {sign} a",
            f"a {sign} {rng.uniform(-5, 20):.1f}",
            f"a {sign} 1e1",
            f"b {sign} {rng.choice(['0.5', '0', '-1.25', '2'])}",
            f"s {sign} '{rng.choice(['', 'a', 'ab', 'b', 'é'])}'",
            f"d {sign} DATE '{day}'",
            f"d {sign} '{day}'",
            f"ts {sign} TIMESTAMP '{day} 12:00:00'",
            f"ts {sign} '{day}'",
            f"m {sign} {rng.uniform(-3, 3):.3f}",
            f"m {sign} {rng.randint(-3, 3)}",
            f"x {sign} {rng.choice(['0.1', '0', '1e-1'])}",
            f"n {sign} {rng.choice(['9007199254740992', '9007199254740993', '0', '1e18'])}",
            f"n {sign} -9223372036854775808",
            "f",
            "NOT f",
            "f = true",
            f"a BETWEEN {rng.randint(-5, 5)} AND {rng.randint(5, 20)}",
            f"a NOT BETWEEN {rng.randint(-5, 5)} AND {rng.randint(5, 20)}",
            f"a IN ({rng.randint(-5, 5)}, {rng.randint(5, 20)}, NULL)",
            f"a NOT IN ({rng.randint(-5, 5)}, {rng.randint(5, 20)})",
            "a NOT IN (1, NULL)",
            f"{rng.choice('abs')} IS NULL",
            f"{rng.choice('abs')} IS NOT NULL",
            "s LIKE 'a%'",
            "s NOT LIKE '%b'",
            f"a + 1 {sign} m",
            f"length(s) {sign} 1",
            "upper(s) = 'AB'",
            "s <=> NULL",
            "a <> 0 AND 10 / a > 2",
            "is_vowel(s)",
            "NOT is_vowel(s)",
            "coalesce(a, 7) > 6",
        ]
    )


def condition(rng: random.Random, depth: int = 2) -> str:
    """Return predicates joined by AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.3:
        return predicate(rng)
    parts = [condition(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    joined = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(f"({part})" for part in parts)
    return f"NOT ({joined})" if rng.random() < 0.2 else joined


def query(rng: random.Random, stream: str = "events") -> str:
    """Return a query over the stream; about a fifth join it with `rooms`."""
    if rng.random() < 0.2:
        return _join_query(rng, stream)
    items = rng.choice(["*", "id", "id, a * 2 AS twice", "upper(s) AS u, id", "e.id, e.b"])
    where = f" WHERE {condition(rng)}" if rng.random() < 0.95 else ""
    window = " WINDOW 5 MINUTES" if rng.random() < 0.15 else ""
    return f"SELECT {items} FROM {stream} e{where}{window}"


def _join_query(rng: random.Random, stream: str) -> str:
    items = rng.choice(["id, r.floor", "e.id, r.*", "id, concat(s, name) AS both"])
    where = f"({condition(rng)})" + rng.choice(["", " AND r.floor > 1"])
    return f"SELECT {items} FROM {stream} e JOIN rooms r ON e.s = r.room WHERE {where}"
