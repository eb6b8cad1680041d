"""Which conditions cost the same, by their syntax trees."""

from __future__ import annotations

import pytest

from eddyline.sql.failures import parse_condition
from eddyline.sql.likeness import cost_alike, least_cost_us


def alike(*conditions: str) -> bool:
    return cost_alike([parse_condition(condition, False) for condition in conditions])


def digest(number: object, bound: str = "'0d'") -> str:
    return f"substring(sha2(concat_ws('-', {number}, cast(id as string)), 512), 1, 2) < {bound}"


@pytest.mark.parametrize(
    "conditions",
    [
        (digest(0), digest(1)),
        (
            digest(0, "CASE WHEN c = 0 THEN 'a' ELSE 'b' END"),
            digest(7, "CASE WHEN c = 7 THEN 'x' ELSE 'y' END"),
        ),
        ("regexp_count(t, 'mark0') > 1", "regexp_count(t, 'mark1') > 5"),
        ("md5(t) between '1' and '2'", "md5(t) between '3' and '4'"),
        ("if(c = 1, '3', '4') < md5(t)", "if(c = 2, '3', '4') < md5(t)"),
    ],
)
def test_conditions_that_differ_in_harmless_constants_cost_the_same(conditions) -> None:
    assert alike(*conditions)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (digest(0), digest(10)),  # a longer text
        (digest(0), digest(1).replace("512", "256")),
        (digest(0), digest(1).replace("id", "other")),
        ("regexp_count(t, 'a') > 1", "regexp_count(t, 'b') > 1"),
        ("regexp_count(t, 'a{1}') > 1", "regexp_count(t, 'a{9}') > 1"),
        ("md5(repeat(t, 1)) > 'a'", "md5(repeat(t, 9)) > 'a'"),
        ("md5(t) > 'a'", "sha1(t) > 'a'"),
        ("md5(t) > 'a'", "md5(t) >= 'a'"),
    ],
)
def test_other_differences_may_change_the_cost(first: str, second: str) -> None:
    assert not alike(first, second)
    assert alike(first, first)


@pytest.mark.parametrize(
    "form",
    [
        "c = {} or md5(t) < '3'",
        "c = {} and md5(t) < '3'",
        "case when c = {} then md5(t) end < '3'",
        "case when c = {} then 'a' when md5(t) < '3' then 'b' end = 'b'",
        "case when c = {} then 'a' else md5(t) end = 'b'",
        "if(c = {}, md5(t), 'a') < '3'",
        "coalesce(a, md5(t)) < '{}'",
        "a in ('{}', md5(t))",
    ],
)
def test_a_call_that_only_some_rows_need_is_like_no_other(form: str) -> None:
    assert not alike(form.format(1), form.format(2))


def test_the_least_cost_grows_with_the_text() -> None:
    tree = parse_condition(digest(0), False)
    assert least_cost_us(tree, {}) < least_cost_us(tree, {"id": 1_000.0})
    assert least_cost_us(parse_condition("length(t) > 3 and a like 'x%'", False), {"t": 9.0}) == 0
