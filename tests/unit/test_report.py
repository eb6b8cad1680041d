"""The report as text, as a page, as numbers."""

from __future__ import annotations

import json

from eddyline.journal import Record
from eddyline.journal.events import DriftDetected, OrderChanged, TrialEnded
from eddyline.report.model import PredicateLine, Report

LINES = [
    PredicateLine("length(text) > 200", "spark"),
    PredicateLine("calm", "row", 1000, 100, 2, 30, busy_us=5000.0, written_seen=400.0),
    PredicateLine("<known>", "lookup", 100, 50, 0, 5, busy_us=100.0, written_seen=1000.0),
]
BEFORE, AFTER = ("<known>", "calm"), ("calm", "<known>")
CHANGE = OrderChanged(before=BEFORE, after=AFTER, cost_before_us=6.0, cost_after_us=5.1)
REVERTED = TrialEnded(
    subject="order",
    method="before_after",
    verdict="reverted",
    before=BEFORE,
    after=AFTER,
    rows=8_192,
    before_us=5.0,
    after_us=6.0,
)


def make() -> Report:
    return Report(
        "spam",
        "agreedy",
        LINES,
        rows=1000,
        kept=50,
        orders=[(["calm", "<known>"], 2)],
        changes=[
            Record(DriftDetected(), 10, "worker 1"),
            Record(CHANGE, 20, "worker 1"),
            Record(REVERTED, 30, "worker 1"),
        ],
        profiling_us=100.0,
        deciding_us=50.0,
        routing_us=250.0,
        budget=0.01,
    )


def test_text_has_every_number_a_reader_looks_for() -> None:
    text = str(make())
    for expected in (
        "spam (policy agreedy)",
        "in Spark",
        "10.0%",
        "5.00",
        "1,000 rows reached Python, 50 kept",
        "evaluations: 1,135 done | about 1,400 in the written order | 2,000 in Spark's own filter",
        "time in predicates 0.01 s, routing and learning 0.00 s (7.3%)",
        "calm → <known> (2 workers)",
        "changed to calm → <known>  (6.00 → 5.10 µs a dropped row)",
        "went back to <known> → calm",
        "the rows changed; learning again",
    ):
        assert expected in text


def test_html_is_escaped_and_stands_alone(tmp_path) -> None:
    page = make().to_html(tmp_path / "report.html").read_text()
    assert "&lt;known&gt;" in page
    assert "<known>" not in page
    assert "http" not in page
    assert make()._repr_html_() in page


def test_numbers_are_plain_json() -> None:
    numbers = json.loads(json.dumps(make().to_dict()))
    assert numbers["evaluations"] == 1135
    assert numbers["predicates"][1]["selectivity"] == 0.1
    assert numbers["changes"][1]["event"]["after"] == ["calm", "<known>"]


def test_before_anything_has_run() -> None:
    empty = Report("w", "auto", [PredicateLine("p", "row")], rows=0, kept=0)
    assert "No rows seen yet" in str(empty)
    assert empty.overhead == 0.0
