"""The compiled query: what is derived from its fields."""

from __future__ import annotations

import dataclasses
import random

import pytest

from eddyline.fabric.shared.query import SharedQuery
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas
from eddyline.sql.specs import SourceSpec, Window
from tests.unit.sql import random_conditions
from tests.unit.sql.evaluator import is_true, parse_condition, passes
from tests.unit.sql.support import SCHEMAS

JOIN = "SELECT l.room FROM rooms r JOIN light l ON l.room = r.room WHERE lux > 1 WINDOW 5 ROWS"


def test_a_query_describes_each_of_its_sources() -> None:
    query = parse(JOIN, SCHEMAS)
    window = Window(5, "rows")
    assert query.sources == (
        SourceSpec("rooms", "r", is_stream=False, columns=("room",)),
        SourceSpec("light", "l", is_stream=True, columns=("room",), window=window),
    )
    assert (query.stream, query.tables) == ("light", ("rooms",))
    assert (query.columns, query.window) == (("room",), window)


def test_a_query_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse(JOIN, SCHEMAS).text = ""  # type: ignore[misc]


def test_a_standing_query_needs_required_predicates_and_lookups() -> None:
    query = parse(f"{JOIN[:-14]} AND length(l.room) > 2 AND (is_on OR lux > 9)", SCHEMAS)
    needs = ("length(`__eddyline_stream`.`room`) > 2", "rooms(room) = (room)")
    assert query.shared(3, is_stored=False) == SharedQuery(
        3, query.accepts, needs, query.clauses, False
    )


def test_merged_native_conditions_are_one_predicate_in_the_written_order() -> None:
    text = "SELECT room FROM light WHERE lux <> 0 AND 10 / lux > 2 AND (is_on OR length(room) > 1)"
    merged = parse(text, SCHEMAS).merge_native_conditions()
    (spec,) = merged.predicates
    assert spec.condition == (
        "CASE WHEN (`__eddyline_stream`.`lux` <> 0) IS NOT TRUE THEN NULL "
        "WHEN (10 / `__eddyline_stream`.`lux` > 2) IS NOT TRUE THEN NULL "
        "ELSE (`__eddyline_stream`.`is_on` OR length(`__eddyline_stream`.`room`) > 1) END"
    )
    assert merged.required == (spec.key,)
    assert not merged.clauses


@pytest.mark.parametrize("method", ["merge_native_conditions", "order_native_conditions"])
def test_other_forms_of_native_conditions_keep_the_meaning(method: str) -> None:
    rng = random.Random(0)
    checked = 0
    for _ in range(200):
        text = random_conditions.condition(rng)
        query = parse(f"SELECT a FROM events WHERE {text}", random_conditions.SCHEMAS)
        if not (query.conditions if method == "merge_native_conditions" else query.ordered):
            continue
        changed, condition = getattr(query, method)(), parse_condition(text)
        for _ in range(10):
            row = random_conditions.row(rng)
            is_kept = is_true(condition, row, random_conditions.FUNCTIONS)
            assert passes(changed, row, random_conditions.FUNCTIONS) == is_kept, (text, row)
            checked += 1
    assert checked > 200


def test_replaced_predicates_are_replaced_wherever_they_are_named() -> None:
    text = "SELECT room FROM light WHERE is_bright(lux) AND (is_bright(lux + 1) OR is_on)"
    query = parse(text, SCHEMAS)
    specs = {s.key: dataclasses.replace(s, key=f"new {s.key}") for s in query.predicates}
    changed = query.with_predicates(specs)
    assert [spec.key[:4] for spec in changed.predicates] == ["new ", "new "]
    assert changed.required == (f"new {query.required[0]}",)
    assert changed.clauses[0].needs == (f"new {query.clauses[0].needs[0]}",)
    assert changed.clauses[0].accepts == query.clauses[0].accepts


def test_two_keys_of_a_stream_that_equal_the_same_key_are_left_to_spark() -> None:
    schemas = Schemas({"a": {"x": "int", "y": "int"}, "b": {"k": "int"}})
    query = parse("SELECT x FROM a, b WHERE x = k AND y = k", schemas)
    assert query.join is not None
    assert len(query.join.equalities) == 1
    assert query.join.is_filtered
    assert "`y` = `__eddyline_rows`.`b`.`k`" in query.result
