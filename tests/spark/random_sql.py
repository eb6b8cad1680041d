"""Random queries over random rows, for comparing an engine with Spark SQL."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

SCHEMA = (
    "id long, a int, b double, s string, d date, ts timestamp, f boolean, m decimal(10,2), "
    "x float, n bigint, `we``ird na.me` int, `it's` string"
)
ROOMS = "room string, floor int, name string"


def is_vowel(s: str | None) -> bool | None:
    """Return whether a text begins with a vowel: the Python function that queries call."""
    return None if s is None else s[:1] in "aeiou"


def width(s: str | None) -> int | None:
    """Return the length of a text: a Python function whose answer queries compare."""
    return None if s is None else len(s)


#: The Python functions that queries call, with the types of their answers.
FUNCTIONS = {"is_vowel": (is_vowel, "boolean"), "width": (width, "int")}


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
            maybe(rng.randint(-5, 20)),
            maybe(rng.choice(["a", "AB", "é", "it's"])),
        )
        for n in range(count)
    ]


def predicate(rng: random.Random, ansi: bool = True) -> str:
    """Return one predicate: value sets, native conditions and Python functions.

    Without `ansi`, also comparisons of texts with other types, which could fail under ANSI.
    """
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    day = f"2024-01-{rng.randint(1, 28):02}"
    low, high = rng.randint(-5, 5), rng.randint(5, 20)
    plain = [_plain(rng, sign, day) for _ in range(2)]
    kinds = [*plain, _called(rng, sign), _odd(rng, sign, low, high)]
    if not ansi:
        kinds.append(_text(rng, sign, day))
    return rng.choice(kinds)


def _plain(rng: random.Random, sign: str, day: str) -> str:
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
            f"a <> 0 AND {_quotient(rng)} > 2",
            "coalesce(a, 7) > 6",
        ]
    )


def _called(rng: random.Random, sign: str) -> str:
    """Return a test of a Python function's answer, also next to what could fail on a row."""
    return rng.choice(
        [
            "is_vowel(s)",
            "NOT is_vowel(s)",
            f"is_vowel(s) = {rng.choice(['true', 'false'])}",
            f"is_vowel(S) <> {rng.choice(['true', 'false'])}",
            f"is_vowel(s) IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL'])}",
            f"is_vowel(s) <=> {rng.choice(['true', 'NULL'])}",
            f"width(s) {sign} {rng.choice(['1', '0.5', '1e0', 'NULL'])}",
            f"WIDTH(s) IN ({rng.choice(['1', '1.0, 2.5', '1e0', '2, NULL', 'NULL'])})",
            f"width(s) NOT IN ({rng.choice(['1', '1.0, 2.5', '1e0', '2, NULL'])})",
            "width(s) BETWEEN 1 AND 1.5",
            "width(s) NOT BETWEEN 1 AND NULL",
            f"(a <> 0 AND {_quotient(rng)} > 2) OR is_vowel(s)",
            f"a = 0 OR {_quotient(rng)} > 2 OR width(s) = 1",
            f"a <> 0 AND ({_quotient(rng)} > 2 OR is_vowel(s))",
            f"a = 0 OR ({_quotient(rng)} > 2 AND is_vowel(s))",
        ]
    )


def _odd(rng: random.Random, sign: str, low: int, high: int) -> str:
    """Return a predicate in another letter case, with odd names, guards or constants."""
    return rng.choice(
        [
            f"A {sign} {low}",
            f"A + 0 {sign} {low}",
            f"E.A * 2 {sign} b",
            "LENGTH(S) > 1",
            f"`we``ird na.me` {sign} {high}",
            f"`WE``IRD NA.ME` + 1 {sign} a",
            f"`it's` {sign} 'it''s'",
            "upper(`it's`) = \"IT'S\"",
            f"CASE WHEN a <> 0 THEN {_quotient(rng)} > 2 ELSE f END",
            "CASE a WHEN 1 THEN f WHEN NULL THEN true END",
            f"if(a = 0, NULL, {_quotient(rng)} > 2)",
            f"a = 0 OR {_quotient(rng)} > 2",
            "NULL OR a > 3",
            "(f AND NULL) OR a < 3",
            f"a {sign} NULL",
            "a IN (NULL)",
            f"a BETWEEN NULL AND {high}",
            f"a NOT BETWEEN {low} AND NULL",
            f"{rng.choice(['TRUE', 'FALSE'])} AND a {sign} {low}",
            f"TRUE = (a {sign} {low})",
            "f IS NOT TRUE",
            "a <=> b",
            "NOT (a <=> NULL)",
        ]
    )


def _text(rng: random.Random, sign: str, day: str) -> str:
    """Return a comparison of a text with another type."""
    return rng.choice(
        [
            f"a {sign} '5'",
            f"a {sign} 'x'",
            "a IN ('1', '2', 'x')",
            "a NOT IN ('1', 'x')",
            f"d {sign} '2024-1-5'",
            f"d IN ('{day}', 'x')",
            f"ts IN ('{day}', '{day} 12:00:00')",
            f"ts {sign} '{day}'",
            f"s {sign} 5",
            "s IN (1, 2)",
            f"f {sign} 'true'",
            f"m {sign} '1.5'",
            f"b {sign} '0.5'",
            f"{_quotient(rng)} {sign} 2",
            "f = 1",
        ]
    )


def _quotient(rng: random.Random) -> str:
    """Return a division that fails where a is 0.

    Spark may compute an expression that occurs twice in a query before what protects it, so that
    it should not occur twice.
    """
    return f"{rng.randint(1, 9999)} / a"


def condition(rng: random.Random, depth: int = 2, ansi: bool = True) -> str:
    """Return predicates joined by AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.3:
        return predicate(rng, ansi)
    parts = [condition(rng, depth - 1, ansi) for _ in range(rng.randint(2, 3))]
    joined = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(f"({part})" for part in parts)
    return f"NOT ({joined})" if rng.random() < 0.2 else joined


def query(rng: random.Random, stream: str = "events") -> str:
    """Return a query over the stream; about a fifth join it with `rooms`."""
    if rng.random() < 0.2:
        return _join_query(rng, stream)
    items = rng.choice(
        [
            "*",
            "id",
            "id, a * 2 AS twice",
            "upper(s) AS u, id",
            "e.id, e.b",
            "ID, A + 1, `WE``ird na.me`",
            "id, a AS p, P + 1 AS q, p + q AS r",
            "id, NULL, TRUE AS t, width(s) AS w",
        ]
    )
    where = f" WHERE {condition(rng)}" if rng.random() < 0.95 else ""
    return f"SELECT {items} FROM {stream} e{where}"


def _join_query(rng: random.Random, stream: str) -> str:
    items = rng.choice(["id, r.floor", "e.id, r.*", "id, concat(s, name) AS both"])
    where = f"({condition(rng)})" + rng.choice(["", " AND r.floor > 1"])
    return f"SELECT {items} FROM {stream} e JOIN rooms r ON e.s = r.room WHERE {where}"
