"""Step 4, group: value sets, shared predicates and clauses."""

from __future__ import annotations

import random

import pytest

from eddyline.errors import QueryError
from eddyline.operators.value_set import ValueSet
from eddyline.sql.group import GroupedQuery, group
from eddyline.sql.parse import parse
from eddyline.sql.specs import PredicateSpec
from tests.unit.sql import random_conditions
from tests.unit.sql.evaluator import is_true, parse_condition, passes
from tests.unit.sql.support import SCHEMAS, Case, cases, output, run_steps, to_sql


def describe(query: GroupedQuery) -> list[str]:
    (filters,) = query.row_filters
    required = [spec for spec in filters.predicates if spec.key in filters.required]
    alternatives = [spec for spec in filters.predicates if spec.key not in filters.required]
    return [
        *[f"accepts {column}: {intervals(values)}" for column, values in filters.accepts.items()],
        *[f"requires {describe_predicate(spec)}" for spec in required],
        *[f"predicate {describe_predicate(spec)}" for spec in alternatives],
        *[
            "clause: "
            + " OR ".join(
                [
                    *[f"{column} in {intervals(values)}" for column, values in c.accepts.items()],
                    *c.needs,
                ]
            )
            for c in filters.clauses
        ],
        *[f"condition: {text}" for text in filters.conditions],
        *[f"left: {to_sql(conjunct.condition)}" for conjunct in query.conjuncts],
    ]


def describe_predicate(spec: PredicateSpec) -> str:
    if spec.function is None:
        return f"native: {spec.condition}"
    test = f"{spec.comparison} {spec.constant}" if spec.constant is not None else spec.comparison
    return f"{spec.function}({', '.join(spec.arguments)}): {test or 'true'}"


def intervals(values: ValueSet) -> str:
    """Return a value set as half-open intervals: `[3, 5) [6, ...)`."""
    ends = [*["..."] * values.below, *values.bounds]
    ends += ["..."] * (len(ends) % 2)
    parts = [f"[{low}, {high})" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return " ".join(parts + ["NULL"] * values.null) or "nothing"


@cases(group)
def test_group(case: Case) -> None:
    assert output(case.sql, group, describe) == case.expected


def test_the_filters_keep_exactly_the_rows_for_which_the_condition_is_true() -> None:
    rng = random.Random(0)
    kept = 0
    for _ in range(150):
        text = random_conditions.condition(rng)
        sql = f"SELECT a FROM events WHERE {text}"
        (filters,) = run_steps(sql, group, random_conditions.SCHEMAS).row_filters
        condition = parse_condition(text)
        for _ in range(15):
            row = random_conditions.row(rng)
            is_kept = is_true(condition, row, random_conditions.FUNCTIONS)
            assert passes(filters, row, random_conditions.FUNCTIONS) == is_kept, (text, row)
            kept += is_kept
    assert 500 < kept < 1_750  # neither side is decided by one answer


def test_all_comparisons_of_a_column_become_one_set_of_values() -> None:
    query = parse("SELECT room FROM light WHERE lux >= 3 AND lux < 9 AND NOT lux = 5", SCHEMAS)
    assert query.accepts == {"lux": ValueSet((3, 5, 6, 9))}
    assert not query.clauses
    assert not query.predicates


def test_alternatives_over_one_column_are_values_too() -> None:
    query = parse("SELECT room FROM light WHERE lux < 3 OR lux IN (7, 8)", SCHEMAS)
    assert query.accepts == {"lux": ValueSet((3, 7, 9), below=True)}


def test_alternatives_over_several_columns_are_clauses() -> None:
    query = parse("SELECT room FROM light WHERE lux > 3 OR (is_on AND room = 'a')", SCHEMAS)
    assert [sorted(clause.accepts) for clause in query.clauses] == [
        ["is_on", "lux"],
        ["lux", "room"],
    ]


@pytest.mark.parametrize(("alternatives", "terms", "predicates"), [(16, 16, 0), (17, 0, 1)])
def test_up_to_sixteen_alternatives_are_compared_others_are_left_to_spark(
    alternatives: int, terms: int, predicates: int
) -> None:
    text = " OR ".join(f"(lux = {n} AND room = '{n}')" for n in range(alternatives))
    query = parse(f"SELECT room FROM light WHERE {text}", SCHEMAS)
    assert sum(len(clause.terms) for clause in query.clauses) == terms
    assert len(query.predicates) == predicates


def test_predicates_are_shared_whatever_the_query_calls_its_stream() -> None:
    first = parse("SELECT room FROM light WHERE length(room) > 3", SCHEMAS)
    second = parse("SELECT l.lux FROM light AS l WHERE length( l.ROOM ) > 3", SCHEMAS)
    assert first.required == second.required


def test_python_functions_are_distinguished_from_native_functions() -> None:
    query = parse(
        "SELECT room FROM light WHERE is_bright(lux + 1) AND NOT IS_BRIGHT(lux) "
        "AND 2 < is_bright(lux) AND length(room) > 1",
        SCHEMAS,
    )
    called, negated, compared, native = query.predicates
    assert (called.function, called.arguments) == ("is_bright", ("`__eddyline_stream`.`lux` + 1",))
    assert (negated.function, negated.comparison) == ("is_bright", "not")
    assert (compared.comparison, compared.constant) == (">", 2)
    assert native.function is None
    assert query.functions == ("is_bright",)
    assert query.conditions == ("length(`__eddyline_stream`.`room`) > 1",)


@pytest.mark.parametrize("predicate", ["is_bright(lux) + 1 > 2", "is_bright(is_bright(lux))"])
def test_a_python_function_within_an_expression_is_refused(predicate: str) -> None:
    with pytest.raises(QueryError, match="call a Python function by itself"):
        parse(f"SELECT room FROM light WHERE {predicate}", SCHEMAS)
