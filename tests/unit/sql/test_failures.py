"""Which native conditions can fail on some row: by syntax and types."""

from __future__ import annotations

import pytest

from eddyline.sql.failures import failure_reason, parse_condition
from eddyline.sql.source_filters import suits_source

TYPES = {
    "i": "int",
    "l": "bigint",
    "f": "double",
    "s": "string",
    "d": "date",
    "t": "timestamp",
    "b": "boolean",
    "m": "decimal(10,2)",
    "w": "decimal(20,4)",
    "xs": "array<int>",
    "st.x": "string",
}


def reason(condition: str, ansi: bool = True) -> str | None:
    def column_type(parts: tuple[str, ...]) -> str | None:
        return TYPES.get(".".join(parts))

    return failure_reason(parse_condition(condition, False), column_type, ansi)


@pytest.mark.parametrize(
    "condition",
    [
        "substring(sha2(concat_ws('-', 0, cast(l as string)), 512), 1, 2) "
        "< CASE WHEN i = 0 THEN '0d' ELSE 'e6' END",
        "s = 'a + b - c * d / e % f [g]'",
        "s rlike '[0-9]+' or not s like 'a%'",
        "cast(i as bigint) > 5 and cast(i as double) < 1.5",
        "try_cast(s as int) > 5",
        "try_add(i, 1) > 5",
        "i % 3 = 1 and l / 2 > 1",
        "f * 2.5D + f > 1",
        "d >= '2024-01-31' and t < '2024-01-31 12:00:00'",
        "i in (1, 2, 3) and l between 1 and 5",
        "upper(st.x) = 'A' and year(d) = 2024",
        "coalesce(s, 'x') <=> lower(s)",
        "m > 1.25 and i = 1.5",
        "length(regexp_replace(s, '[^A-Z]', '')) < 0.05D * length(s)",
        "regexp_extract(s, '(a)(b)', 2) = 'b'",
        "if(b, s, 'x') = 'y'",
        "i is null",
        "m * m - 5 > i and m + l > 1",
        "m / 2 > 3",
        "array_contains(xs, 1)",
        "date_trunc('month', t) > '2024-01-31'",
        "lpad(repeat(s, 20), 9, '-') > 'a'",
    ],
)
def test_harmless(condition: str) -> None:
    assert reason(condition) is None


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("i + 1 > 5", "an addition can overflow"),
        ("-i > 5", "a change of sign can overflow"),
        ("1 / i > 5", "by zero"),
        ("i % i = 0", "by zero"),
        ("w * w > 1", "decimals can overflow"),
        ("w / w > 1", "by zero"),
        ("m / 0 > 1", "by zero"),
        ("cast(s as int) > 5", "cast from string to int"),
        ("cast(l as int) > 5", "cast from bigint to int"),
        ("s > 5", "converts string to int"),
        ("s = d", "converts string to date"),
        ("d > '2024-02-30'", "may be no date"),
        ("i = 'five'", "may be no int"),
        ("xs[0] = 1", "an element may be missing"),
        ("element_at(xs, 1) = 1", "element_at is not known"),
        ("s rlike st.x", "an argument of rlike"),
        ("substring(s, l) = 'x'", "an argument of substring"),
        ("raise_error(s) is null", "raise_error is not known"),
        ("my_function(s)", "my_function is not known"),
        ("rand() < 0.5", "rand is not known"),
        ("i in (select 1)", "a subquery"),
        ("regexp_extract(s, 'a', 1) = 'b'", "may lack the group"),
        ("regexp_extract(s, '\\\\(a\\\\)', 1) = 'b'", "may lack the group"),
        ("regexp_replace(s, 'a', '$1') = 'b'", "group that the pattern lacks"),
        ("unknown > 1", "the type of unknown is not known"),
        ("case when b then i else s end = 1", "which can fail"),
        ("repeat(s, i) > 'a'", "an argument of repeat"),
        ("abs(i) > 1", "an argument of abs"),
        ("s", "its type is string"),
    ],
)
def test_what_can_fail_says_why(condition: str, why: str) -> None:
    found = reason(condition)
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    "condition", ["i + 1 > 5", "1 / i > 5", "cast(s as int) > 5", "s > 5", "xs[0] = 1", "-i > 1"]
)
def test_without_ansi_mode_these_give_null_instead_of_an_error(condition: str) -> None:
    assert reason(condition, ansi=True) is not None
    assert reason(condition, ansi=False) is None


@pytest.mark.parametrize(
    ("condition", "suits"),
    [
        ("i = 7", True),
        ("7 < i", True),
        ("i in (1, 2)", True),
        ("s is not null", True),
        ("s like 'a%'", True),
        ("not (i > 1 or s = 'x')", True),
        ("b", True),
        ("cast(i as bigint) = 7", True),
        ("i = l", False),
        ("upper(s) = 'A'", False),
        ("s like 'a%b%c'", False),
        ("s rlike 'a'", False),
        ("i in (select 1)", False),
    ],
)
def test_what_a_source_can_evaluate(condition: str, suits: bool) -> None:
    assert suits_source(parse_condition(condition, False)) is suits
