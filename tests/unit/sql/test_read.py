"""Step 1, read: SQL text to a SELECT tree and a window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.errors import QueryError
from eddyline.sql.parse import parse
from eddyline.sql.read import ReadQuery, read
from eddyline.sql.specs import Window
from tests.unit.sql.support import SCHEMAS, Case, cases, output, to_sql


def describe(query: ReadQuery) -> list[str]:
    of_query = query.windows.of_query
    window = f"{of_query.size} {of_query.unit}" if of_query else "none"
    return [f"select: {to_sql(query.select)}", f"window: {window}"]


@cases(read)
def test_read(case: Case) -> None:
    assert output(case.sql, read, describe) == case.expected


def test_an_empty_query_is_refused() -> None:
    expected = ["error: the query is empty; write SELECT ... FROM a stream"]
    assert output(" ; ", read, describe) == expected


@pytest.mark.parametrize(
    ("sql", "position"),
    [
        ("SELECT room FROM light WHERE (lux > ", "line 1, column 35"),
        ("SELECT room\nFROM light WHERE lux >", "line 2, column 22"),
        ("SELEC room FROM light", "line 1, column 15"),
    ],
)
def test_a_syntax_error_names_its_position(sql: str, position: str) -> None:
    with pytest.raises(QueryError, match=f"cannot read the SQL at {position}: .*, near '.*'"):
        parse(sql, SCHEMAS)


def test_windows_are_kept() -> None:
    assert parse("SELECT * FROM light WINDOW 30 seconds", SCHEMAS).window == Window(30, "seconds")
    assert parse("SELECT * FROM light WHERE lux > 1 WINDOW 5 ROWS;", SCHEMAS).window == Window(
        5, "rows"
    )


def test_double_quotes_enclose_names_where_the_session_says_so() -> None:
    text = """SELECT "lux" FROM light WHERE "room" = 'it''s' AND `is_on`"""
    query = parse(text, replace(SCHEMAS, double_quoted_identifiers=True))
    assert query.result == "SELECT `light`.`lux` FROM {rows} AS `light`"
    assert set(query.accepts) == {"room", "is_on"}
    as_text = parse(text.replace('WHERE "room"', "WHERE room"), SCHEMAS)
    assert as_text.result == "SELECT 'lux' FROM {rows} AS `light`"
