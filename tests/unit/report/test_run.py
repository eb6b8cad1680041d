"""The numbers of an engine's report, and what it says."""

from __future__ import annotations

import json

import pytest

from eddyline.report import MicroBatch, QueryState, QueryStates, RunReport
from eddyline.report.run import JoinNumbers, OperatorNumbers
from tests.unit.report.examples import run_report


def test_text_has_every_number_a_reader_looks_for() -> None:
    text = " ".join(str(run_report()).split())
    for expected in (
        "2 micro-batches with 200 rows took 0.8 s; 12 matches",
        "a row was checked by 1.00 operators on average, each for all queries",
        "3 rows came later than the delay of the stream allows",
        "operators of stream stream, in the order in which rows meet them",
        "operator 80 100% 0.25 s",
        "1 query query state matched sink SQL",
        "query state 12 sink sql",
        "errors - query: error",
    ):
        assert expected in text


def test_numbers_are_plain_json() -> None:
    numbers = json.loads(json.dumps(run_report().to_dict()))
    assert numbers["rows"] == 200
    work = {"visits": 80, "busy_s": 0.25, "tickets": 0.75}
    assert numbers["batches"][1]["operators"] == {"stream": {"operator": work}}
    assert numbers["queries"][0]["matched"] == 12


def test_queries_by_name_and_by_position() -> None:
    hot, cold = (QueryState(name, "SELECT 1", "count", "active", 0) for name in ("hot", "cold"))
    states = QueryStates([hot, cold])
    assert states["cold"] is states[1] is cold
    assert list(states) == [hot, cold]
    assert "hot" in states
    assert hot in states
    assert "warm" not in states
    with pytest.raises(KeyError, match="warm"):
        states["warm"]
    assert str(states).startswith("2 queries")


def test_sql_over_several_lines_is_shown_on_one() -> None:
    state = QueryState("hot", "SELECT *\n  FROM light", "count", "active", 0)
    assert "SELECT * FROM light" in str(QueryStates([state]))


def test_a_micro_batch_is_one_line() -> None:
    assert str(MicroBatch(3, 1_200, 40, 0.25)) == "micro-batch 3: 1,200 rows, 40 matches, 0.25 s"


def test_a_run_with_joins_says_what_they_hold_and_cost() -> None:
    first = JoinNumbers(10, 40, 20, 0.5, 0.25, 90, {"light": 2}, 3_000_000, 80, 3_000_000, 1)
    second = JoinNumbers(5, 20, 10, 0.5, 0.0, 10, {}, 1_000_000, 85, 2_500_000, 2, 1.5)
    batches = [MicroBatch(n, 100, 5, 0.3, joins=own) for n, own in enumerate((first, second, None))]
    text = str(RunReport(batches, QueryStates([])))
    for sentence in (
        "100 rows gave 15 results; 2.00 stored rows compared per match",
        "85 rows, 2.5 MB in 2 files; 4.0 MB written",
        "a row went to 1.50 tasks or states on average",
        "2 rows of light were too late for every join that wants them",
    ):
        assert sentence in " ".join(text.split())


def large_report(full: bool = False) -> RunReport:
    states = [
        QueryState(f"q{n}", "SELECT * FROM light WHERE lux > 5", "count", "active", n)
        for n in range(338)
    ]
    work = {f"lux + {n} > 5": OperatorNumbers(10, n / 1000) for n in range(50)}
    batch = MicroBatch(0, 100, 7, 0.5, visits=500, operators={"light": work})
    states[5] = QueryState("q5", "SELECT 1 / lux FROM light", "count", "paused", 0, "division")
    return RunReport([batch], QueryStates(states), {"q7": 3.5, "q8": 1.5}, full)


def test_a_large_report_explains_its_columns_and_shows_how_queries_differ() -> None:
    text = " ".join(str(large_report()).split())
    assert "matched: rows since the query was added; time: of workers in this run" in text
    assert "A column stands for all comparisons of all queries with it" in text
    assert "… FROM light WHERE lux > 5" in text
    assert "and all operators; 1 is paused" in text
    assert "- q5: division" in text
    assert "SELECT * FROM light WHERE lux > 5" in " ".join(str(large_report(full=True)).split())


def test_a_report_of_a_single_row_has_no_plurals() -> None:
    batch = MicroBatch(0, 1, 1, 0.5, late=1)
    text = " ".join(str(RunReport([batch], QueryStates([]))).split())
    assert "1 micro-batch with 1 row took 0.5 s; 1 match (" in text
    assert "1 row came later" in text


def test_of_many_queries_those_that_match_or_cost_most_are_shown() -> None:
    text = str(large_report())
    lines = text.split("\n")
    assert len(lines) < 100
    assert max(map(len, lines)) <= 80
    assert "338 queries: the 20 with the most matches" in text
    by_matches, by_cost = text.split("whose conditions took longest")
    assert "q337" in by_matches
    assert "q317" not in by_matches
    (first,) = [line.split() for line in by_cost.split("\n") if line.startswith("q7 ")]
    assert first[3] == "3.500"
    assert "lux + 49 > 5" in text
    assert "lux + 29 > 5" not in text
    assert "run.report(full=True) shows all 338 queries" in text


def test_a_full_report_and_its_numbers_have_everything() -> None:
    text = str(large_report(full=True))
    assert all(f"q{n} " in text for n in range(338))
    assert "lux + 0 > 5" in text
    numbers = large_report().to_dict()
    assert len(numbers["queries"]) == 338
    assert numbers["queries"][7]["cost_s"] == 3.5


def test_operators_of_the_same_name_are_kept_apart_by_stream() -> None:
    work = {
        "light": {"room": OperatorNumbers(30, 0.5)},
        "temp": {"room": OperatorNumbers(10, 0.1), "celsius": OperatorNumbers(30, 0.1)},
    }
    text = str(RunReport([MicroBatch(0, 40, 1, 0.5, operators=work)] * 2, QueryStates([])))
    light, temp = text.split("operators of stream temp")
    assert "room 60 100% 1.00 s" in " ".join(light.split())
    assert "room 20 25% 0.20 s" in " ".join(temp.split())
