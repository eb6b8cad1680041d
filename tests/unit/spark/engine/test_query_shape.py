"""Shapes of query texts: which texts share one, and which have none."""

from __future__ import annotations

import pytest

from eddyline.spark.engine.query_shape import CONSTANTS_MAX, QueryShape

HEAD = "SELECT a FROM s WHERE "

SHARING = [
    ("a > 5", "a > 123456789012345678"),
    ("a > -5", "a > -0"),
    ("a > 2.5", "a > 10.125"),
    ("b = 'x'", "b = '5'"),
    ("b = 'x'", "b = 'a IN (1, 2) OR a > 7'"),
    ("d > '2024-01-01'", "d > '1999-12-31'"),
    ("d > DATE'2024-01-01'", "d > DATE'1999-12-31'"),
    ("a IN (1)", "a IN (1,-2, 3,4)"),
    ("b not in ('x', 'y')", "b not in ('IN')"),
    ("`a 5` > 5", "`a 5` > 6"),
    ("a5 > 5", "a5 > 6"),
    ("substring(b, 1, 2) = 'x'", "substring(b, 3, 4) = 'y'"),
]
DIFFERENT = [
    ("a > 5", "a > -5"),
    ("a > 5", "a > 2.5"),
    ("a > 5", "a > '5'"),
    ("a > 5", "a >= 5"),
    ("a > 5", "b > 5"),
    ("a > 5", "a > 5 AND a > 5"),
    ("b = 'x' OR a > 5", "b = '' OR a > 5"),
    ("b = 'x'", "b = '2024-01-01'"),
    ("b = '2024-01-01'", "b = '2024-01-01 10:00:00'"),
    ("a IN (1, 2)", "a IN (1, 2.5)"),
    ("a IN (1, 2)", "a IN (1, NULL)"),
    ("a IN (1, NULL)", "a IN (1, 1)"),
    ("a IN (1, 2)", "a IN ('1', '2')"),
    ("b IN ('x')", "b IN ('x', '')"),
    ("`a 5` > 5", "`a 6` > 5"),
    ("a5 > 5", "a6 > 5"),
    ("a > 5 OR b = 'x'", "(a > 5 OR b = 'x')"),
]
WITHOUT = """
b = 'it''s'|b = 'a\\nb'|b = "x"|b = 'é'|b = '{x}'|a > 5 -- or 6|a > 5 /* or 6 */|a > 1e3|a > 5L
a > .5|a > 5.|a > 1234567890123456789|a > 0x1F|b = x'1F'|b = r'x'|a > 5BD|b = 'x|b = ''''|`a > 5
d > '2024-01-01' + INTERVAL 5 DAY|a > 5 WINDOW 5 ROWS|b = '__eddyline'|a > 1.2.3
"""


def shape(condition: str) -> QueryShape | None:
    return QueryShape.of(HEAD + condition)


@pytest.mark.parametrize(("one", "other"), SHARING)
def test_texts_that_differ_in_constants_of_a_kind_share_a_shape(one: str, other: str) -> None:
    first, second = shape(one), shape(other)
    assert first is not None
    assert second is not None
    assert first.key == second.key
    assert first.constants != second.constants
    assert first.with_constants(second.constants) == HEAD + other


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_more_do_not(one: str, other: str) -> None:
    first, second = shape(one), shape(other)
    assert first is not None
    assert second is not None
    assert first.key != second.key


@pytest.mark.parametrize("condition", WITHOUT.strip().replace("\n", "|").split("|"))
def test_a_text_with_unusual_constants_has_no_shape(condition: str) -> None:
    assert shape(condition) is None


def test_constants_in_select_are_part_of_the_shape() -> None:
    one = QueryShape.of("SELECT a + 5 AS b FROM s WHERE a > 5")
    other = QueryShape.of("SELECT a + 6 AS b FROM s WHERE a > 5")
    assert one is not None
    assert other is not None
    assert [each.written for each in one.constants] == ["5"]
    assert one.key != other.key


def test_a_long_list_is_one_constant_and_many_constants_are_no_shape() -> None:
    long = shape(f"a IN ({', '.join(map(str, range(1_000)))})")
    assert long is not None
    assert [len(each.literals) for each in long.constants] == [1_000]
    assert shape(" OR ".join(["a > 5"] * CONSTANTS_MAX)) is not None
    assert shape(" OR ".join(["a > 5"] * (CONSTANTS_MAX + 1))) is None


def test_probes_stand_nowhere_in_the_text() -> None:
    text = f"{HEAD}a > 70000 AND b = 'zq70002qz' AND d = '1987-03-05' AND a IN (70006, 70007)"
    found = QueryShape.of(text)
    assert found is not None
    probes = found.probes(text)
    literals = [literal for probe in probes for literal in probe.literals]
    assert not any(literal in text for literal in literals)
    assert len(set(literals)) == 5
    probed = QueryShape.of(found.with_constants(probes))
    assert probed is not None
    assert probed.key == found.key
    assert found.probes(text, kept=(1,))[1] == found.constants[1]
