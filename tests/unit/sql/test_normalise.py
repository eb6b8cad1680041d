"""Step 3, normalise: ON and WHERE become conjuncts in conjunctive normal form."""

from __future__ import annotations

import random

import pytest
from sqlglot import parse_one

from eddyline.sql.normalise import LITERALS_MAX, NormalisedQuery, normalise, to_clauses
from tests.unit.sql.evaluator import is_true
from tests.unit.sql.support import Case, cases, output, run_steps, to_sql


def describe(query: NormalisedQuery) -> list[str]:
    return [
        f"{', '.join(sorted(conjunct.sources)) or 'no source'}: "
        + " AND ".join(f"({' OR '.join(map(to_sql, clause))})" for clause in conjunct.clauses)
        for conjunct in query.conjuncts
    ]


@cases(normalise)
def test_normalise(case: Case) -> None:
    assert output(case.sql, normalise, describe) == case.expected


def test_the_normal_form_is_true_exactly_when_the_condition_is() -> None:
    rng = random.Random(0)

    def condition(depth: int) -> str:
        if depth == 0:
            return rng.choice("abcd")
        joined = f" {rng.choice(['AND', 'OR'])} ".join(condition(depth - 1) for _ in range(2))
        return f"NOT ({joined})" if rng.random() < 0.4 else f"({joined})"

    for _ in range(60):
        parsed = parse_one(condition(3))
        clauses = [
            [parse_one(part.sql()) for part in clause]  # Spark evaluates the text, not the tree
            for clause in to_clauses(parsed, literals_max=rng.choice([4, 1_000]))
        ]
        for _ in range(20):
            row = {name: rng.choice([True, False, None]) for name in "abcd"}
            whole = all(any(is_true(part, row) for part in clause) for clause in clauses)
            assert whole == is_true(parsed, row)


def test_a_negation_that_stays_whole_keeps_its_brackets() -> None:
    ((whole,),) = to_clauses(parse_one("NOT (a AND b AND c)"), literals_max=2)
    assert whole.sql() == "NOT (a AND b) OR NOT c"


def test_a_condition_that_would_grow_too_large_stays_whole() -> None:
    text = " OR ".join(f"(a{n} = 1 AND b{n} = 2)" for n in range(12))
    clauses = to_clauses(parse_one(text), literals_max=64)
    assert sum(len(clause) for clause in clauses) <= 64


@pytest.mark.parametrize(("alternatives", "clauses"), [(5, 2**5), (6, 1)])
def test_the_size_of_a_conjunct_is_limited(alternatives: int, clauses: int) -> None:
    assert 5 * 2**5 <= LITERALS_MAX < 6 * 2**6
    text = " OR ".join(f"(lux = {n} AND room = '{n}')" for n in range(alternatives))
    (conjunct,) = run_steps(f"SELECT room FROM light WHERE {text}", normalise).conjuncts
    assert len(conjunct.clauses) == clauses


def test_beside_a_function_call_what_would_grow_too_large_stays_whole() -> None:
    text = " OR ".join(f"(lux = {n} AND room = '{n}')" for n in range(8))
    query = run_steps(f"SELECT room FROM light WHERE is_bright(lux) OR {text}", normalise)
    ((clause,),) = [conjunct.clauses for conjunct in query.conjuncts]
    assert [query.resolved.calls_function(part) for part in clause] == [True] + 8 * [False]
