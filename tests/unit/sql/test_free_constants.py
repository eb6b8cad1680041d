"""Constants that cannot change what Spark says of an expression, and those that can."""

from __future__ import annotations

import pytest

from eddyline.sql.free_constants import shape_without_free_constants
from eddyline.sql.meaning import has_unusual_constants, without_constants

FREE = {
    "`a` > 5": "`a` > 0",
    "5 < `a` + 7": "0 < `a` + 0",
    "`a` / 5 > -7": "`a` / 0 > -0",
    "(`a` - (3)) * `b` = 4.25": "(`a` - (0)) * `b` = 0.00",
    "`t` LIKE '%x%' OR NOT `t` RLIKE '^x'": "`t` LIKE '' OR NOT `t` RLIKE ''",
    "`a` % 5 IN (1, 2, 3)": "`a` % 0 IN (0, 0, 0)",
    "hour(`ts`) BETWEEN 6 AND 23": "hour(`ts`) BETWEEN 0 AND 0",
    "substring(`t`, 1, 3) = 'x'": "substring(`t`, 0, 0) = ''",
    "CASE WHEN `f` THEN `a` > 5 ELSE `a` < 3 END": "CASE WHEN `f` THEN `a` > 0 ELSE `a` < 0 END",
    "CAST(concat(`t`, '1') AS INT) > 5": "CAST(concat(`t`, '') AS INT) > 0",
    "replace(`t`, '/', '') = 'x'": "replace(`t`, '', '') = ''",
}
#: The constants that are not free stay.
FIXED = {
    "`a` > 5 / 0 + 1": "`a` > 5 / 0 + 1",
    "`a` + 5 + 7 > 3": "`a` + 5 + 7 > 0",
    "5 + (7 + `a`) > 3": "5 + (7 + `a`) > 0",
    "`a` - length('x') + 7 > 3": "`a` - length('x') + 7 > 0",
    "`a` > CAST('b' AS INT)": "`a` > CAST('b' AS INT)",
    "`a` > upper('b')": "`a` > upper('b')",
    "coalesce('b', `t`) = 5": "coalesce('b', `t`) = 0",
    "CASE WHEN `f` THEN 'x' ELSE 'x' END = 5": "CASE WHEN `f` THEN 'x' ELSE 'x' END = 0",
    "`t` LIKE 'a' ESCAPE 'b'": "`t` LIKE 'a' ESCAPE 'b'",
    "regexp_replace(`t`, 'a', 'b', 0) = 'x'": "regexp_replace(`t`, '', '', 0) = ''",
    "`d` > DATE'2024-13-45'": "`d` > DATE'2024-13-45'",
    "'x' LIKE 'y' AND `a` > 3": "'x' LIKE 'y' AND `a` > 0",
    "5 BETWEEN 3 AND `a`": "5 BETWEEN 3 AND `a`",
    "`arr`[5] > 3": "`arr`[5] > 0",
}
UNKNOWN = ["f(`a`) > 5", "round(`a`, 2) > 5", "`t` = 'it''s'", "`a` > 5000000000", "`t` = 'é' AND "]


@pytest.mark.parametrize("text", FREE)
def test_constants_that_nothing_is_computed_with_are_free(text: str) -> None:
    assert shape_without_free_constants(text) == FREE[text]


@pytest.mark.parametrize("text", FIXED)
def test_constants_that_spark_computes_with_or_checks_stay(text: str) -> None:
    assert shape_without_free_constants(text) == FIXED[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_cannot_be_judged_has_no_shape(text: str) -> None:
    assert shape_without_free_constants(text) is None


def test_what_stands_between_unusual_texts_is_not_taken_for_one() -> None:
    """The end of one such text and the beginning of the next look like a plain text."""
    one = "`t` = 'é' AND length(`t`) > 3 OR `t` = 'x'"
    assert without_constants(one) is None
    assert has_unusual_constants("`t` = 'a\tb' OR 1 / `a` > 2 OR `t` = 'x'")
    assert not has_unusual_constants("`it's` = '' OR `t` = 'x'")
