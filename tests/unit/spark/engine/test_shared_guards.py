"""Guards of conditions that queries share: true wherever one of the queries may match."""

from __future__ import annotations

import random
import re

import pytest

from eddyline.spark.engine.shared_guards import ALTERNATIVES_MAX, common_guards
from eddyline.sql.parse import parse
from eddyline.sql.query import Query
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas({"s": {"a": "int", "b": "int", "t": "string"}})


def query(where: str) -> Query:
    return parse(f"SELECT a FROM s WHERE {where}", SCHEMAS)


def guards_of(*conditions: str) -> list[str]:
    return [text.replace("`__eddyline_stream`.", "") for text in common_guards(shared(conditions))]


def shared(conditions: tuple[str, ...]) -> list[Query]:
    return [query(f"{condition} AND length(t) > 2") for condition in conditions]


@pytest.mark.parametrize(
    ("conditions", "guards"),
    [
        (("a > 5", "a > 3", "a > 9"), ["((`a` > 3))"]),
        (("a > 5 AND b = 1", "a < 2 AND b = 1"), ["((`a` > 5)) OR ((`a` < 2))", "((`b` = 1))"]),
        (("a > 5 AND a < 9", "a = 7"), ["((`a` > 5) AND (`a` < 9))"]),
        (("a > 5", "b > 5"), []),
        (("a > 5", "length(t) > 1"), []),
        (("a > 5", "(a > 5 OR b > 5)"), []),
    ],
)
def test_columns_that_all_queries_compare_guard(
    conditions: tuple[str, ...], guards: list[str]
) -> None:
    assert guards_of(*conditions) == guards


def test_many_queries_have_a_short_guard_or_none() -> None:
    assert guards_of(*[f"a > {n}" for n in range(1_000, 0, -1)]) == ["((`a` > 1))"]
    assert guards_of(*[f"a = {n}" for n in range(ALTERNATIVES_MAX + 1)]) == []


def test_an_alternative_to_the_condition_is_no_guard() -> None:
    """Here the comparison is not required: rows without it match as well."""
    either = query("(a > 5 OR length(t) > 2)")
    assert common_guards([either, query("a > 5 AND length(t) > 2")]) == []


def test_no_row_that_a_query_may_match_is_kept_from_the_condition() -> None:
    rng = random.Random(0)
    for _ in range(300):
        conditions = [random_condition(rng) for _ in range(rng.randint(1, 5))]
        guards = guards_of(*conditions)
        for a in range(-1, 11):
            for b in range(-1, 11):
                if any(holds(condition, a, b) for condition in conditions):
                    assert all(holds(guard, a, b) for guard in guards), (conditions, guards)


def random_condition(rng: random.Random) -> str:
    signs = ["<", "<=", ">", ">=", "=", "<>"]
    return " AND ".join(
        f"{rng.choice('ab')} {rng.choice(signs)} {rng.randint(0, 9)}"
        for _ in range(rng.randint(1, 3))
    )


def holds(condition: str, a: int, b: int) -> bool:
    python = re.sub(r"(?<![<>])=", "==", condition.replace("`", "").replace("<>", "!="))
    python = python.replace(" AND ", " and ").replace(" OR ", " or ").replace("!==", "!=")
    return bool(eval(python, {"a": a, "b": b}))
