"""Random conditions and rows with NULL, for comparing the filters of a query with its condition."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

from eddyline.sql.schemas import Schemas
from tests.unit.sql.evaluator import Functions

SCHEMAS = Schemas(
    streams={
        "events": {
            "a": "int",
            "c": "int",
            "b": "double",
            "s": "string",
            "f": "boolean",
            "m": "decimal(10,2)",
            "d": "date",
        }
    },
    functions={"is_even": "is_even__1", "half": "half__1"},
)
FUNCTIONS: Functions = {
    "is_even": lambda a: None if a is None else a % 2 == 0,
    "half": lambda a: None if a is None else float(a) / 2,
}


_NATIVE = [
    "a {sign} {low}",
    "{low} {sign} a",
    "c {sign} {high}.5",
    "a {sign} c",
    "a + 1 {sign} c",
    "a BETWEEN {low} AND {high}",
    "a NOT BETWEEN {low} AND {high}",
    "c IN ({low}, {high}, NULL)",
    "c IN ({low}, {high})",
    "a NOT IN ({low}, {high})",
    "a NOT IN ({low}, NULL)",
    "{column} IS NULL",
    "{column} IS NOT NULL",
    "b {sign} {float}",
    "s {sign} '{text}'",
    "f",
    "NOT f",
    "f = {truth}",
    "m {sign} {decimal}",
    "d {sign} DATE '2024-01-0{day}'",
    "d {sign} '2024-01-0{day}'",
    "a {sign} NULL",
    "a BETWEEN {low} AND NULL",
    "NULL",
    "{truth}",
]
_PYTHON = [
    "is_even(a)",
    "NOT is_even(c + 1)",
    "half(a) {sign} 1",
    "{low} {sign} half(a)",
    "half(a) {sign} {decimal}",
    "half(a) {sign} NULL",
    "half(a) BETWEEN {low} AND {high}",
    "half(a) NOT BETWEEN 0 AND 1",
    "half(a) IN ({low}, {high})",
    "half(a) IN (0.5, NULL)",
    "half(a) NOT IN ({low}, {decimal})",
    "half(a) NOT IN (1, NULL)",
    "is_even(a) = {truth}",
    "{truth} <> is_even(a)",
    "is_even(a) IS {truth}",
    "is_even(a) IS NOT {truth}",
    "is_even(a) IS NULL",
    "is_even(a) IS NOT NULL",
]


def condition(rng: random.Random) -> str:
    """Return a condition that is small enough to normalise, or a larger one without functions.

    The pipeline refuses a Python function inside a disjunction that stays whole.
    """
    if rng.random() < 0.5:
        return _condition(rng, 2, _NATIVE + _PYTHON)
    return _condition(rng, 3, _NATIVE)


def _condition(rng: random.Random, depth: int, kinds: list[str]) -> str:
    if depth == 0 or rng.random() < 0.2:
        return _predicate(rng, kinds)
    joined = f" {rng.choice(['AND', 'OR'])} ".join(
        f"({_condition(rng, depth - 1, kinds)})" for _ in range(rng.randint(2, 3))
    )
    return f"NOT ({joined})" if rng.random() < 0.3 else joined


def _predicate(rng: random.Random, kinds: list[str]) -> str:
    return rng.choice(kinds).format(
        sign=rng.choice(["=", "<>", "<", "<=", ">", ">="]),
        low=rng.randint(-2, 3),
        high=rng.randint(2, 6),
        column=rng.choice("acbsfmd"),
        float=rng.choice(["0", "0.5", "-1.25", "1e1"]),
        decimal=rng.choice(["1", "0.5", "-1.255"]),
        text=rng.choice(["", "a", "ab", "é"]),
        truth=rng.choice(["true", "false"]),
        day=rng.randint(1, 4),
    )


def row(rng: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "a": rng.randint(-3, 7),
        "c": rng.randint(-3, 7),
        "b": rng.choice([math.nan, math.inf, -0.0, 0.5, -1.25, 10.0, rng.uniform(-3, 3)]),
        "s": rng.choice(["", "a", "ab", "b", "é", "z"]),
        "f": rng.random() < 0.5,
        "m": Decimal(rng.randint(-300, 300)) / 100,
        "d": datetime.date(2024, 1, rng.randint(1, 5)),
    }
    return {name: None if rng.random() < 0.2 else value for name, value in values.items()}
