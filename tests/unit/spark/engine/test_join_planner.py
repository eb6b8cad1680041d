"""What the plan of a micro-batch's joins takes over from stored rows."""

from __future__ import annotations

import pathlib

import pytest
from pyspark.sql.types import LongType, StructType

from eddyline.spark.engine.compiled_join import CompiledJoin, RoleField, RoleKey
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.join_planner import JoinPlanner
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import ListedParts
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.state_file import StateFile
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas


@pytest.mark.parametrize(("stored", "tasks"), [([], 2), ([3], 3)])
def test_stored_rows_keep_their_number_of_tasks(
    tmp_path: pathlib.Path, stored: list[int], tasks: int
) -> None:
    """With another number of cores, rows would go to other tasks than their partners."""
    state = JoinState(tmp_path)
    state.apply([StateFile("x", 0, 0, count, 9, 0, {}) for count in stored], ())
    planned = JoinPlanner([], tmp_path, tasks=2).plan(1, {}, {}, ListedParts("q"), state, {})
    assert planned.plan.tasks == planned.exchange.tasks == tasks


SCHEMA = StructType().add("k", "long").add("v", "long").add("ts", "timestamp")
SCHEMAS = Schemas({name: {"k": "bigint", "v": "bigint", "ts": "timestamp"} for name in "ab"})
STREAMS = [StreamInfo(n, name, SCHEMA, "UTC", "ts") for n, name in enumerate("ab")]


def compiled(
    number: int, sql: str, keys: tuple[str, ...], fields: tuple[str, ...]
) -> CompiledQuery:
    """Return a query whose streams are equal in one key each."""
    query = parse(f"{sql} WINDOW 5 SECONDS", SCHEMAS)
    assert query.join is not None
    parts = tuple(CompiledQuery(0, "q", part, "part") for part in query.join.parts)
    equal = frozenset(RoleKey(n, JoinKey(key, LongType())) for n, key in enumerate(keys))
    named = tuple(RoleField("x", field, SCHEMA) for field in fields)
    join = CompiledJoin(parts, (equal,), (5,) * len(parts), (None,) * len(parts), (), named)
    return CompiledQuery(number, f"q{number}", query, "stored", join=join)


def test_results_of_queries_that_share_state_have_the_rows_of_each_role_where_it_reads_them(
    tmp_path: pathlib.Path,
) -> None:
    """The second role of the first query, and the first role of the second one, share a SteM."""
    queries = {
        compiled(0, "SELECT x.v FROM a x, a y WHERE x.k = y.v", ("k", "v"), ("s0_0", "s0_1")): 0,
        compiled(1, "SELECT x.v FROM a x, b y WHERE x.v = y.v", ("v", "v"), ("s0_0", "s1_0")): 0,
    }
    state = JoinState(tmp_path)
    watermarks_us = {"a": 0, "b": 0}
    planner = JoinPlanner(STREAMS, tmp_path, tasks=2)
    plan = planner.plan(0, queries, watermarks_us, ListedParts("q"), state, {}).plan
    assert len(plan.stems) == 3
    for own, found in zip(queries, plan.queries, strict=True):
        assert own.join is not None
        expected = {field.name for field in own.join.fields}
        assert {plan.role_fields[role] for role in found.roles} == expected
