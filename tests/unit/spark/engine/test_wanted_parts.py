"""Joins whose rows the JVM can choose, without an eddy."""

from __future__ import annotations

import pytest

from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.wanted_parts import BITS_MAX, _to_bitmap, can_be_bits
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas(
    {name: {"k": "int", "v": "int", "s": "string"} for name in ("a", "b")},
    functions={"odd": "odd__1"},
)


def compiled(where: str, number: int = 0) -> CompiledQuery:
    query = parse(f"SELECT a.v FROM a, b WHERE a.k = b.k {where} WINDOW 5 SECONDS", SCHEMAS)
    assert query.join is not None
    parts = tuple(CompiledQuery(0, "q", part, "part") for part in query.join.parts)
    return CompiledQuery(
        number, "q", query, "stored", join=CompiledJoin(parts, (), (5, 5), (None, None), (), ())
    )


@pytest.mark.parametrize("where", ["", "AND a.v > 5 AND b.s = 'x'", "AND a.v IN (1, 2)"])
def test_comparisons_with_constants_need_no_eddy(where: str) -> None:
    assert can_be_bits([compiled(where)])


@pytest.mark.parametrize("where", ["AND odd(a.v)", "AND a.v + 1 > 5", "AND (a.v > 5 OR a.s = 'x')"])
def test_other_conditions_do(where: str) -> None:
    assert not can_be_bits([compiled(""), compiled(where)])


def test_queries_over_one_stream_do() -> None:
    query = parse("SELECT v FROM a", SCHEMAS)
    assert not can_be_bits([compiled(""), CompiledQuery(1, "q", query, "stored")])
    assert not can_be_bits([])


def test_a_bitmap_has_a_bit_for_each_role() -> None:
    assert can_be_bits([compiled("", number) for number in range(BITS_MAX)])
    assert not can_be_bits([compiled("", number) for number in range(BITS_MAX + 1)])


def test_the_bitmap_has_the_bits_of_the_conditions_that_hold() -> None:
    roles = [compiled(text).filters()[0] for text in ("", "AND a.v > 5", "", "AND a.s = 'x'")]
    stream = "`__eddyline_stream`"
    assert _to_bitmap(roles) == (
        f"5L | CASE WHEN ({stream}.`v` > 5) THEN 2L ELSE 0L END"
        f" | CASE WHEN ({stream}.`s` = 'x') THEN 8L ELSE 0L END"
    )
