"""Queries made from templates: exactly what compiling their texts gives."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eddyline.errors import QueryError
from eddyline.spark.engine import query_templates
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

    def __init__(
        self, compile_query: Callable[[str, Schemas], Query] = parse, schemas: Schemas = SCHEMAS
    ) -> None:
        self._compile_query = compile_query
        self._schemas = schemas
        self.templates = QueryTemplates(schemas, self._compile)
        self.compiled = 0

    def _compile(self, text: str, schemas: Schemas) -> CompiledQuery:
        self.compiled += 1
        return CompiledQuery(0, "", self._compile_query(text, schemas), "count")

    def query(self, text: str) -> Query:
        template = self.templates.find(text)
        if template is not None:
            return template.query_of(text)
        compiled = self._compile(text, self._schemas)
        self.templates.learn(compiled)
        return compiled.query


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
    def compile_query(text: str, schemas: Schemas) -> Query:
        return replace(parse(text.replace("> 13", "> 14"), schemas), text=text)

    compiler = Compiler(compile_query)
    for n in (13, 13, 13, 15):
        text = f"SELECT * FROM s WHERE a > {n}"
        assert compiler.query(text) == compile_query(text, SCHEMAS)
    assert compiler.compiled == 5


def test_a_probe_that_is_refused_makes_no_template() -> None:
    def compile_query(text: str, schemas: Schemas) -> Query:
        if "70000" in text:
            raise QueryError("refused")
        return parse(text, schemas)

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


FUNCTIONS = Schemas(
    SCHEMAS.streams, functions={"f": "f__1", "score": "score__1"}, timezone="Europe/Berlin"
)
#: Constants by the kind of column that they suit; a few suit none.
SUITABLE = {
    "number": "5 70000 70002 -70000 -5 -0 0 007 18 2.5 -2.50 1e3 .5 5L 99999999999 123456789012345 "
    "16777217 NULL (5)",
    "text": "'x' 'zq70000qz' '70000' 'it''s' 'a\\\\nb' '' 'a, b' '1,2' '{}' 'é' 'NULL' 'IN (1, 2)' "
    "'a`b' 'x AND y' ' where a > 5 '",
    "day": "'2024-01-28' '1987-03-01' '2024-02-30' '1960-01-01' DATE'2024-05-01' DATE '1987-03-01' "
    "'2024-01-28 10:00:00'",
    "time": "'2024-01-28 10:00:00' '1987-03-01 04:05:06' '2024-03-31 02:30:00' '2024-01-28' "
    "'2024-01-28T10:00:00' '2024-01-28 10:00:00.5' TIMESTAMP'2024-01-28 10:00:00'",
}
KINDS = {"a": "number", "big": "number", "c": "number", "x": "number", "m": "number", "b": "text"}
KINDS |= {"d": "day", "ts": "time", "`a`": "number", "s.A": "number", "s.`b`": "text"}


def suitable(kind: str) -> list[str]:
    found, text = [], ""
    for word in SUITABLE[kind].split(" "):
        text = f"{text} {word}" if text else word
        if text.count("'") % 2 == 0 and text not in ("DATE", "TIMESTAMP"):
            found.append(text)
            text = ""
    return found


def random_atom(rng: random.Random) -> str:
    """Return a predicate in which {kind} stands for a constant, and {kind*} for a list of them."""
    column = rng.choice(list(KINDS))
    kind = KINDS[column]
    sign = rng.choice(["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
    hole = f"{{{kind}}}"
    return rng.choice(
        [
            f"{column} {sign} {hole}",
            f"{hole} {sign} {column}",
            f"{column} IN ({{{kind}*}})",
            f"{column} not in({{{kind}*}})",
            f"{column} IN ({hole}, NULL, {hole})",
            f"{column} BETWEEN {hole} AND {hole}",
            f"NOT {column} BETWEEN {hole} AND {hole}",
            f"{column} IS NOT NULL",
            f"{column} = {hole} AND {column} <> {hole}",
            f"({column} {sign} {hole} AND a > {{number}})",
            "b LIKE {text}",
            "b NOT LIKE {text} ESCAPE '!'",
            "b RLIKE {text}",
            "length(b) > {number}",
            "length(b) IN ({number*})",
            "substring(b, {number}, 2) = {text}",
            "a + {number} > {number}",
            "a % {number} = 1",
            "CASE WHEN f THEN a > {number} ELSE b = {text} END",
            "CAST(a AS DECIMAL(10, 2)) > {number}",
            "f(a)",
            "NOT f(length(b))",
            "f(a + {number})",
            "score(a) > {number}",
            "score(b) = {text}",
            "score(a, b) IN ({number*})",
            "score(b) NOT IN ({text}, NULL, {text})",
            "d > DATE'2024-01-01' + INTERVAL {number} DAY",
        ]
    )


def random_condition(rng: random.Random, depth: int = 0) -> str:
    if depth == 3 or rng.random() < 0.35:
        return random_atom(rng)
    parts = [random_condition(rng, depth + 1) for _ in range(rng.randint(1, 3))]
    joined = rng.choice([" AND ", " OR ", " and "]).join(parts)
    return rng.choice([f"({joined})", f"NOT ({joined})", joined])


def random_shape(rng: random.Random) -> str:
    head = rng.choice(
        [
            "SELECT * FROM s",
            "SELECT a, upper(b) AS B FROM s",
            "select s.a, 5 AS five FROM S",
            "SELECT a FROM s AS s",
            "SELECT /* a > 5 */ a FROM s",
            "SELECT 'x where y > 5' AS t FROM s",
        ]
    )
    end = rng.choice(["", "", "", " ", ";", " -- a > 5", "\nAND a < {number}"])
    return f"{head} WHERE {random_condition(rng)}{end}"


def with_constants(shape: str, rng: random.Random, plain: bool) -> str:
    """Return a text of a shape; plain constants are those that templates are made for."""

    def constant(kind: str) -> str:
        chosen = rng.choice(suitable(kind))
        if not plain:
            return chosen
        number = rng.randint(-(10**4), 10**5)
        moment = f"20{rng.randint(10, 24)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}"
        return {
            "number": str(abs(number)),
            "text": f"'w{number}'",
            "day": f"'{moment}'",
            "time": f"'{moment} 10:00:00'",
        }[kind]

    def fill(place: re.Match[str]) -> str:
        if not place[2]:
            return constant(place[1])
        return rng.choice([", ", ","]).join(constant(place[1]) for _ in range(rng.randint(1, 4)))

    return re.sub(r"\{(\w+)(\*?)\}", fill, shape)


def compare_shapes(seed: int, shapes: int) -> tuple[int, int]:
    """Compare queries with and without templates; return how many were made from one, of all."""
    rng = random.Random(seed)
    compiler = Compiler(schemas=FUNCTIONS)
    from_template = count = 0
    for _ in range(shapes):
        shape = random_shape(rng)
        plain = [with_constants(shape, rng, plain=True) for _ in range(4)]
        for text in [*plain, *[with_constants(shape, rng, plain=False) for _ in range(6)]]:
            before = compiler.compiled
            expected = outcome(lambda text: parse(text, FUNCTIONS), text)
            assert outcome(compiler.query, text) == expected, text
            if isinstance(expected, Query):
                assert repr(compiler.query(text)) == repr(expected), text
                from_template += compiler.compiled == before
                count += 1
                check_what_an_eddy_shares(compiler, text, expected)
    return from_template, count


def check_what_an_eddy_shares(compiler: Compiler, text: str, expected: Query) -> None:
    template = compiler.templates.find(text)
    if template is not None:
        assert template.shared(7, text, True) == expected.shared(7, True)
        assert template.predicates_of(text) == expected.predicates
        assert template.outline.sources == expected.sources
        assert template.outline.accepts.keys() == expected.accepts.keys()


def test_random_conditions_are_as_if_each_was_compiled() -> None:
    from_template, count = compare_shapes(0, 60)
    assert from_template > count / 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_many_random_conditions_are_as_if_each_was_compiled(seed: int) -> None:
    compare_shapes(seed, 200)


#: A shape, three queries that make its template, and one that is compiled by itself all the same.
UNLIKE = {
    "equal alternatives": ("(a > {} AND c > {}) OR (a > {} AND c > {})", (1, 2, 1, 2)),
    "equal conditions": ("b LIKE 'x{}%' OR b LIKE 'x{}%'", (1, 1)),
    "equal calls": ("f(a) OR score(a) > {} OR score(a) > {}", (1, 1)),
    "equal guards": ("c = {} OR (c = {} AND f(a)) OR c / 2 > {}", (1, 1, 1)),
    "no value set": ("x > {}", (2**24 + 1,)),
    "no value set in a list": ("x IN ({}, 5) OR a > {}", (2**24 + 1, 1)),
    "a value set": ("ts > '{}' OR a > {}", ("2024-01-28T10:00:00", 1)),
    "another type": ("a + c > {} OR b LIKE '{}'", (1_234_567_890, 1)),
    "another type in a list": ("a + c IN ({}, 7) OR b LIKE '{}'", (1_234_567_890, 1)),
    "digits of a type": ("a + c > {}.5 OR b LIKE '{}'", (11, 1)),
    "an argument": ("f(a + {}) AND b LIKE '{}'", (5, 1)),
    "a constant that Spark adds": ("a + 5 + {} > 7 AND b LIKE '{}'", (5, 1)),
    "a size": ("CAST(a AS DECIMAL(10, {})) > 7 AND b LIKE '{}'", (5, 1)),
}


@pytest.mark.parametrize("what", UNLIKE)
def test_a_query_that_differs_in_more_than_constants_is_compiled(what: str) -> None:
    """Most of these would be compiled to something else than the template gives."""
    condition, constants = UNLIKE[what]
    compiler = Compiler(schemas=FUNCTIONS)
    for n in range(10, 13):
        own = [f"w{n}" if "'{}'" in condition and what == "a value set" else n] + [
            n + k for k in range(1, condition.count("{}"))
        ]
        text = f"SELECT a FROM s WHERE {condition.format(*own)}"
        assert repr(compiler.query(text)) == repr(parse(text, FUNCTIONS))
    text = f"SELECT a FROM s WHERE {condition.format(*constants)}"
    assert compiler.templates.find(text) is None
    assert repr(compiler.query(text)) == repr(parse(text, FUNCTIONS))


FROM_A_TEMPLATE = [
    "a IN ({}, {}, NULL) AND c > {}",
    "a NOT IN ({}) OR b = 'x{}'",
    "NOT (a BETWEEN {} AND {} OR (c < {} AND m > {}.5))",
    "(a > {} AND c > {}) OR (a > {} AND b = 'x{}')",
    "(f AND a IS NULL) OR (f AND a IS NULL) OR (c > {} AND b = 'x{}')",
    "{} < a OR d = DATE'2024-01-{}'",
    "b LIKE '%x{}%' OR b LIKE '%y{}' OR a = {}",
    "b RLIKE '^x[0-{}]+' AND length(b) IN ({}, {})",
    "a % {} = 1 AND a + {} > c",
    "substring(b, {}, 2) = 'x{}' OR upper(b) = 'X{}'",
    "score(a) > -{} AND score(b) NOT IN ('x{}', 'y') AND NOT f(c)",
    "score(a, b) IN ({}, 7.5) OR score(c) = {} OR score(c) BETWEEN {} AND {}",
]


@pytest.mark.parametrize("condition", FROM_A_TEMPLATE)
def test_conditions_of_all_kinds_are_made_from_templates(condition: str) -> None:
    places = condition.count("{}")
    texts = [
        f"SELECT s.a FROM s AS s WHERE {condition.format(*[n + k for k in range(places)])}"
        for n in range(10, 15)
    ]
    compiler = Compiler(schemas=FUNCTIONS)
    assert [compiler.query(text) for text in texts] == [parse(text, FUNCTIONS) for text in texts]
    assert compiler.compiled == 3
    for text in texts:
        check_what_an_eddy_shares(compiler, text, parse(text, FUNCTIONS))
        assert compiler.templates.find(text) is not None


def test_constants_that_could_matter_to_spark_are_part_of_the_shape() -> None:
    """Those of `b LIKE` here: what is not known to be free is looked at again in every query."""
    compiler = Compiler()
    compiler.templates = QueryTemplates(SCHEMAS, compiler._compile, lambda stream, text: None)
    texts = [f"SELECT a FROM s WHERE a > {n} AND b LIKE 'x{n % 2}%'" for n in range(8)]
    for text in texts:
        assert compiler.query(text) == parse(text, SCHEMAS)
    assert compiler.compiled == 3 + 2 * 2
    assert compiler.templates.find("SELECT a FROM s WHERE a > 5 AND b LIKE 'x2%'") is None


def test_the_number_of_shapes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_templates, "SHAPES_MAX", 5)
    compiler = Compiler()
    templates = compiler.templates
    sizes = []
    for n in range(10):
        for m in range(4):
            compiler.query(f"SELECT a, {n} AS n FROM s WHERE a > {m}")
            compiler.query(f"SELECT a FROM s WHERE a > {m} AND {n // 5} + a > 1 + {n}")
            sizes.append(tuple(map(len, (templates._kept, templates._templates, templates._seen))))
    assert [max(own) for own in zip(*sizes, strict=True)] == [5, 5, 5]
    assert templates.find("SELECT a, 0 AS n FROM s WHERE a > 3") is not None
    assert templates.awaits("SELECT a, 9 AS n FROM s WHERE a > 3") is None


def test_queries_of_no_common_shape_do_not_use_up_the_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_templates, "SHAPES_MAX", 5)
    compiler = Compiler()
    for n in range(100):
        compiler.query(f"SELECT a, {n} AS n FROM s")
    for n in range(3):
        compiler.query(f"SELECT a FROM s WHERE a > {n}")
    assert compiler.templates.find("SELECT a FROM s WHERE a > 5") is not None


def test_queries_without_constants_share_what_is_equal() -> None:
    compiler = Compiler(schemas=FUNCTIONS)
    for _ in range(5):
        for text in ("SELECT * FROM s", "SELECT a FROM s WHERE f(a)", "SELECT 5 AS n FROM s"):
            assert compiler.query(text) == parse(text, FUNCTIONS)
    assert compiler.compiled == 3 * 3


def test_lists_of_any_length_share_a_template() -> None:
    compiler = Compiler()
    for n in range(1, 30):
        items = ", ".join(f"'x{k}'" for k in range(n))
        text = f"SELECT a FROM s WHERE b IN ({items}) AND a NOT IN ({','.join(map(str, range(n)))})"
        assert repr(compiler.query(text)) == repr(parse(text, SCHEMAS))
    assert compiler.compiled == 3


def test_queries_of_several_sources_are_compiled() -> None:
    tables = {"rooms": {"room": "string", "floor": "int"}}
    schemas = Schemas({"s": {"a": "int", "b": "string"}, "t": {"a": "int"}}, tables)
    shapes = [
        "SELECT s.a FROM s, rooms r WHERE s.b = r.room AND s.a > {}",
        "SELECT s.a FROM s, t WHERE s.a = t.a AND s.a > {} WINDOW 5 SECONDS",
    ]
    compiler = Compiler(schemas=schemas)
    for shape in shapes:
        for n in range(4):
            compiler.query(shape.format(n))
            assert compiler.templates.find(shape.format(n)) is None
    assert compiler.compiled == 8


def test_text_in_select_is_no_constant_of_the_condition() -> None:
    compiler = Compiler()
    for n in range(4):
        text = f"SELECT 'x where y > {n}' AS t FROM s"
        assert compiler.query(text) == parse(text, SCHEMAS)
        assert compiler.templates.find(text) is None


def test_queries_that_only_plans_can_compare_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_templates, "shape_of", lambda query: None)
    compiler = Compiler()
    for n in range(4):
        compiler.query(f"SELECT a FROM s WHERE b LIKE 'x{n}%'")
        compiler.query(f"SELECT a FROM s WHERE a > {n}")
    assert compiler.templates.find("SELECT a FROM s WHERE b LIKE 'x5%'") is None
    assert compiler.templates.find("SELECT a FROM s WHERE a > 5") is not None


@pytest.mark.parametrize(
    "other",
    [{"select_may_fail": True}, {"select_calls_python": True}, {"argument_types": {"a": 1}}],
)
def test_a_template_of_which_spark_says_something_else_is_not_used(other: dict[str, Any]) -> None:
    def compile_query(text: str, schemas: Schemas) -> CompiledQuery:
        query = parse(text, schemas)
        return CompiledQuery(0, "", query, "count", **({} if "70000" in text else other))

    templates = QueryTemplates(SCHEMAS, compile_query)
    for n in range(4):
        templates.learn(compile_query(f"SELECT a FROM s WHERE a > {n}", SCHEMAS))
    assert templates.find("SELECT a FROM s WHERE a > 5") is None


def test_a_column_that_is_named_like_a_probe_stays_as_it_is() -> None:
    schemas = Schemas({"s": {"a": "int", "zq70000qz": "string", "c70002": "int"}})
    compiler = Compiler(schemas=schemas)
    for n in range(4):
        text = f"SELECT * FROM s WHERE ZQ70000QZ = 'x{n}' AND c70002 > {n} OR a = {n}"
        assert repr(compiler.query(text)) == repr(parse(text, schemas))
        text = f"SELECT * FROM s WHERE zq70000qz = 'x{n}' OR a = {n}"
        assert repr(compiler.query(text)) == repr(parse(text, schemas))
        text = f"SELECT * FROM s WHERE a IN ({n}, 70000) OR a = 70001"
        assert repr(compiler.query(text)) == repr(parse(text, schemas))
