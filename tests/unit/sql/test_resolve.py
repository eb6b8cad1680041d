"""Step 2, resolve: every name gets its source."""

from __future__ import annotations

import pytest

from eddyline.errors import QueryError
from eddyline.sql.parse import parse
from eddyline.sql.resolve import ResolvedQuery, resolve
from tests.unit.sql.support import SCHEMAS, Case, cases, output, to_sql


def describe(query: ResolvedQuery) -> list[str]:
    lines = []
    for source in query.sources:
        window = f", window {source.window.size} {source.window.unit}" if source.window else ""
        kind = "stream" if source.is_stream else "table"
        lines.append(f"{kind}: {source.name} AS {source.alias}{window}")
    return [*lines, f"select: {to_sql(query.select)}"]


@cases(resolve)
def test_resolve(case: Case) -> None:
    assert output(case.sql, resolve, describe) == case.expected


def test_ambiguous_and_unknown_names_are_explained() -> None:
    with pytest.raises(QueryError, match=r"'room' is ambiguous; write one of light.room, r.room"):
        parse("SELECT room FROM light, rooms r WHERE light.room = r.room", SCHEMAS)
    with pytest.raises(QueryError, match="'x' does not stand in FROM"):
        parse("SELECT x.* FROM light", SCHEMAS)
