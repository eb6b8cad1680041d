"""Random queries whose conditions can fail on a row, with and without something that protects them.

Whether Spark answers such a query or raises depends on which rows it has and on the order in which
conditions are evaluated.
"""

from __future__ import annotations

import random
from typing import Any

SCHEMA = "id long, k string, v string, i int, a int, arr array<int>, m map<string,int>, d string"


def odd(value: int | float | None) -> bool:
    """Return whether a number is odd; raises on NULL."""
    return int(value) % 2 == 1  # type: ignore[arg-type]


def rows(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Return rows of `SCHEMA`; a value on which an expression fails mostly has a NULL beside it."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    def pick(good: list[Any], bad: list[Any]) -> Any:
        return maybe(rng.choice(bad if rng.random() < 0.06 else good))

    made = []
    for number in range(count):
        kind, v = pick(["num", "num", "x"], ["x"]), pick(["1", "7", "12"], ["abc", ""])
        arr, i = maybe([rng.randint(0, 9), 4]), pick([0, 1], [2, -1])
        a = pick([1, 3], [0, 2_147_483_647])
        m = pick([{"x": 5}, {}], [{"x": 0}])
        d = pick(["2024-01-31", "2019-05-05"], ["2024-02-30", "soon"])
        if v in ("abc", "") and rng.random() < 0.8:
            kind = rng.choice([None, "x"])
        made.append((number, kind, v, i, a, arr, m, d))
    return made


GUARDS = [
    "k = 'num'",
    "k <> 'x'",
    "v RLIKE '^[0-9]+$'",
    "v IN ('1', '7', '12')",
    "length(v) > 0",
    "a <> 0",
    "a > 0",
    "a < 100",
    "coalesce(a, 0) <> 0",
    "i >= 0",
    "i < size(arr)",
    "size(arr) > 0",
    "arr IS NOT NULL",
    "m IS NOT NULL",
    "size(m) > 0",
    "m['x'] <> 0",
    "d LIKE '20__-0%-31'",
    "d <> 'soon'",
    "try_cast(v AS INT) IS NOT NULL",
    "id % 3 <> 0",
]
FALLIBLE = [
    "CAST(v AS INT) > 5",
    "v > 5",
    "10 / a > 2",
    "10 % a = 1",
    "a + 1 > 2",
    "a * 2 < 10",
    "arr[i] > 3",
    "element_at(arr, i) > 3",
    "10 / m['x'] > 1",
    "to_date(d) > DATE '2020-01-01'",
    "CAST(d AS DATE) < DATE '2024-01-01'",
    "CASE WHEN a <> 0 THEN 10 / a ELSE 0 END > 2",
    "CASE WHEN k = 'num' THEN CAST(v AS INT) ELSE a END > 3",
    "CASE WHEN i >= 0 AND i < size(arr) THEN arr[i] END > 3",
    "if(k = 'num', CAST(v AS INT), 0) + a > 3",
    "coalesce(try_cast(v AS INT), 10 / a) > 3",
]
CALLS = ["odd(CAST(v AS INT))", "odd(10 / a)", "odd(a)", "odd(arr[i])", "NOT odd(a)"]


def condition(rng: random.Random) -> str:
    """Return guards and conditions that can fail, in any order; some within OR, NOT or CASE."""
    parts = rng.sample(GUARDS, rng.randint(0, 3)) + rng.sample(FALLIBLE, rng.randint(1, 2))
    if rng.random() < 0.25:
        parts.append(rng.choice(CALLS))
    if rng.random() < 0.7:  # as people write it; otherwise the guards may come too late
        parts.sort(key=lambda part: (part in CALLS, part in FALLIBLE))
    else:
        rng.shuffle(parts)
    joined = parts[0]
    for part in parts[1:]:
        kind = rng.random()
        if kind < 0.12:
            joined = f"({joined} OR {part})"
        elif kind < 0.2 and not any(call in joined + part for call in CALLS):
            joined = f"NOT ({joined} AND {part})"
        else:
            joined = f"{joined} AND {part}"
    return joined
