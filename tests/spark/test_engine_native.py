"""Native conditions in an engine: guarded, in the best order for each class, learnt again."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import eddyline as el
from eddyline.journal.events import ClassesFound
from eddyline.spark.engine.native_routes import NativeGroup, NativeRoutes
from eddyline.spark.engine.result_store import ResultStore
from tests.spark.test_engine import Feed, answer, as_counter

SCHEMA = "kind string, number int, text string"
#: Costly enough to be told apart, and none of them can fail.
CONDITIONS = [rf"regexp_count(text, '\\b[a-z]*mark{n}\\b') > 0" for n in range(3)]
QUERY = f"SELECT number FROM events WHERE number < 900 AND {' AND '.join(CONDITIONS)}"


def make_rows(rng: np.random.Generator, dropped_by: dict[str, int]) -> list[tuple[Any, ...]]:
    """Rows of each kind are dropped by a condition of its own, and hardly by another."""
    rows = []
    for _ in range(1_500):
        kind = str(rng.choice(list(dropped_by)))
        passes = rng.random(3) < [0.05 if n == dropped_by[kind] else 0.95 for n in range(3)]
        words = [f"word{w}" for w in rng.integers(0, 99, 40)]
        words += [f"amark{n}" for n in range(3) if passes[n]]
        rows.append((kind, int(rng.integers(0, 1_000)), " ".join(rng.permutation(words))))
    return rows


@pytest.fixture
def engine(spark: Any, tmp_path: pathlib.Path) -> Any:
    feed = Feed(spark, tmp_path / "source", SCHEMA)
    with el.Engine(spark, tmp_path / "engine", seed=0) as made:
        made.stream("events", feed.stream())
        made.feed = feed
        yield made


def record_groups(routes: NativeRoutes) -> list[NativeGroup]:
    """Return a list that holds the groups of the last micro-batch."""
    groups: list[NativeGroup] = []
    learn = routes.learn

    def recorded(df: Any, rows: int, seconds: float, given: Sequence[NativeGroup]) -> None:
        groups[:] = given
        learn(df, rows, seconds, given)

    routes.learn = recorded  # type: ignore[method-assign]
    return groups


@pytest.mark.slow
def test_classes_are_found_between_micro_batches_and_found_again(spark: Any, engine: Any) -> None:
    rng = np.random.default_rng(0)
    engine.query("marked", QUERY)
    run = engine.start("50 milliseconds")
    routes = engine._planner.routes
    groups = record_groups(routes)
    seen = []
    for batch, dropped_by in enumerate(({"a": 0, "b": 2}, *[{"a": 2, "b": 0}] * 2)):
        # After the first two micro-batches, whatever it takes.
        routes._learning_share = 1e9 if batch < 2 else 0.0
        rows = make_rows(rng, dropped_by)
        seen += rows
        engine.feed.put(rows)
        run.process_all_available()
    assert as_counter(run.results("marked")) == as_counter(answer(spark, QUERY, seen, SCHEMA))
    found = engine.journal().of(ClassesFound)
    assert all(record.numbers["query"] == "marked" for record in found)
    assert [first_mark(found[0], kind) for kind in "ab"] == [0, 2]
    assert [first_mark(found[-1], kind) for kind in "ab"] == [2, 0]
    compiled = str(routes.column(groups[0]))
    assert "CASE WHEN (`s0`.`number` < 900) THEN" in compiled
    assert compiled.count("mark0") == compiled.count("mark2") >= 2, "a route for each class"


def first_mark(record: Any, kind: str) -> int:
    """Return which mark is looked for first in rows of a kind."""
    other = "b" if kind == "a" else "a"
    for words in record.numbers["classes"]:
        about, route = words.split(" -> ")
        if about in (f"kind = {kind}", f"kind != {other}"):
            return int(route.split("mark")[1][0])
    raise AssertionError(record.numbers["classes"])


def test_conditions_that_others_share_stay_by_themselves(spark: Any, engine: Any) -> None:
    rng = np.random.default_rng(1)
    shared = f"SELECT number FROM events WHERE {CONDITIONS[1]}"
    engine.add({"marked": QUERY, "shared": shared})
    run = engine.start("50 milliseconds")
    groups = record_groups(engine._planner.routes)
    rows = make_rows(rng, {"a": 0})
    engine.feed.put(rows)
    run.process_all_available()
    (group,) = groups
    assert (group.query, len(group.conditions), len(group.guards)) == ("marked", 2, 1)
    for name, text in (("marked", QUERY), ("shared", shared)):
        assert as_counter(run.results(name)) == as_counter(answer(spark, text, rows, SCHEMA))


def test_a_shared_condition_is_evaluated_where_one_of_its_queries_may_match(
    spark: Any, engine: Any
) -> None:
    texts = {
        f"below{most}": f"SELECT number FROM events WHERE number < {most} AND {CONDITIONS[0]}"
        for most in (300, 500, 200)
    }
    engine.add(texts)
    rows = make_rows(np.random.default_rng(2), {"a": 0, "b": 1})
    rows += [("a", None, "amark0"), (None, 499, None), ("a", 500, "amark0")]
    engine.feed.put(rows)
    engine.start("available now").process_all_available()
    _, plan = engine._planner._last
    (answers,) = [str(column) for column in plan.crossing if "mark0" in str(column)]
    assert "CASE WHEN (((`s0`.`number` < 500))) THEN regexp_count" in answers
    assert answers.count("mark0") == 1, "once for all queries"
    for name, text in texts.items():
        assert as_counter(engine.results(name)) == as_counter(answer(spark, text, rows, SCHEMA))


def record_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the plan that Spark executes for each micro-batch is added."""
    plans: list[str] = []
    write = ResultStore.write_matches

    def recorded(store: ResultStore, batch: int, matches: Any, columns: Any) -> Any:
        plans.append(matches._jdf.queryExecution().executedPlan().toString())
        return write(store, batch, matches, columns)

    monkeypatch.setattr(ResultStore, "write_matches", recorded)
    return plans


def test_the_executed_plan_evaluates_a_shared_condition_only_behind_its_guard(
    spark: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of Spark's optimizer moves the condition out of the guard, or repeats it."""
    plans = record_plans(monkeypatch)
    engine.add(
        {
            f"below{most}": f"SELECT number FROM events WHERE number < {most} AND {CONDITIONS[0]}"
            for most in (300, 500, 200)
        }
    )
    engine.feed.put(make_rows(np.random.default_rng(2), {"a": 0, "b": 1}))
    engine.start("available now").process_all_available()
    lines = {line.strip() for text in plans for line in text.split("\n") if "mark0" in line}
    assert lines
    # Spark may rewrite regexp_count(a, b) as size(regexp_extract_all(a, b)).
    call = r"(?:regexp_count|size\(regexp_extract_all)"
    guarded = re.compile(rf"CASE WHEN \(+[^()]*number[^()]* < 500\)+ THEN \(*{call}")
    for line in lines:
        assert line.count("mark0") == len(guarded.findall(line)) == 1, line
