"""Compiled queries: their numbers, and what their copies keep."""

from __future__ import annotations

import dataclasses

from eddyline.spark.engine.catalogue_entries import QueryEntry
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.state.join_plan import owner, part_number
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas({"s": {"a": "int"}, "t": {"a": "int"}})


def joined(number: int) -> CompiledQuery:
    query = parse("SELECT s.a FROM s, t WHERE s.a = t.a AND s.a > 3 WINDOW 5 SECONDS", SCHEMAS)
    assert query.join is not None
    parts = tuple(CompiledQuery(0, "q", part, "part") for part in query.join.parts)
    values = dict.fromkeys(field.name for field in dataclasses.fields(CompiledJoin))
    join = CompiledJoin(**{**values, "parts": parts})  # type: ignore[arg-type]
    return CompiledQuery(number, "q", query, "parquet", join=join)


def test_the_roles_of_a_join_have_numbers_that_lead_back_to_it() -> None:
    for number in (1, 17, 10**6):
        roles = joined(number).filters()
        assert [role.number for role in roles] == [part_number(number, n) for n in range(2)]
        assert {owner(role.number) for role in roles} == {number}
        assert all(role.is_part and role.name == "q" for role in roles)
        assert [role.shared().number for role in roles] == [role.number for role in roles]


def test_a_query_takes_its_number_from_the_catalogue_once_it_has_one() -> None:
    compiled = CompiledQuery(0, "q", parse("SELECT a FROM s", SCHEMAS), "count")
    compiled.enter(QueryEntry(7, "q", "SELECT a FROM s", "count", [(3, None)]))
    assert (compiled.number, compiled.shared().number) == (7, 7)


def test_a_copy_has_what_was_not_changed() -> None:
    before = CompiledQuery(3, "q", parse("SELECT a FROM s", SCHEMAS), "count", select_may_fail=True)
    after = before.changed(select_calls_python=True)
    assert (after.number, after.name, after.sink) == (3, "q", "count")
    assert (after.select_may_fail, after.select_calls_python) == (True, True)
    assert not before.select_calls_python
    assert after.query is before.query
