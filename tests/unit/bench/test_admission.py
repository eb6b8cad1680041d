"""The rules that are added in the experiment on admission."""

from __future__ import annotations

from eddyline.bench.admission import MIXED, SCHEMA, SHAPES, mixed_rules, plain_rules
from eddyline.sql.meaning import without_constants
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

COLUMNS = dict(column.split(" ") for column in SCHEMA.split(", "))
SCHEMAS = Schemas({"events": COLUMNS}, functions={"is_private": "is_private__1", "risk": "risk__1"})


def test_mixed_rules_repeat_about_forty_conditions_with_other_constants() -> None:
    rules = mixed_rules(MIXED)
    texts = list(rules.values())
    assert len(set(texts)) > 0.98 * MIXED
    conditions = {without_constants(text.split(" WHERE ")[1]) for text in texts}
    assert len(SHAPES) <= len(conditions) <= 1.1 * len(SHAPES)
    for text in texts:
        parse(text, SCHEMAS)


def test_plain_rules_only_compare() -> None:
    for text in plain_rules(20).values():
        assert not parse(text, SCHEMAS).predicates
