"""Step 7, assemble: the columns of each source, and the SQL of the result."""

from __future__ import annotations

from eddyline.sql.assemble import assemble
from eddyline.sql.parse import parse
from eddyline.sql.query import Query
from tests.unit.sql.support import SCHEMAS, Case, cases, output


def describe(query: Query) -> list[str]:
    return [
        *[f"needs {source.alias}: {', '.join(source.columns)}" for source in query.sources],
        *[f"calls {name}" for name in query.functions],
        *["plain"] * query.is_plain,
        f"result: {query.result}",
        f"written: {query.written}",
        f"understood: {query.understood}",
    ]


@cases(assemble)
def test_assemble(case: Case) -> None:
    assert output(case.sql, assemble, describe) == case.expected


def test_functions_and_texts_reach_spark_as_they_were_written() -> None:
    text = (
        "SELECT log10(lux), to_json(struct(*)) FROM light WHERE to_char(lux, '999') = 'it''s' "
        "AND date_trunc(room, at) > at AND room rlike '\\\\d{2}'"
    )
    query = parse(text, SCHEMAS)
    assert [spec.condition for spec in query.predicates] == [
        "to_char(`__eddyline_stream`.`lux`, '999') = 'it\\'s'",
        "date_trunc(`__eddyline_stream`.`room`, `__eddyline_stream`.`at`) > "
        "`__eddyline_stream`.`at`",
        "`__eddyline_stream`.`room` RLIKE '\\\\d{2}'",
    ]
    assert query.result.startswith("SELECT log10(`light`.`lux`), to_json(struct(*)) FROM {rows}")
    assert query.columns == ("room", "lux", "at", "is_on")
    assert "{{2}}" in query.written
    assert "FROM {rows} AS `light` WHERE" in query.written
