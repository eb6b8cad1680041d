"""What Spark evaluates before a native condition in an OR with Python functions."""

from __future__ import annotations

from eddyline.sql.parse import parse
from eddyline.sql.placeholders import display_text
from tests.unit.sql.support import SCHEMAS


def guards(condition: str) -> dict[str, list[str]]:
    ordered = parse(f"SELECT room FROM light WHERE {condition}", SCHEMAS).ordered
    assert ordered is not None
    return {
        display_text(part): [display_text(guard) for guard in before]
        for part, before in ordered.guards.items()
    }


def test_parts_before_the_first_call_are_guarded_by_what_comes_before_them() -> None:
    assert guards("lux = 0 OR (1 / lux > 2 AND is_bright(lux))") == {
        "`lux` = 0": [],
        "1 / `lux` > 2": ["(`lux` = 0) IS NOT TRUE"],
    }
    assert guards("(lux > 0 AND (is_on AND is_bright(lux))) OR lux = 9") == {
        "`lux` > 0": [],
        "`is_on`": ["(`lux` > 0) IS NOT FALSE"],
    }


def test_parts_behind_a_call_have_no_guards() -> None:
    assert guards("is_bright(lux) OR 1 / lux > 2") == {}
    assert guards("is_bright(1) AND (lux > 2 OR is_bright(2))") == {}
    assert list(guards("(lux > 0 AND is_bright(lux)) OR 1 / lux > 2")) == ["`lux` > 0"]


def test_negations_are_read_from_left_to_right_too() -> None:
    assert guards("NOT (lux = 0 AND is_bright(lux)) AND room = 'a'") == {"NOT `lux` = 0": []}


def test_a_part_without_calls_stays_whole() -> None:
    query = parse(
        "SELECT room FROM light WHERE is_on AND ((lux <> 0 AND 1 / lux > 2) OR is_bright(lux))",
        SCHEMAS,
    )
    ordered = query.order_native_conditions()
    texts = [display_text(spec.condition) for spec in ordered.predicates if spec.function is None]
    assert texts == ["(`is_on`)", "`lux` <> 0 AND 1 / `lux` > 2"]
    assert ordered.required == (ordered.predicates[0].key,)


def test_without_native_alternatives_there_is_nothing_to_order() -> None:
    for condition in ("is_bright(lux) AND 1 / lux > 2", "lux > 1 OR is_on", "is_bright(lux)"):
        assert parse(f"SELECT room FROM light WHERE {condition}", SCHEMAS).ordered is None
