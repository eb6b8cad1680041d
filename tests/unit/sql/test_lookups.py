"""Step 6, lookups: equalities with static tables become semi-joins."""

from __future__ import annotations

from eddyline.operators.value_set import ValueSet
from eddyline.sql.join_graph import JoinedQuery
from eddyline.sql.lookups import lookups
from eddyline.sql.parse import parse
from tests.unit.sql.support import SCHEMAS, Case, cases, output


def describe(query: JoinedQuery) -> list[str]:
    return [
        f"{spec.table}: {', '.join(spec.columns)} = {', '.join(spec.keys)}"
        + (f" where {spec.condition}" if spec.condition else "")
        for spec in query.lookups[0]
    ]


@cases(lookups)
def test_lookups(case: Case) -> None:
    assert output(case.sql, lookups, describe) == case.expected


def test_equal_lookups_of_different_queries_have_equal_keys() -> None:
    first = parse("SELECT floor FROM light JOIN rooms ON light.room = rooms.room", SCHEMAS)
    second = parse("SELECT l.lux FROM light l, rooms r WHERE r.room = l.room", SCHEMAS)
    other = parse("SELECT l.lux FROM light l, rooms r WHERE r.room = l.room AND floor > 1", SCHEMAS)
    assert first.lookups == second.lookups
    assert first.lookups[0].key != other.lookups[0].key


def test_a_join_becomes_a_lookup_and_a_result() -> None:
    query = parse(
        "SELECT l.room, r.floor + 1 AS next FROM light l JOIN rooms r ON l.room = r.room "
        "WHERE r.floor > 2 AND lux > 1 AND lux > floor",
        SCHEMAS,
    )
    (lookup,) = query.lookups
    assert (lookup.table, lookup.columns, lookup.keys) == ("rooms", ("room",), ("room",))
    assert lookup.condition == "(`floor` > 2)"
    assert set(query.columns) == {"room", "lux"}
    assert "`l`.`lux` > `r`.`floor`" in query.result
    assert "FROM {rows} AS `l`, {table_rooms} AS `r`" in query.result
    assert query.accepts == {"lux": ValueSet((2,))}
