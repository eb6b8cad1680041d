"""Matching a micro-batch that fails: who is judged, who runs again, when the run gives up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from eddyline.spark.engine.arbiter import AloneRows
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.fault_search import FaultSearch, failing_parts
from eddyline.spark.engine.matching import JUDGED_MAX, Matcher, MatchOutcome
from eddyline.spark.engine.task_note import TaskNote

DEATH = RuntimeError("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")


def query(number: int, *functions: str) -> Any:
    predicates = [SimpleNamespace(function=name) for name in functions]
    made = SimpleNamespace(
        number=number, query=SimpleNamespace(functions=functions, predicates=predicates), join=None
    )
    made.filters = lambda: [made]
    return made


class Engine:
    """Stands for everything around a matcher; jobs fail as `fails` says."""

    def __init__(self, queries: list[Any], fails: Any) -> None:
        self.queries, self.fails = queries, fails
        self.faults: dict[int, str] = {}
        self.answers: set[int] = set()
        self.judged: list[int] = []
        self.jobs: list[list[int]] = []
        self.note = TaskNote()
        self.search = FaultSearch([], str, self.raise_if_stopping)
        self.is_stopping = False

    def raise_if_stopping(self, error: BaseException) -> None:
        if self.is_stopping:
            raise error

    def running_at(self, version: int) -> list[Any]:
        return self.queries

    def display_text(self, text: str) -> str:
        return text

    def plan(self, queries: list[Any], tables: Any) -> Any:
        return SimpleNamespace(queries={q.number: q for q in queries}, groups=[])

    def find(self, df: Any, plan: Any) -> dict[int, str]:
        return {n: error for n, error in self.faults.items() if n in plan.queries}

    def suspects(self, plan: Any, error: BaseException) -> dict[int, str]:
        return self.search.suspects(plan, error)

    def judge(self, df: Any, batch: int, compiled: Any) -> AloneRows:
        self.judged.append(compiled.number)
        if compiled.number not in self.answers:
            raise ValueError("Spark raises too")
        return AloneRows(5, {"part.parquet": 10})

    def match(self) -> MatchOutcome:
        matcher = Matcher(self, self, None, None, None, self, self, None, self.raise_if_stopping)  # type: ignore[arg-type]

        def run(df: Any, batch: int, record: Any, plan: Any, outcome: MatchOutcome) -> MatchOutcome:
            from dataclasses import replace

            self.jobs.append(list(plan.queries))
            error = self.fails(self.jobs)
            if error is not None:
                raise error
            return replace(outcome, note=self.note)

        matcher._run = run  # type: ignore[method-assign, assignment]
        df = SimpleNamespace(count=lambda: 7)
        return matcher.match(df, 0, BatchRecord(1))


def fails_with(number: int, error: Exception) -> Any:
    return lambda jobs: error if number in jobs[-1] else None


def test_a_query_at_fault_is_paused_and_the_others_run_without_it() -> None:
    engine = Engine([query(1), query(2)], fails_with(2, ValueError("x")))
    engine.faults = {2: "broken"}
    outcome = engine.match()
    assert outcome.failures == {2: "broken"}
    assert engine.jobs == [[1, 2], [1]]


def test_a_query_that_spark_answers_is_not_paused_and_has_the_rows_of_spark() -> None:
    engine = Engine([query(1), query(2)], fails_with(2, ValueError("x")))
    engine.faults, engine.answers = {2: "broken"}, {2}
    outcome = engine.match()
    assert not outcome.failures
    assert outcome.counts() == {2: 5}
    assert list(outcome.queries) == [1, 2]


def test_errors_that_workers_report_are_judged_too_and_replace_their_counts() -> None:
    engine = Engine([query(1), query(2)], lambda jobs: None)
    engine.note = TaskNote({1: 3, 2: 4}, {1: "f raised", 2: "g raised"})
    engine.answers = {2}
    outcome = engine.match()
    assert outcome.failures == {1: "f raised"}
    assert outcome.counts() == {2: 5}


def test_time_limits_are_not_for_spark_to_judge() -> None:
    engine = Engine([query(1)], lambda jobs: None)
    engine.note = TaskNote({}, {1: "slow raised TimeLimitError: ..."})
    assert list(engine.match().failures) == [1]
    assert engine.judged == []


def test_the_number_of_judged_queries_is_bounded() -> None:
    engine = Engine([query(n) for n in range(1, JUDGED_MAX + 21)], lambda jobs: None)
    engine.note = TaskNote({}, dict.fromkeys(range(1, JUDGED_MAX + 21), "broken"))
    assert len(engine.match().failures) == JUDGED_MAX + 20
    assert len(engine.judged) == JUDGED_MAX


def test_a_worker_that_died_once_is_no_reason_to_blame_anyone() -> None:
    engine = Engine([query(1, "f")], lambda jobs: DEATH if len(jobs) == 1 else None)
    assert not engine.match().failures
    assert engine.jobs == [[1], [1]]


def test_after_the_first_death_of_a_worker_no_function_is_called_to_find_out_why() -> None:
    """The search calls them on every row, also on rows that comparisons would spare them."""
    for deaths, searched in ((1, 0), (2, 1)):
        engine = Engine([query(1, "f")], lambda jobs, n=deaths: DEATH if len(jobs) <= n else None)
        searches: list[Any] = []
        engine.find = lambda df, plan, s=searches: s.append(plan) or {}  # type: ignore[method-assign]
        assert not engine.match().failures
        assert len(searches) == searched


def test_if_workers_die_for_a_reason_that_is_not_found_all_functions_are_judged() -> None:
    engine = Engine(
        [query(1, "f"), query(2, "g"), query(3)], lambda jobs: DEATH if jobs[-1] != [3] else None
    )
    engine.answers = {1}
    outcome = engine.match()
    assert list(outcome.failures) == [2]
    assert "functions (g)" in outcome.failures[2]
    assert list(outcome.alone) == [1]
    assert engine.jobs[-1] == [3]


def test_what_is_nobodys_fault_ends_the_micro_batch() -> None:
    engine = Engine([query(1, "f")], lambda jobs: OSError("No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        engine.match()
    assert len(engine.jobs) == 2


def test_without_a_query_left_the_rows_are_counted_all_the_same() -> None:
    engine = Engine([query(1)], fails_with(1, ValueError("x")))
    engine.faults = {1: "broken"}
    assert engine.match().note.eddy.rows == 7


def test_nobody_is_blamed_for_what_a_stop_interrupted() -> None:
    engine = Engine([query(1)], fails_with(1, ValueError("x")))
    engine.faults, engine.is_stopping = {1: "broken"}, True
    with pytest.raises(ValueError, match="x"):
        engine.match()


def test_few_of_many_are_found_in_few_jobs() -> None:
    jobs = []

    def failure_of(parts: Any) -> Exception | None:
        jobs.append(parts)
        return ValueError("x") if {100, 700} & set(parts) else None

    assert set(failing_parts(range(1_000), failure_of)) == {100, 700}
    assert len(jobs) < 45
