"""Whatever users wrote is shown as they wrote it; text fits 80 columns; pages stand alone."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from eddyline.journal import Record
from eddyline.journal.events import ClassesFound, OrderChanged
from eddyline.report import ClassLine, PredicateLine, QueryState, QueryStates, Report, RunReport
from eddyline.report.describe import class_table
from eddyline.report.document import Column, Document, Items, Table
from eddyline.report.text import column_widths, to_text
from eddyline.report.view import View
from tests.unit.report.examples import filter_report, run_report

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "div", "h4", "h5", "p", "ul", "li"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
WIDE = 2_000  # wide enough that nothing is shortened or wrapped


def names_of(make) -> list[str]:
    """Return the names of all texts that a report is made of."""
    names: list[str] = []
    make(lambda name: names.append(name) or name)
    return names


FIELDS = [(make, name) for make in (filter_report, run_report) for name in names_of(make)]
HOSTILE = {
    "markup of Rich": ("RLIKE '[a-z]+' [/docs] [red]", "RLIKE '[a-z]+' [/docs] [red]"),
    "a script": ("<script>alert('&')</script>", "<script>alert('&')</script>"),
    "control characters": ("a\x1b[2J\x07\x00b", r"a\x1b[2J\x07\x00b"),
    "a lone surrogate": ("a\ud800b", r"a\ud800b"),
    "direction of writing": ("a\u202eb", r"a\u202eb"),
}


class Page(HTMLParser):
    """Collects the tags, the addresses and the text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(make, field: str, text: str) -> View:
    return make(lambda name: f"{name}:{text}" if name == field else name)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(("make", "field"), FIELDS)
def test_hostile_text_in_any_field_is_shown_and_does_nothing(make, field, kind) -> None:
    given, shown = HOSTILE[kind]
    report = hostile(make, field, given)
    in_terminal = to_text(report.document(), WIDE)
    assert f"{field}:{shown}" in in_terminal
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", in_terminal)
    buffer = io.StringIO()
    Console(file=buffer, width=WIDE, force_terminal=False).print(report)
    assert f"{field}:{shown}" in buffer.getvalue()
    source = report._repr_html_()
    page = Page(source)
    assert f"{field}:{shown}" in page.text
    assert page.tags <= TAGS
    (in_terminal + source).encode("utf-8")


@pytest.mark.parametrize("make", [filter_report, run_report])
def test_a_page_stands_alone(make, tmp_path) -> None:
    report = hostile(make, "name", "<x>µ\ud800")
    path = report.to_html(tmp_path / "report.html")
    source = path.read_text(encoding="utf-8")
    page = Page(source)
    assert report._repr_html_() in source
    assert page.tags <= TAGS  # no script, link, img, iframe
    assert not page.attributes & {"href", "src"}
    assert "url(" not in source
    assert "@import" not in source
    assert "http" not in source


def test_a_page_shows_names_in_full() -> None:
    name = "is_written_in_english_or_in_another_language_that_the_model_was_trained_on"
    report = Report("f", "auto", [PredicateLine(name, "row", 10, 5)], rows=10, kept=5)
    assert name in report._repr_html_()
    assert name not in str(report)
    assert "is_written_in_english" in str(report)


PREDICATES = [
    "is_written_in_english_or_in_another_language_that_the_model_was_trained_on",
    "regexp_like(lower(body), '^(?:re|fw):.*[a-z]+@[a-z]+\\.example$') AND length(body) > 200",
    "lookup of sender_domain in the table of blocked domains of the last ninety days",
    "mark3",
]
SQL = "SELECT l.room, t.celsius, t.celsius * 9 / 5 + 32 AS fahrenheit FROM light l, temp t " * 3


def realistic_filter() -> Report:
    order = tuple(PREDICATES)
    found = ClassesFound(
        rows=4_096,
        saving_us=10.0,
        noise_us=0.5,
        single_us=30.0,
        explored=900,
        seconds=0.4,
        stopped="time",
        classes=("kind = 'alpha' → mark3 → " + PREDICATES[0],) * 3,
    )
    changed = OrderChanged(before=order, after=order[::-1], cost_before_us=60, cost_after_us=5.1)
    return Report(
        "spam",
        "agreedy",
        [
            PredicateLine(PREDICATES[1], "spark"),
            *[
                PredicateLine(name, "pandas", 1_234_567_890, 123_456_789, 1_234, 30, 5e12, 4e9)
                for name in PREDICATES
            ],
        ],
        rows=1_234_567_890,
        kept=123_456_789,
        orders=[(PREDICATES, 12), (PREDICATES[::-1], 4)],
        changes=[Record(changed, 123_456_789, "worker 12345"), Record(found, 1, "worker 1")],
        classes=[
            ClassLine(
                "kind in ('alpha', 'beta') and size <= 12.5",
                " → ".join(PREDICATES),
                "in Python",
                0.334,
                1234.5,
                2345.67,
            )
        ],
        rejected={"id": "grows with arrival order, so it cannot classify future rows"},
        pairs=dict.fromkeys(PREDICATES, "sender_domain"),
    )


def realistic_run() -> RunReport:
    names = ["hot", "alert_for_the_attic_when_nobody_is_at_home_and_the_light_is_still_on"]
    return RunReport(
        run_report().batches,
        QueryStates(
            [
                QueryState(name, SQL, "function", "paused", 123_456_789, "ValueError: " + SQL)
                for name in names
            ]
        ),
    )


@pytest.mark.parametrize("make", [realistic_filter, realistic_run])
def test_text_fits_80_columns_and_keeps_every_number(make) -> None:
    text = str(make())
    assert max(map(len, text.split("\n"))) <= 80
    assert "…" in text
    assert "123,456,789" in text
    buffer = io.StringIO()
    Console(file=buffer, width=80, force_terminal=False).print(make())
    assert [line.rstrip() for line in buffer.getvalue().rstrip().split("\n")] == text.split("\n")


def test_long_names_and_sql_are_shortened_and_errors_are_not() -> None:
    text = str(realistic_run())
    row = next(line for line in text.split("\n") if line.startswith("alert_for"))
    assert row.count("…") == 2
    error = "ValueError: " + " ".join(SQL.split())
    assert error in " ".join(text.split())


def test_rows_of_no_class_are_named_beside_the_classes() -> None:
    line = ClassLine("kind = a", "p → q", "in Python", 0.25, 1.0, 2.0)
    assert class_table([line]).title == (
        "classes of rows; the other 75.0% of the rows took one order"
    )
    assert class_table([line, replace(line, share=0.75)]).title == "classes of rows"
    assert class_table([line, replace(line, where="in Spark")]).title == "classes of rows"


def test_wide_characters_count_twice() -> None:
    columns = [Column("name", fit="shorten"), Column("seen", "right")]
    document = Document("t", [Table(columns, [["東京" * 40, "1,000"]])])
    assert to_text(document, 40).split("\n")[-1] == "東京" * 8 + "…  1,000"


def test_narrow_columns_leave_their_share_to_wide_ones() -> None:
    columns = [Column("a", fit="wrap"), Column("b", fit="shorten"), Column("c", fit="wrap")]
    assert column_widths(columns, [["x" * 5, "y" * 50, "z" * 50]], 49) == [5, 20, 20]


def test_items_are_wrapped_below_their_beginning() -> None:
    lines = to_text(Document("t", [Items("list", ["word " * 20, "end"])]), 40).split("\n")
    assert lines[:3] == ["t", "", "list"]
    assert [line[:6] for line in lines[3:]] == ["- word", "  word", "  word", "- end"]


def test_a_blank_line_stands_around_tables_and_lists_and_nowhere_else() -> None:
    table, items = Table([Column("a")], [["1"]]), Items("list", ["x"])
    text = to_text(Document("t", ["one", "two", table, items, "three"]))
    assert text == "t\none\ntwo\n\na\n─\n1\n\nlist\n- x\n\nthree"
