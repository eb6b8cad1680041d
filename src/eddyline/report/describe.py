"""From numbers to sentences and tables: what the reports of a filter and of a run say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eddyline.report.characters import one_line, shorten
from eddyline.report.document import Column, Document, Items, Table

if TYPE_CHECKING:
    from eddyline.report.model import ClassLine, NativeOrderLine, PredicateLine, Report
    from eddyline.report.run import JoinNumbers, QueryState, RunReport

CHANGES_SHOWN = 12
ORDERS_SHOWN = 3
TICKETS_SHOWN = 8
NAME_CELLS_MAX = 40  # of a predicate's name in a sentence; tables of pages have the whole name


# --- the report of a filter -----------------------------------------------------------------------


def describe_filter(report: Report) -> Document:
    """Return the report of `el.where` as a document."""
    blocks: list[str | Table | Items] = [predicate_table(report.lines), *_summary(report)]
    blocks += [_native_order(line) for line in report.native_orders]
    if report.not_reordered:
        reasons = [f"{_short(name)}: {reason}" for name, reason in report.not_reordered.items()]
        blocks.append(Items("native predicates that keep their written place", reasons))
    if report.classes:
        blocks.append(class_table(report.classes))
    if report.pairs:
        pairs = [f"{_short(predicate)} by {column}" for predicate, column in report.pairs.items()]
        blocks.append("routed by content: " + ", ".join(pairs))
    if report.rejected:
        rejected = [f"{column}: {reason}" for column, reason in report.rejected.items()]
        blocks.append(Items("columns that cannot classify rows", rejected))
    if report.changes:
        records = list(report.changes)[-CHANGES_SHOWN:]
        last = f", the last {len(records)}" if len(records) < len(report.changes) else ""
        title = f"changes of routes ({len(report.changes):,}{last})"
        blocks.append(Items(title, [str(record).strip() for record in records]))
    return Document(f"{report.name} (policy {report.policy})", blocks)


def _short(name: str) -> str:
    return shorten(name, NAME_CELLS_MAX)


def _summary(report: Report) -> list[str]:
    if not report.routed:
        if report.classes:
            return ["Spark evaluates all predicates itself, each class of rows in its own order."]
        if any(tuple(line.order) != tuple(line.written) for line in report.native_orders):
            return ["Spark evaluates all predicates itself, in an order learnt from sampled rows."]
        if report.native_orders or report.not_reordered:
            return ["Spark evaluates all predicates itself, in their written order."]
        return ["Spark evaluates all predicates itself; there is nothing to route."]
    if report.rows == 0:
        return ["No rows seen yet. Run an action on the filtered DataFrame, or start a stream."]
    paragraphs = [
        f"{report.rows:,} rows reached Python, {report.kept:,} kept",
        f"evaluations: {report.evaluations:,} done"
        f" | about {report.evaluations_as_written:,} in the written order"
        f" | {report.evaluations_by_spark:,} in Spark's own filter",
        f"time in predicates {report.busy_us / 1e6:.2f} s, routing and learning "
        f"{report.overhead_us / 1e6:.2f} s ({report.overhead:.1%})",
    ]
    if report.orders:
        orders = [
            " → ".join(map(_short, order)) + (f" ({workers} workers)" if workers > 1 else "")
            for order, workers in report.orders[:ORDERS_SHOWN]
        ]
        paragraphs.append("order in use: " + "; ".join(orders))
    return paragraphs


def _native_order(line: NativeOrderLine) -> str:
    """Return what was reordered in Spark, and what it saves."""
    source = "timed on" if line.is_timed else "estimated from"
    costs = [f"{line.written_us:.2f} µs a row as written"]
    if tuple(line.order) != tuple(line.written):
        costs.insert(0, f"{line.order_us:.2f} µs a row")
    if line.classes_us is not None:
        costs.append(f"{line.classes_us:.2f} with classes of rows")
        if not line.has_classes:
            costs[-1] += ", which are not used"
    order = " → ".join(map(_short, line.order))
    return (
        f"order in Spark: {order} ({'; '.join(costs)}; saves {line.saving:.0%}, "
        f"{source} {line.rows:,} sampled rows)"
    )


def predicate_table(lines: Sequence[PredicateLine]) -> Table:
    """Return what each predicate saw, passed and cost."""
    columns = (
        Column("predicate", fit="shorten"),
        Column("kind"),
        Column("seen", "right"),
        Column("passed", "right"),
        Column("share", "right"),
        Column("µs a row", "right"),
        Column("raised on", "right"),
    )
    return Table(columns, [_predicate_cells(line) for line in lines])


def _predicate_cells(line: PredicateLine) -> list[str]:
    if not line.is_routed:
        return [line.name, "in Spark", "", "", "", "", ""]
    return [
        line.name,
        line.kind,
        f"{line.seen:,}",
        f"{line.passed:,}",
        "" if line.selectivity is None else f"{line.selectivity:.1%}",
        "" if line.cost_us is None else f"{line.cost_us:.2f}",
        f"{line.failed:,}" if line.failed else "",
    ]


def class_table(classes: Sequence[ClassLine]) -> Table:
    """Return the classes of rows, their routes, and what the routes save."""
    columns = (
        Column("share", "right"),
        Column("rows", fit="wrap"),
        Column("order", fit="wrap"),
        Column("µs a row", "right"),
        Column("one order", "right"),
        Column("saves", "right"),
        Column("routed"),
    )
    rows = [
        [
            f"{line.share:.1%}",
            line.rows_in_words,
            line.route,
            f"{line.cost_us:.2f}",
            f"{line.single_us:.2f}",
            f"{line.saving:.0%}",
            line.where,
        ]
        for line in classes
    ]
    return Table(columns, rows, title="classes of rows")


# --- the report of a run --------------------------------------------------------------------------


def describe_run(report: RunReport) -> Document:
    """Return the report of a run of an engine as a document."""
    batches = report.batches
    seconds = sum(batch.seconds for batch in batches)
    matches = sum(batch.matches for batch in batches)
    late = sum(batch.late for batch in batches)
    paragraphs = [
        f"{len(batches):,} micro-batch{'' if len(batches) == 1 else 'es'}, {report.rows:,} rows, "
        f"{matches:,} matches, "
        f"{seconds:.1f} s; a row visited {report.visits_per_row:.2f} shared operators"
    ]
    if late:
        paragraphs.append(f"{late:,} rows came late")
    if batches and batches[-1].tickets:
        tickets = sorted(batches[-1].tickets.items(), key=lambda item: -item[1])
        shares = [f"{name} {share:.0%}" for name, share in tickets[:TICKETS_SHOWN]]
        paragraphs.append("shares of tickets, largest visited first: " + ", ".join(shares))
    joins = [batch.joins for batch in batches if batch.joins is not None]
    if joins:
        paragraphs += _describe_joins(joins)
    tables: list[Table | Items] = []
    if joins and any(own.indexes for own in joins):
        tables.append(index_table(joins))
    tables += query_blocks(report.queries, title=_count(report.queries))
    return Document("run of the engine", [*paragraphs, *tables])


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
        f"opening state that others wrote and {tuning_s:.2f} s tuning indexes",
        f"join state: {last.state_rows:,} rows, {last.state_bytes / 1e6:,.1f} MB in "
        f"{last.state_files:,} files; {written / 1e6:,.1f} MB written",
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


def query_blocks(states: Sequence[QueryState], title: str = "") -> list[Table | Items]:
    """Return a table of queries, and a list of their errors if there are any."""
    columns = (
        Column("query", fit="shorten"),
        Column("state"),
        Column("matched", "right"),
        Column("sink"),
        Column("SQL", fit="shorten"),
    )
    rows = [
        [state.name, state.state, f"{state.matched:,}", state.sink, one_line(state.sql)]
        for state in states
    ]
    blocks: list[Table | Items] = [Table(columns, rows, title)]
    errors = [f"{state.name}: {one_line(state.error)}" for state in states if state.error]
    if errors:
        blocks.append(Items("errors", errors))
    return blocks


def _count(states: Sequence[QueryState]) -> str:
    return "1 query" if len(states) == 1 else f"{len(states):,} queries"
