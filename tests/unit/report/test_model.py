"""The numbers of a filter's report, and what it says."""

from __future__ import annotations

import json

from eddyline.journal import Record
from eddyline.journal.events import DriftDetected
from eddyline.report import ActionLine, NativeOrderLine, PredicateLine, Report
from tests.unit.report.examples import filter_report


def test_text_has_every_number_a_reader_looks_for() -> None:
    text = " ".join(str(filter_report()).split())
    for expected in (
        "name (policy policy)",
        "native in Spark",
        "calm kind 1,000 100 10.0% 5.00 2",
        "known lookup 100 50 50.0% 1.00",
        "1,000 rows reached Python, 50 kept",
        "evaluations: 1,135 done (35 of them to learn) | about 1,400 in the written order "
        "| 2,000 in Spark's own filter",
        "covers the first action on each of 2 DataFrames. Spark observes no later action",
        'rows that no predicate dropped, and on which one raised, were dropped (on_error="drop")',
        "DataFrame 1 600 30 700 4.0 ms",
        "all 1,000 50 1,135 5.5 ms",
        "time of all workers together: in predicates 0.01 s, routing and learning 0.00 s (7.3%)",
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


def two_lines(first_us: float, second_us: float, **options) -> Report:
    lines = [
        PredicateLine("a", "row", seen=100, passed=10, busy_us=first_us, written_seen=10),
        PredicateLine("b", "row", seen=1000, passed=100, busy_us=second_us, written_seen=1000),
    ]
    return Report("w", "auto", lines, rows=1000, kept=10, **options)


def test_it_ends_with_what_was_saved() -> None:
    saved = Report(
        "w",
        "auto",
        [
            PredicateLine("a", "row", seen=1000, passed=100, busy_us=1e5, written_seen=500),
            PredicateLine("b", "row", seen=100, passed=50, busy_us=1e5, written_seen=1000),
        ],
        rows=1000,
        kept=50,
        routing_us=5e4,
    )
    assert (saved.as_written_us, saved.by_spark_us, saved.saved_us) == (1.05e6, 1.1e6, 8e5)
    assert str(saved).endswith(
        "Saved about 0.80 s against the written order (1.05 s) and about 0.85 s against\n"
        "Spark's own filter (1.10 s): the filter took 0.25 s (time of all workers\ntogether)."
    )


def test_it_ends_with_that_it_is_not_worth_it() -> None:
    costly = two_lines(1e3, 1e5, routing_us=9e5)
    assert " ".join(str(costly).split()).endswith(
        "Not worth it here: the filter took 1.00 s, Spark's own would take about 0.11 s (time of "
        "all workers together): use df.filter."
    )
    alone = [PredicateLine("a", "row", seen=10, passed=5, busy_us=100.0, written_seen=10)]
    text = str(Report("w", "auto", alone, rows=10, kept=5))
    assert "there is one predicate and so nothing to order" in text
    assert text.endswith("use df.filter.")


def test_a_lookup_alone_is_a_join() -> None:
    alone = [PredicateLine("a", "lookup", seen=10, passed=5, busy_us=100.0, written_seen=10)]
    assert str(Report("w", "auto", alone, rows=10, kept=5)).endswith("use a semi- or anti-join.")


def test_the_written_order_may_be_as_good() -> None:
    text = " ".join(str(two_lines(1e5, 1e5)).split())
    assert "Saved about 0.90 s against Spark's own filter (1.10 s), but nothing against" in text


def test_what_a_stream_covers() -> None:
    report = two_lines(1e5, 1e5, actions=[ActionLine("stream 1", 12, 1000, 10, 1100, 2e5)])
    assert "covers 12 micro-batches\n" in str(report)


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


def test_rows_that_did_not_reach_a_predicate_cost_what_profiles_show() -> None:
    line = PredicateLine(
        "slow", "row", seen=10, busy_us=1_000.0, profiled=20, profiled_us=100.0, written_seen=100
    )
    assert (line.cost_us, line.unseen_us) == (100.0, 5.0)
    assert line.on_all_us(110) == 1_000.0 + 100 * 5.0
    assert line.as_written_us(110) == 100 * 1_500.0 / 110  # as all rows


def test_rows_that_took_the_written_order_count_as_measured() -> None:
    line = PredicateLine(
        "slow", "row", 50, 10, busy_us=900.0, written_seen=50, in_order_seen=50, in_order_us=900.0
    )
    assert line.as_written_us(1_000) == 900.0


def test_a_profile_of_few_rows_says_no_more_than_calls_on_many_where_calls_cost() -> None:
    pandas = PredicateLine("p", "pandas", 1_000, 500, busy_us=1e3, profiled=5, profiled_us=1e4)
    assert pandas.unseen_us == 1.0


def native(order: tuple[str, ...], order_us: float) -> str:
    line = NativeOrderLine(("a", "b"), order, 500, 4.0, order_us, is_timed=True)
    lines = [PredicateLine("a", "spark"), PredicateLine("b", "spark")]
    return " ".join(str(Report("w", "mesh", lines, 0, 0, native_orders=[line])).split())


def test_a_report_of_native_conditions_ends_with_what_their_order_saves() -> None:
    assert "Saves about 25% of the time in native conditions" in native(("b", "a"), 3.0)
    assert "Not worth it here: no other order was found to be faster" in native(("a", "b"), 4.0)
