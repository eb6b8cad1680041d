"""From numbers to sentences and tables: what the report of an engine's run says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eddyline.report.characters import one_line
from eddyline.report.document import Column, Document, Items, Table

if TYPE_CHECKING:
    from eddyline.report.run import JoinNumbers, QueryState, RunReport

RUN_SHOWN = 20  # queries, operators and errors in the report of a run
_FROM = re.compile(r"\bFROM\b", re.IGNORECASE)


def describe_run(report: RunReport) -> Document:
    """Return the report of a run of an engine as a document."""
    batches = report.batches
    seconds = sum(batch.seconds for batch in batches)
    matches = sum(batch.matches for batch in batches)
    late = sum(batch.late for batch in batches)
    paragraphs = [
        f"{_number(len(batches), 'micro-batch', 'micro-batches')} with "
        f"{_number(report.rows, 'row')} took {seconds:.1f} s; "
        f"{_number(matches, 'match', 'matches')} (a row that two queries match counts twice)",
        f"workers spent {sum(batch.busy_s for batch in batches):.1f} s on matching; a row was "
        f"checked by {report.visits_per_row:.2f} operators on average, each for all queries",
    ]
    if late:
        paragraphs.append(f"{_number(late, 'row')} came later than the delay of the stream allows")
    joins = [batch.joins for batch in batches if batch.joins is not None]
    if joins:
        paragraphs += _describe_joins(joins)
    tables: list[str | Table | Items] = operator_tables(report)
    if joins and any(own.indexes for own in joins):
        tables.append(index_table(joins))
    tables += _run_queries(report)
    return Document("run of the engine", [*paragraphs, *tables])


def operator_tables(report: RunReport) -> list[str | Table | Items]:
    """Return for each stream its operators in the order rows meet them, with their work."""
    visits: dict[tuple[str, str], int] = {}
    busy_s: dict[tuple[str, str], float] = {}
    latest: dict[str, list[str]] = {}
    for batch in report.batches:
        for stream, by_name in batch.operators.items():
            latest[stream] = list(by_name)
            for name, numbers in by_name.items():
                key = (stream, name)
                visits[key] = visits.get(key, 0) + numbers.visits
                busy_s[key] = busy_s.get(key, 0.0) + numbers.busy_s
    columns = (
        Column("column or condition", fit="shorten"),
        Column("rows checked", "right"),
        Column("share", "right"),
        Column("time", "right"),
    )
    tables: list[str | Table | Items] = []
    for stream, names in latest.items():
        costliest = sorted(names, key=lambda name: -busy_s[stream, name])
        shown = set(names if report.full else costliest[:RUN_SHOWN])
        total = max(sum(visits[stream, name] for name in names), 1)
        rows = [
            [
                name,
                f"{visits[stream, name]:,}",
                f"{visits[stream, name] / total:.0%}",
                f"{busy_s[stream, name]:.2f} s",
            ]
            for name in names
            if name in shown
        ]
        title = f"operators of stream {stream}, in the order in which rows meet them"
        if len(rows) < len(names):
            title += f" (the {len(rows)} of {len(names):,} that took longest)"
        tables.append(Table(columns, rows, title))
    if tables:
        tables.append(
            "A column stands for all comparisons of all queries with it; a condition is evaluated "
            "once for all queries that have it."
        )
    return tables


def _run_queries(report: RunReport) -> list[str | Table | Items]:
    """Return the queries of a run: all of them, or those that match most and that cost most."""
    states, costs = list(report.queries), report.costs
    if report.full or len(states) <= RUN_SHOWN:
        return [*query_blocks(states, _count(states), costs), *_legend(costs)]
    matching = sorted(states, key=lambda state: -state.matched)[:RUN_SHOWN]
    title = f"{len(states):,} queries: the {RUN_SHOWN} with the most matches"
    blocks: list[str | Table | Items] = [*query_blocks(matching, title, costs, is_brief=True)[:1]]
    if costs:
        costly = sorted(states, key=lambda state: -costs.get(state.name, 0.0))[:RUN_SHOWN]
        title = f"the {RUN_SHOWN} queries whose conditions took longest"
        blocks += query_blocks(costly, title, costs, is_brief=True)[:1]
    blocks += _legend(costs)
    paused = [state for state in states if state.error]
    blocks += query_blocks(paused[:RUN_SHOWN])[1:]
    last = f"run.report(full=True) shows all {len(states):,} queries and all operators"
    if paused:
        last += f"; {len(paused):,} {'is' if len(paused) == 1 else 'are'} paused"
        if len(paused) > RUN_SHOWN:
            last += f", with the errors of the first {RUN_SHOWN} above"
    return [*blocks, last]


def _legend(costs: Mapping[str, float]) -> list[str]:
    """Return what the columns of a table of queries mean."""
    time = "; time: of workers in this run, what queries share in equal parts" if costs else ""
    return [f"matched: rows since the query was added{time}"]


def index_table(joins: Sequence[JoinNumbers]) -> Table:
    """Return what indexes over join state are like after the last micro-batch, and their cost."""
    columns = (
        Column("state", fit="wrap"),
        Column("partitions", fit="wrap"),
        Column("searched by", fit="wrap"),
        Column("bytes a row", "right"),
        Column("build", "right"),
    )
    latest = {name: numbers for own in joins for name, numbers in own.indexes.items()}
    rows = []
    for name, last in latest.items():
        partitions = [f"{count} with {bits}" for bits, count in last.configurations.items()]
        every = [own.indexes[name] for own in joins if name in own.indexes]
        searches: dict[tuple[str, str], int] = {}
        for numbers in every:
            for pattern, by_index in numbers.searches.items():
                for index, probes in by_index.items():
                    searches[pattern, index] = searches.get((pattern, index), 0) + probes
        ranked = sorted(searches.items(), key=lambda item: -item[1])
        total = max(sum(searches.values()), 1)
        rows.append(
            [
                name,
                ", ".join(partitions),
                ", ".join(f"{p} {n / total:.0%} ({index})" for (p, index), n in ranked),
                f"{last.bytes / max(last.rows, 1):.1f}",
                f"{sum(numbers.build_s for numbers in every):.2f} s",
            ]
        )
    return Table(columns, rows, title="indexes over join state")


def _describe_joins(joins: Sequence[JoinNumbers]) -> list[str]:
    """Return what joining streams came to, in sentences."""
    rows, results = sum(own.rows for own in joins), sum(own.results for own in joins)
    matches, candidates = sum(own.matches for own in joins), sum(own.candidates for own in joins)
    busy_s, opening_s = sum(own.busy_s for own in joins), sum(own.opening_s for own in joins)
    tuning_s = sum(own.tuning_s for own in joins)
    written, last = sum(own.bytes_written for own in joins), joins[-1]
    lines = [
        f"joins: {rows:,} rows gave {results:,} results; {candidates / max(matches, 1):.2f} stored "
        f"rows compared per match; workers joined for {busy_s:.2f} s, of which {opening_s:.2f} s "
        f"reading rows that other workers stored and {tuning_s:.2f} s tuning indexes",
        f"join state: {last.state_rows:,} rows, {last.state_bytes / 1e6:,.1f} MB in "
        f"{_number(last.state_files, 'file')}; {written / 1e6:,.1f} MB written",
    ]
    if last.copies > 1:
        lines.append(f"a row went to {last.copies:.2f} tasks or states on average")
    late: dict[str, int] = {}
    for own in joins:
        for stream, count in own.late.items():
            late[stream] = late.get(stream, 0) + count
    lines += [
        f"{count:,} rows of {stream} were too late for every join that wants them, and left out"
        for stream, count in late.items()
    ]
    return lines


def describe_queries(states: Sequence[QueryState]) -> Document:
    """Return the queries of an engine as a document."""
    return Document(_count(states), query_blocks(states))


def query_blocks(
    states: Sequence[QueryState],
    title: str = "",
    costs: Mapping[str, float] | None = None,
    is_brief: bool = False,
) -> list[Table | Items]:
    """Return a table of queries, and a list of their errors if there are any.

    Parameters
    ----------
    states
        The queries.
    title
        Of the table.
    costs
        Seconds spent on each, by name; without any, the table does not show them.
    is_brief
        Whether to leave out what is selected.

    """
    columns = [
        Column("query", fit="shorten"),
        Column("state"),
        Column("matched", "right"),
        Column("sink"),
        Column("SQL", fit="shorten"),
    ]
    show_sql = _from if is_brief else one_line
    rows = [
        [state.name, state.state, f"{state.matched:,}", state.sink, show_sql(state.sql)]
        for state in states
    ]
    if costs:
        columns.insert(3, Column("time", "right"))
        for state, row in zip(states, rows, strict=True):
            row.insert(3, f"{costs.get(state.name, 0.0):.3f} s")
    blocks: list[Table | Items] = [Table(columns, rows, title)]
    errors = [f"{state.name}: {one_line(state.error)}" for state in states if state.error]
    if errors:
        blocks.append(Items("errors", errors))
    return blocks


def _from(sql: str) -> str:
    """Return a query from FROM on: in a narrow table, queries would differ in nothing else.

    Examples
    --------
    >>> _from("SELECT extract(YEAR FROM ts) y, lux FROM light WHERE lux > 5")
    '… FROM light WHERE lux > 5'

    """
    text = one_line(sql)
    for found in _FROM.finditer(text):
        before = text[: found.start()]
        if before.count("(") == before.count(")"):
            return f"… {text[found.start() :]}"
    return text


def _number(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> _number(1, "row"), _number(2_000, "match", "matches")
    ('1 row', '2,000 matches')

    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _count(states: Sequence[QueryState]) -> str:
    return "1 query" if len(states) == 1 else f"{len(states):,} queries"
