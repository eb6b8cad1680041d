"""The numbers of a filter's report, and what it says."""

from __future__ import annotations

import json

from eddyline.journal import Record
from eddyline.journal.events import DriftDetected
from eddyline.report import PredicateLine, Report
from tests.unit.report.examples import filter_report


def test_text_has_every_number_a_reader_looks_for() -> None:
    text = " ".join(str(filter_report()).split())
    for expected in (
        "name (policy policy)",
        "native in Spark",
        "calm kind 1,000 100 10.0% 5.00 2",
        "known lookup 100 50 50.0% 1.00",
        "1,000 rows reached Python, 50 kept",
        "evaluations: 1,135 done | about 1,400 in the written order | 2,000 in Spark's own filter",
        "time in predicates 0.01 s, routing and learning 0.00 s (7.3%)",
        "order in use: first → second (2 workers)",
        "40.0% rows route 2.00 3.00 33% where",
        "routed by content: predicate by attribute",
        "columns that cannot classify rows - rejected: reason",
        "changes of routes (3) - after 10 rows: the rows changed (row_class); learning again",
        "after 20 rows: changed to calm → known (6.00 → 5.10 µs a dropped row)",
        "went back to reverted_to",
    ):
        assert expected in text


def test_numbers_are_plain_json() -> None:
    numbers = json.loads(json.dumps(filter_report().to_dict()))
    assert numbers["evaluations"] == 1135
    assert numbers["predicates"][1]["selectivity"] == 0.1
    assert numbers["changes"][1]["event"]["after"] == ["calm", "known"]
    assert round(numbers["classes"][0]["saving"], 3) == 0.333


def test_before_anything_has_run() -> None:
    empty = Report("w", "auto", [PredicateLine("p", "row")], rows=0, kept=0)
    assert "No rows seen yet" in str(empty)
    assert empty.overhead == 0.0


def test_only_the_newest_changes_are_shown() -> None:
    changes = [Record(DriftDetected(), 1000 + number) for number in range(15)]
    text = str(Report("w", "auto", [PredicateLine("p", "row")], 0, 0, changes=changes))
    assert "changes of routes (15, the last 12)" in text
    assert "1,014 rows" in text
    assert "1,002 rows" not in text
