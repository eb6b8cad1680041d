"""The pipeline as a whole."""

from __future__ import annotations

import inspect
from typing import get_type_hints

from eddyline.sql.parse import STEPS
from eddyline.sql.query import Query
from eddyline.sql.read import QueryText
from tests.unit.sql.support import SCHEMAS

TEXT = (
    "SELECT l.room, r.floor FROM light l JOIN rooms r ON l.room = r.room "
    "WHERE NOT (lux < 3 OR is_bright(lux)) AND length(l.room) > 2 AND floor > 1 WINDOW 5 ROWS"
)


def test_each_step_takes_what_the_previous_step_returns() -> None:
    given: object = QueryText
    for step in STEPS:
        hints = get_type_hints(step)
        (parameter,) = inspect.signature(step).parameters
        assert hints[parameter] is given
        given = hints["return"]
    assert given is Query


def test_each_step_is_in_the_module_named_after_it() -> None:
    for step in STEPS:
        assert step.__module__ == f"eddyline.sql.{step.__name__}"


def test_no_step_changes_the_state_it_is_given() -> None:
    state: object = QueryText(TEXT, SCHEMAS)
    for step in STEPS:
        before = repr(state)
        result = step(state)
        assert repr(state) == before
        state = result
