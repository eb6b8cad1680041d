"""Adding many queries at once: few round trips to Spark, and the same refusals as one by one."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from py4j import clientserver

import eddyline as el
from eddyline.errors import QueryError
from tests.spark.test_engine import Feed

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
