"""Queries made from templates: exactly what compiling their texts gives."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eddyline.errors import QueryError
from eddyline.spark.engine.catalogue_entries import QueryEntry
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.query_templates import QueryTemplates
from eddyline.sql.parse import parse
from eddyline.sql.query import Query
from eddyline.sql.schemas import Schemas

SCHEMAS = Schemas(
    {
        "s": {
            "a": "int",
            "tiny": "tinyint",
            "big": "bigint",
            "b": "string",
            "c": "double",
            "x": "float",
            "m": "decimal(10,2)",
            "wide": "decimal(30,2)",
            "d": "date",
            "ts": "timestamp",
            "f": "boolean",
            "a7013": "int",
        }
    },
    timezone="Europe/Berlin",
)
CONSTANTS = """
5 -5 0 -0 007 18 2.5 -2.50 0.1 .5 5. 1e3 -1E-2 16777217 2147483648 99999999999999999999999 5L 3.0BD
123456789012345678 12345678901234567890123456789012345 'x' 'it''s' 'a\\nb' '' ' ' '{0}'
'é' 'a AND b'
'a and b = 3' '2024-01-28' '2024-02-30' '1960-01-01' '2024-01-28 10:00:00' '2024-03-31 02:30:00'
'2024-10-27 02:30:00' '2024-01-28 10:00:00.5' '70013' 70013 'zq01qz' '--' '/* */' ';' "x" NULL true
'__eddyline' date'2024-01-01' - a -- +5 (5) '%' 'a;b' '`' ' WINDOW 5 ROWS' 5;
"""


def constants() -> list[str]:
    lines = CONSTANTS.split("\n")
    found: list[str] = []
    for line in lines:
        text = ""
        for word in line.split(" "):
            text = f"{text} {word}" if text else word
            if text.count("'") % 2 == 0 and text:
                found.append(text)
                text = ""
    return found


def random_text(rng: random.Random, values: list[str]) -> str:
    columns = [*SCHEMAS.streams["s"], "A", "nope"]
    head = rng.choice(
        ["SELECT * FROM s", "SELECT a, b FROM s", "select a,B from S", "SELECT a+1 FROM s"]
        + ["SELECT * FROM s"] * 6
    )
    comparisons = [
        f"{rng.choice(columns)}{rng.choice([' ', ''])}"
        f"{rng.choice(['=', '<>', '!=', '<', '<=', '>', '>=', '<=>', '=='])}"
        f"{rng.choice([' ', ''])}{rng.choice(values)}"
        for _ in range(rng.randint(1, 3))
    ]
    return f"{head} WHERE {rng.choice([' AND ', ' and ', ' OR ']).join(comparisons)}"


def outcome(compile_query: Callable[[str], Query], text: str) -> Any:
    try:
        return compile_query(text)
    except QueryError as error:
        return str(error)


class Compiler:
    """Compiles queries as an engine does, and counts what it could not make from a template."""

    def __init__(self, compile_query: Callable[[str], Query] | None = None) -> None:
        self._compile_query = compile_query or (lambda text: parse(text, SCHEMAS))
        self.templates = QueryTemplates(SCHEMAS, self._compile)
        self.compiled = 0

    def _compile(self, text: str) -> Query:
        self.compiled += 1
        return self._compile_query(text)

    def query(self, text: str) -> Query:
        query = self.templates.fill(text)
        if query is None:
            query = self._compile(text)
            self.templates.learn(query)
        return query


def compare(texts: list[str]) -> Compiler:
    compiler = Compiler()
    for text in texts:
        expected = outcome(lambda text: parse(text, SCHEMAS), text)
        assert outcome(compiler.query, text) == expected, text
        if isinstance(expected, Query):
            assert repr(compiler.query(text)) == repr(expected), text
    return compiler


def test_random_queries_are_as_if_each_was_compiled() -> None:
    rng = random.Random(0)
    compare([random_text(rng, constants()) for _ in range(400)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_random_queries_are_as_if_each_was_compiled(seed: int) -> None:
    rng = random.Random(seed)
    compare([random_text(rng, constants()) for _ in range(2_000)])


@pytest.mark.parametrize("column", SCHEMAS.streams["s"])
def test_every_constant_after_a_template_was_made(column: str) -> None:
    """The same shape again and again, so that constants do meet a template."""
    for sign in ("=", ">"):
        texts = [f"SELECT * FROM s WHERE {column} {sign} {value}" for value in constants()]
        compare(texts + texts)


def test_comparisons_are_compiled_once_for_all_constants() -> None:
    texts = [f"SELECT * FROM s WHERE a > {n} AND b = 'x{n}' AND c < -{n}.5" for n in range(200)]
    assert compare(texts).compiled == 3


def test_a_template_that_gives_something_else_is_not_used() -> None:
    def compile_query(text: str) -> Query:
        return replace(parse(text.replace("> 13", "> 14"), SCHEMAS), text=text)

    compiler = Compiler(compile_query)
    for n in (13, 13, 13, 15):
        text = f"SELECT * FROM s WHERE a > {n}"
        assert compiler.query(text) == compile_query(text)
    assert compiler.compiled == 5


def test_a_probe_that_is_refused_makes_no_template() -> None:
    def compile_query(text: str) -> Query:
        if "70013" in text:
            raise QueryError("refused")
        return parse(text, SCHEMAS)

    compiler = Compiler(compile_query)
    for n in range(4):
        assert compiler.query(f"SELECT * FROM s WHERE a > {n}").accepts
    assert compiler.compiled == 5


def test_refused_texts_are_refused_however_often_their_shape_was_seen() -> None:
    compiler = Compiler()
    for n in range(5):
        compiler.query(f"SELECT * FROM s WHERE b = 'x{n}'")
    with pytest.raises(QueryError, match="reserved"):
        compiler.query("SELECT * FROM s WHERE b = '__eddyline_stream'")
    with pytest.raises(QueryError, match="reflect"):
        compiler.query("SELECT * FROM s WHERE reflect('java.lang.System', 'exit', 1) = 'x'")


def test_ten_thousand_comparisons_take_less_than_two_seconds() -> None:
    compiler = Compiler()
    began = time.process_time()
    for n in range(10_000):
        compiler.query(f"SELECT * FROM s WHERE a > {n} AND b = 'x{n}'")
    assert time.process_time() - began < 2


def test_what_a_compiled_query_makes_from_its_template_is_what_parsing_gives() -> None:
    compiler = Compiler()
    for n in range(2):
        compiler.query(f"SELECT a FROM s WHERE a > {n} AND b = 'x{n}'")
    text = "SELECT a FROM s WHERE a > 30 AND b = 'yes'"
    template = compiler.templates.find(text)
    assert template is not None
    compiled = CompiledQuery.of(QueryEntry(7, "q", text, "count", [(3, None)]), template)
    expected = parse(text, SCHEMAS)
    assert compiled.query == expected
    assert compiled.outline is template.outline
    assert compiled.outline.accepts.keys() == expected.accepts.keys()
    assert replace(compiled.outline, text=text).sources == expected.sources
    own = CompiledQuery(7, "q", expected, "count")
    assert compiled.shared() == own.shared() == expected.shared(7, is_stored=False)
    for name in ("number", "name", "sink", "is_stored", "has_idle_window", "join"):
        assert getattr(compiled, name) == getattr(own, name)


def test_constants_that_no_value_set_can_hold_have_no_template() -> None:
    compiler = Compiler()
    for n in range(3):
        compiler.query(f"SELECT a FROM s WHERE x > {n}")
    assert compiler.templates.find("SELECT a FROM s WHERE x > 5") is not None
    assert compiler.templates.find("SELECT a FROM s WHERE x > 16777217") is None
