"""Queries that programs write: deeply nested, very long."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from eddyline.errors import QueryError
from eddyline.sql.deep import with_deep_recursion
from eddyline.sql.parse import parse
from tests.unit.sql.support import SCHEMAS

AND, OR = " AND ", " OR "


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 50 + "lux > 1" + ")" * 50,
        "(" * 300 + "lux > 1" + ")" * 300,
        "NOT (" * 50 + "lux > 1" + ")" * 50,
        "abs(" * 50 + "lux" + ")" * 50 + " > 1",
        AND.join(f"lux <> {n}" for n in range(1_000)),
        OR.join(f"lux = {n}" for n in range(1_000)),
        OR.join(f"length(room) = {n}" for n in range(200)),
    ],
    ids=[
        "50 brackets",
        "300 brackets",
        "50 NOTs",
        "50 calls",
        "1,000 ANDs",
        "1,000 ORs",
        "200 ORs",
    ],
)
def test_nested_and_long_conditions_are_read(condition: str) -> None:
    parse(f"SELECT room FROM light WHERE {condition}", SCHEMAS)


def test_the_answer_is_right() -> None:
    long = AND.join(f"lux <> {n}" for n in range(1_000))
    values = parse(f"SELECT room FROM light WHERE {long}", SCHEMAS).accepts["lux"]
    assert [values.has(n) for n in (-1, 0, 999, 1_000)] == [True, False, False, True]


@pytest.mark.parametrize("items", ["numbers", "texts"])
def test_a_list_of_ten_thousand_is_read_in_a_second(items: str) -> None:
    column = "lux" if items == "numbers" else "room"
    written = [str(3 * n) if items == "numbers" else f"'t{n}'" for n in range(10_000)]
    began = time.process_time()
    query = parse(f"SELECT room FROM light WHERE {column} IN ({', '.join(written)})", SCHEMAS)
    assert time.process_time() - began < 1.0  # about 0.4 s here, alone
    assert len(query.accepts[column].bounds) == 20_000


def test_a_query_that_is_too_deep_even_so_is_refused() -> None:
    def endless() -> int:
        return endless() + 1

    limit, stack_bytes = sys.getrecursionlimit(), threading.stack_size()
    with pytest.raises(QueryError, match="nested too deeply"):
        with_deep_recursion(endless)
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, stack_bytes)


def test_errors_of_deep_queries_are_those_of_any_query() -> None:
    with pytest.raises(QueryError, match="no column 'luxx'"):
        parse(f"SELECT room FROM light WHERE {'(' * 100}luxx > 1{')' * 100}", SCHEMAS)
