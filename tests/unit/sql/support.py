"""Schemas, fixture files and partial runs of the pipeline, for the tests of its steps."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.sql.dialect import SPARK
from eddyline.sql.parse import STEPS
from eddyline.sql.read import QueryText
from eddyline.sql.schemas import Schemas

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
SCHEMAS = Schemas(
    streams={
        "light": {"room": "string", "lux": "int", "at": "timestamp", "is_on": "boolean"},
        "temp": {"room": "string", "celsius": "double"},
    },
    tables={
        "rooms": {"room": "string", "floor": "int"},
        "floors": {"floor": "int", "building": "string"},
    },
    functions={"is_bright": "is_bright__1"},
)


@dataclass(frozen=True)
class Case:
    """A block of a fixture file: `-- title`, SQL, and lines of expected output after `-->`."""

    title: str
    sql: str
    expected: list[str]


def cases(step: Callable[[Any], Any]) -> pytest.MarkDecorator:
    """Parametrise a test with the cases in the fixture file named after the step."""
    blocks = (FIXTURES / f"{step.__name__}.sql").read_text().strip().split("\n\n")
    loaded = []
    for block in blocks:
        lines = block.split("\n")
        expected = [line.removeprefix("--> ") for line in lines if line.startswith("--> ")]
        sql = "\n".join(line for line in lines if not line.startswith("--"))
        loaded.append(Case(lines[0].removeprefix("-- "), sql, expected))
    return pytest.mark.parametrize("case", loaded, ids=[case.title for case in loaded])


def run_steps(sql: str, last: Callable[[Any], Any], schemas: Schemas = SCHEMAS) -> Any:
    """Run the pipeline up to and including a step."""
    state: Any = QueryText(sql, schemas)
    for step in STEPS[: STEPS.index(last) + 1]:
        state = step(state)
    return state


def output(sql: str, last: Callable[[Any], Any], describe: Callable[[Any], list[str]]) -> list[str]:
    """Return the described state after a step, or the error."""
    try:
        return describe(run_steps(sql, last)) or ["nothing"]
    except QueryError as error:
        return [f"error: {error}"]


def to_sql(node: exp.Expression) -> str:
    return str(node.sql(**SPARK))
