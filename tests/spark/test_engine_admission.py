"""Adding many queries at once: few round trips to Spark, and the same refusals as one by one."""

from __future__ import annotations

import contextlib
import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from py4j import clientserver

import eddyline as el
from eddyline.errors import QueryError
from tests.spark.test_engine import Feed, as_counter

SCHEMA = "id bigint, a int, x double, text string, ts timestamp"
GOOD = [
    "SELECT id FROM events WHERE text LIKE '%w{}%'",
    "SELECT id, text FROM events e WHERE e.text LIKE 'a{}%' AND length(TEXT) > {}",
    "SELECT id, upper(text) AS t FROM events WHERE upper(text) = 'D{}'",
    "SELECT id, a + {} AS n FROM events WHERE x / 3 > {} AND a <> 0",
    "SELECT * FROM events WHERE is_even(id) AND substring(text, 1, 2) = 'b{}'",
    "SELECT id FROM events WHERE text RLIKE '^a{}' OR a = {}",
]
BAD = {
    "no such function": "SELECT id FROM events WHERE nothing_like_it(text) = 'a'",
    "constant fails": "SELECT id FROM events WHERE text LIKE 'b%' AND a > CAST('b' AS INT)",
    "constant fails in SELECT": "SELECT id, a + 1 / 0 AS n FROM events WHERE x / 3 > 5 AND a <> 0",
    "not a condition": "SELECT id FROM events WHERE length(text)",
    "wrong type": "SELECT id FROM events WHERE substring(ts, 'a') = 'b'",
    "aggregate": "SELECT max(a) AS m FROM events WHERE text LIKE 'a%'",
    "not parsed": "SELECT id FROM events WHERE text LIKE",
    "idle window": "SELECT id FROM events WHERE text LIKE 'a%' WINDOW 5 SECONDS",
}


@pytest.fixture
def engine(spark: Any, tmp_path: pathlib.Path) -> Iterator[el.Engine]:
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    with el.Engine(spark, tmp_path / "engine", seed=0) as made:
        made.stream("events", feed.stream())
        made.function("is_even", lambda number: number % 2 == 0)
        yield made


def rules(count: int) -> dict[str, str]:
    return {f"q{n}": GOOD[n % len(GOOD)].format(n, n) for n in range(count)}


def test_many_rules_need_few_round_trips(engine, monkeypatch):
    """At most 3 a rule; 113 before many were analysed in one plan."""
    sent = []
    send = clientserver.ClientServerConnection.send_command
    monkeypatch.setattr(
        clientserver.ClientServerConnection,
        "send_command",
        lambda self, command: sent.append(command) or send(self, command),
    )
    engine.add(rules(60))
    calls = [command for command in sent if not command.startswith("m")]  # m: memory is released
    assert len(calls) <= 3 * 60


def test_queries_added_together_are_those_added_one_by_one(spark, engine, tmp_path):
    engine.add(rules(24))
    with el.Engine(spark, tmp_path / "other", seed=0) as other:
        other.stream("events", Feed(spark, tmp_path / "another", SCHEMA).stream())
        other.function("is_even", lambda number: number % 2 == 0)
        for name, text in rules(24).items():
            other.query(name, text)
        suffixes = [own._compiler._suffix for own in (engine, other)]
        for name in rules(24):
            together, alone = (
                own._queries.compiled(own._folder.catalogue.query(name)) for own in (engine, other)
            )
            assert repr(together.query).replace(*suffixes) == repr(alone.query)
            assert together.argument_types == alone.argument_types
            assert together.select_may_fail == alone.select_may_fail


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_the_same_among_many(engine, name):
    """The first query that is wrong is named, with its reason; nothing is added."""
    with pytest.raises(QueryError) as alone:
        engine.add({name: BAD[name]})
    others = {**rules(12), name: BAD[name], "later": "SELECT nothing FROM nowhere", **rules(14)}
    with pytest.raises(QueryError) as among_many:
        engine.add(others)
    assert str(among_many.value) == str(alone.value)
    assert f"query {name!r}" in str(alone.value)
    assert len(engine.queries()) == 0


def test_constants_that_matter_are_checked_in_every_query(engine):
    """Queries of a shape that Spark read alike twice are not analysed again: failing ones are."""
    engine.add({f"q{n}": f"SELECT id FROM events WHERE x > {n} / 2 + 1" for n in range(1, 6)})
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        engine.add({"bad": "SELECT id FROM events WHERE x > 5 / 0 + 1"})
    engine.add({f"s{n}": f"SELECT id, {n} / 2 AS h FROM events" for n in range(1, 6)})
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        engine.add({"bad": "SELECT id, 5 / 0 AS h FROM events"})


#: Shapes with places for constants, none of which can change what Spark says of them.
SHAPES = [
    "SELECT id FROM events WHERE text LIKE '%w{n}%' AND a > {n}",
    "SELECT id FROM events e WHERE lower(e.text) = 'w{n}' OR NOT text LIKE 'w{n}%'",
    "SELECT id FROM events WHERE x / {n} > {m} AND a <> {n}",
    "SELECT id FROM events WHERE a % {n} = 1 AND abs(a - {n}) < {m}",
    "SELECT id FROM events WHERE text RLIKE '^a[0-{n}]+(b|w{n})$'",
    "SELECT id FROM events WHERE regexp_extract(text, 'w{n}(.)', 1) = 'w{n}'",
    "SELECT id FROM events WHERE hour(ts) BETWEEN {n} AND {m}",
    "SELECT id FROM events WHERE length(text) IN ({n}, {m}, 5) AND replace(text, 'w{n}', '') > 'a'",
    "SELECT id FROM events WHERE is_even(id) AND substring(text, 1, {n}) = 'w{n}'",
    "SELECT id FROM events WHERE is_even(length(text)) OR a = {n}",
    "SELECT id FROM events WHERE CASE WHEN a > {n} THEN x > {m} ELSE x < {n} END",
    "SELECT id, a + {n} AS n, upper(concat(text, 'w{n}')) AS t FROM events WHERE a > {n}",
]


class Asked:
    """Counts the calls to Spark's side, apart from those that release memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        send = clientserver.ClientServerConnection.send_command

        def note(connection: Any, command: str) -> Any:
            if not command.startswith("m"):
                self.calls.append(command)
            return send(connection, command)

        monkeypatch.setattr(clientserver.ClientServerConnection, "send_command", note)

    def by(self, call: Any) -> int:
        """How many calls something makes."""
        before = len(self.calls)
        call()
        return len(self.calls) - before


@pytest.mark.parametrize("shape", SHAPES)
def test_spark_is_asked_nothing_of_a_query_whose_shape_it_knows(engine, monkeypatch, shape):
    """Three calls read the settings of the session, which may have changed."""
    asked = Asked(monkeypatch)
    for n in (2, 3):
        engine.query(f"q{n}", shape.format(n=n, m=n + 20))
    for n in (4, 5):
        text = shape.format(n=n, m=n + 20)
        assert asked.by(lambda n=n, text=text: engine.query(f"q{n}", text)) <= 3


def test_the_first_query_of_a_shape_takes_one_plan(engine, monkeypatch):
    """Its conditions, its meaning, and its meaning with other constants are asked together."""
    engine.query("before", "SELECT id FROM events WHERE length(text) > 5")
    asked = Asked(monkeypatch)
    text = "SELECT id FROM events e WHERE upper(e.text) = 'A{}'"
    assert asked.by(lambda: engine.query("first", text.format(1))) <= 12
    assert asked.by(lambda: engine.query("second", text.format(2))) <= 3


REFUSED_IN_KNOWN_SHAPES = [
    ("SELECT id FROM events WHERE x > 6 / {} + 1", [1, 2, 3, 4], 0),
    ("SELECT id, 6 / {} AS h FROM events", [1, 2, 3, 4], 0),
    ("SELECT id FROM events WHERE a + 1 > CAST('{}' AS INT)", [1, 2, 3, 4], "'b'"),
    ("SELECT id FROM events WHERE a + 1 > '{}'", [1, 2, 3, 4], "b"),
    ("SELECT id FROM events WHERE a + 1 IN ('{}', '7')", [1, 2, 3, 4], "b"),
    ("SELECT id FROM events WHERE coalesce('{}', text) = 5", [1, 2, 3, 4], "b"),
    ("SELECT id FROM events WHERE regexp_replace(text, 'a', 'b', {}) = 'x'", [1, 2, 3, 4], 0),
    ("SELECT id FROM events WHERE ts > DATE'2024-01-{}' + 1", [11, 12, 13, 14], 45),
]


@pytest.mark.parametrize(("shape", "good", "bad"), REFUSED_IN_KNOWN_SHAPES)
def test_a_constant_that_fails_is_refused_however_well_its_shape_is_known(
    spark, engine, tmp_path, shape, good, bad
):
    """The reason is the one of an engine that knows no shape."""
    with el.Engine(spark, tmp_path / "other", seed=0) as other:
        other.stream("events", Feed(spark, tmp_path / "another", SCHEMA).stream())
        said = []
        for own in (other, engine):
            if own is engine:
                for n in good:
                    own.query(f"q{n}", shape.format(n))
            with pytest.raises(QueryError) as refusal:
                own.query("bad", shape.format(bad))
            said.append(str(refusal.value))
        assert said[0] == said[1]


def test_the_queries_that_run_are_listed_once_for_all_micro_batches(engine):
    engine.add(rules(6))
    queries, catalogue = engine._queries, engine._folder.catalogue
    running = queries.running_at(catalogue.version)
    assert queries.running_at(catalogue.version) is running
    engine.drop("q3")
    assert [q.name for q in queries.running_at(catalogue.version)] == ["q0", "q1", "q2", "q4", "q5"]
    catalogue.pause({running[0].number: "failed"})
    assert [q.name for q in queries.running_at(catalogue.version)] == ["q1", "q2", "q4", "q5"]


#: Shapes whose later queries are made from templates; {v} is a word, {n} and {m} are numbers.
OF_TEMPLATES = [
    *SHAPES,
    "SELECT id FROM events WHERE a IN ({n}, {m}, -3) OR text = '{v}'",
    "SELECT id FROM events WHERE NOT (a > {n} OR (x < {m} AND text <> '{v}'))",
    "SELECT id FROM events WHERE a BETWEEN {n} AND {m} AND NOT text IN ('{v}', 'ab')",
    "SELECT id FROM events WHERE (a = {n} AND text = '{v}') OR (a = {m} AND x > {n}.5)",
    "SELECT id FROM events WHERE a NOT IN ({n}, NULL) OR a IN ({m}, NULL)",
    "SELECT id FROM events e WHERE e.ts >= DATE'2024-01-{m}' OR e.`text` LIKE '{v}%'",
    "SELECT id FROM events WHERE a <> 0 AND 10 / a > {n} AND x < {m}",
    "SELECT id FROM events WHERE a <> 0 AND (is_even(3 + a) OR 20 / a > {m})",
    "SELECT id FROM events WHERE a <> 4 AND x > {n} AND is_even(100 / (a - 4))",
    "SELECT id FROM events WHERE size_of(text) > {n} OR size_of(text) IN ({m}, 1, 2)",
]
WORDS = ["w3", "ab", None, "b", "w12x"]
ROWS = [
    (
        n,
        n % 7 - 2,
        n / 3,
        WORDS[n % 5],
        datetime.datetime(2024, 1, 10 + n),
    )
    for n in range(21)
]


def of_templates() -> list[str]:
    words = ["w3", "b", "ab", "w2"]
    return [
        shape.format(n=n, m=n + 10, v=words[n % 4]) for shape in OF_TEMPLATES for n in (2, 3, 4, 5)
    ]


@pytest.fixture
def filled(spark: Any, tmp_path: pathlib.Path) -> Iterator[el.Engine]:
    feed = Feed(spark, tmp_path / "rows", SCHEMA)
    feed.put(ROWS)
    with el.Engine(spark, tmp_path / "filled", seed=0) as made:
        made.stream("events", feed.stream())
        made.function("is_even", is_even)
        made.function("size_of", size_of, returns="int")
        yield made


def is_even(number: int | None) -> bool | None:
    return None if number is None else number % 2 == 0


def size_of(text: str | None) -> int | None:
    return None if text is None else len(text)


@pytest.mark.parametrize("way", ["one by one", "together"])
def test_queries_of_templates_are_those_that_spark_was_asked_about(filled, way):
    """In all that running them needs; the last query of each shape has a template."""
    texts = {f"q{n}": text for n, text in enumerate(of_templates())}
    if way == "together":
        filled.add(texts)
    else:
        for name, text in texts.items():
            filled.query(name, text)
    queries = filled._queries
    templates = queries._current_templates()
    for n, (name, text) in enumerate(texts.items()):
        made = queries.compiled(filled._folder.catalogue.query(name))
        asked = queries._compiler.compile(0, name, text, "parquet", templates.schemas)
        assert repr(made.query) == repr(asked.query)
        assert made.predicates == asked.predicates
        assert made.argument_types == asked.argument_types
        assert made.select_may_fail == asked.select_may_fail
        assert made.select_calls_python == asked.select_calls_python
        assert made.shared() == asked.query.shared(made.number, is_stored=True)
        if n % 4 == 3:  # constants in SELECT are part of the shape
            assert (templates.find(text) is None) == ("SELECT id, a + " in text), text


def test_queries_of_templates_have_the_results_that_spark_has(spark, filled):
    texts = of_templates()
    filled.add({text: text for text in texts})
    run = filled.start("available now")
    run.process_all_available()
    run.stop()
    assert [(query.sql, query.error) for query in filled.queries() if query.error] == []
    spark.createDataFrame(ROWS, SCHEMA).createOrReplaceTempView("events")
    matched = 0
    with registered(spark, {"is_even": (is_even, "boolean"), "size_of": (size_of, "int")}):
        for text in texts:
            mine, theirs = filled.results(text), spark.sql(text)
            assert mine.columns == theirs.columns
            rows = as_counter(theirs)
            assert as_counter(mine) == rows, text
            matched += 0 < rows.total() < len(ROWS)
    assert matched > len(texts) / 2


@contextlib.contextmanager
def registered(spark, functions):
    """Let Spark know functions for a while; other tests share the session."""
    for name, (function, returns) in functions.items():
        spark.udf.register(name, function, returns)
    yield
    for name in functions:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def test_what_cannot_be_stored_is_refused_however_often_it_was_counted(spark, tmp_path):
    feed = Feed(spark, tmp_path / "spans", "a int")
    with el.Engine(spark, tmp_path / "counting", seed=0) as engine:
        spans = feed.stream().selectExpr("a", "make_interval(a) AS span")
        engine.stream("events", spans)
        for n in range(4):
            engine.query(f"q{n}", f"SELECT span FROM events WHERE a > {n}", sink="count")
        with pytest.raises(QueryError, match="Parquet cannot store"):
            engine.query("stored", "SELECT span FROM events WHERE a > 7")
