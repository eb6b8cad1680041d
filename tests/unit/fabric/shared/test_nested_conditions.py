"""Nested AND, OR and NOT of comparisons, from SQL to matches, against evaluating each query."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.domain import Floating, Text, Whole
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas
from tests.unit.sql.evaluator import is_true, parse_condition

TYPES = {"a": "int", "b": "int", "c": "double", "d": "string"}
SCHEMAS = Schemas({"s": TYPES})
DOMAINS = {"a": Whole(), "b": Whole(), "c": Floating(), "d": Text()}
ARROW = {"a": pa.int32(), "b": pa.int32(), "c": pa.float64(), "d": pa.string()}
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
NUMBERS = st.integers(-2, 6)

COMPARISONS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from("ab"), SIGNS, NUMBERS),
    st.builds("c {} {}".format, SIGNS, st.sampled_from(["0.5", "-1.25", "3"])),
    st.builds("d {} '{}'".format, SIGNS, st.sampled_from(["", "a", "é"])),
    st.builds("{} IS {}NULL".format, st.sampled_from("abcd"), st.sampled_from(["", "NOT "])),
    st.builds("a BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
    st.builds("b NOT BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
    st.builds("b {}IN ({}, {})".format, st.sampled_from(["", "NOT "]), NUMBERS, NUMBERS),
    st.sampled_from(["a IN (1, NULL)", "a NOT IN (1, NULL)", "b > NULL", "NULL", "true", "false"]),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(({0} AND {1}) OR ({2} AND {3}))".format, inner, inner, inner, inner),
        st.builds("(({0} OR {1}) AND ({2} OR {3}))".format, inner, inner, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=8,
)
ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-3, 7),
        "b": st.none() | st.integers(-3, 7),
        "c": st.none() | st.sampled_from([math.nan, -1.25, -0.0, 0.5, 3.0, 4.0]),
        "d": st.none() | st.sampled_from(["", "a", "b", "é"]),
    }
)


def matches_of(eddy: SharedEddy, rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    columns = [pa.array([row[name] for row in rows], ARROW[name]) for name in TYPES]
    matches = eddy.run(Batch(columns, [ColumnReader(name) for name in TYPES]))
    return set(zip(matches.rows.tolist(), matches.numbers.tolist(), strict=True))


def make_eddy(texts: list[str]) -> SharedEddy:
    queries = [parse(f"SELECT a FROM s WHERE {text}", SCHEMAS) for text in texts]
    shared = {n: query.shared(n, is_stored=True) for n, query in enumerate(queries)}
    eddy = SharedEddy(DOMAINS, seed=0)
    for slot, query in shared.items():
        if slot % 2:
            eddy.add({slot: query})
    eddy.add({slot: query for slot, query in shared.items() if slot % 2 == 0})
    return eddy


def expected(texts: list[str], rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {
        (n, number)
        for number, text in enumerate(texts)
        for n, row in enumerate(rows)
        if is_true(parse_condition(text), row)
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(CONDITIONS, min_size=1, max_size=12), st.lists(ROWS, min_size=1, max_size=12))
def test_matches_equal_those_of_each_condition_alone(
    texts: list[str], rows: list[dict[str, Any]]
) -> None:
    queries = [parse(f"SELECT a FROM s WHERE {text}", SCHEMAS) for text in texts]
    compared = [text for text, query in zip(texts, queries, strict=True) if not query.predicates]
    eddy = make_eddy(compared)
    eddy.bind({name: n for n, name in enumerate(TYPES)}, {})
    assert matches_of(eddy, rows) == expected(compared, rows)


def test_hundreds_of_nested_conditions_while_queries_come_and_go() -> None:
    rng = random.Random(0)
    patterns = [
        "({} AND {}) OR ({} AND {})",
        "({} OR {}) AND ({} OR {})",
        "{} AND ({} OR ({} AND {}))",
        "({} AND {}) OR ({} AND {}) OR ({} AND {})",
        "NOT ({} AND ({} OR {}))",
        "({} AND ({} OR {})) OR NOT {}",
        "{} AND {} AND {}",
    ]

    def comparison() -> str:
        sign, number = rng.choice(["<", "<=", ">", ">=", "<>"]), rng.randint(-2, 6)
        return rng.choice([f"a {sign} {number}", f"b {sign} {number}", f"c {sign} {number}.5"])

    texts = [rng.choice(patterns).format(*[comparison() for _ in range(6)]) for _ in range(400)]
    eddy = make_eddy(texts)
    rows = [
        {
            "a": rng.choice([None, *range(-3, 8)]),
            "b": rng.choice([None, *range(-3, 8)]),
            "c": rng.choice([None, math.nan, -0.5, 1.5, 4.5]),
            "d": None,
        }
        for _ in range(60)
    ]
    eddy.bind({name: n for n, name in enumerate(TYPES)}, {})
    assert matches_of(eddy, rows) == expected(texts, rows)
    gone = set(rng.sample(range(400), 250))
    eddy.drop(gone)
    eddy.bind({name: n for n, name in enumerate(TYPES)}, {})
    left = {(row, number) for row, number in expected(texts, rows) if number not in gone}
    assert matches_of(eddy, rows) == left


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("(a > 1 AND b > 1) OR (c > 1 AND d > 'a')", (0, 2)),
        ("(a > 1 OR b > 1) AND (c > 1 OR d > 'a')", (2, 0)),
        ("(a > 1 AND (b > 1 OR c > 1)) OR NOT d > 'a'", (2, 0)),
        ("(a > 1 AND b > 1) OR c > 1", (2, 0)),
        ("(a > 1 AND b > 1 AND d > 'a') OR c > 1", (1, 1)),
        ("(a > 1 AND a < 5) OR b > 1", (1, 0)),
        ("(a > 1 AND b > 1) OR (a < 0 AND b < 0) OR (c > 1 AND d > 'a')", (0, 3)),
    ],
)
def test_a_nested_condition_takes_the_form_with_fewer_bits_a_row(
    text: str, bits: tuple[int, int]
) -> None:
    query = parse(f"SELECT a FROM s WHERE {text}", SCHEMAS)
    singles = sum(bool(clause.accepts) for clause in query.clauses)
    assert (singles, sum(len(clause.terms) for clause in query.clauses)) == bits
    assert not query.predicates
