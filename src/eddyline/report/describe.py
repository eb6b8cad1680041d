"""From numbers to sentences and tables: what the reports of a filter and of a run say."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eddyline.report.characters import one_line, shorten
from eddyline.report.document import Column, Document, Items, Table

if TYPE_CHECKING:
    from eddyline.report.model import (
        ActionLine,
        ClassLine,
        NativeOrderLine,
        PredicateLine,
        Report,
    )
    from eddyline.report.run import JoinNumbers, QueryState, RunReport

ACTIONS_SHOWN = 8
CHANGES_SHOWN = 12
WORTH_IT = 0.01  # a saving below this share of the time spent is none
ORDERS_SHOWN = 3
RUN_SHOWN = 20  # queries, operators and errors in the report of a run
NAME_CELLS_MAX = 40  # of a predicate's name in a sentence; tables of pages have the whole name


# --- the report of a filter -----------------------------------------------------------------------


def describe_filter(report: Report) -> Document:
    """Return the report of `el.where` as a document."""
    blocks: list[str | Table | Items] = [predicate_table(report.lines), *_summary(report)]
    if len(report.actions) > 1:
        blocks.append(action_table(report.actions))
    blocks += [_native_order(line) for line in report.native_orders]
    if report.native_as_written:
        blocks.append(f"native predicates keep their written order: {report.native_as_written}")
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
    blocks += _conclusion(report)
    return Document(f"{report.name} (policy {report.policy})", blocks)


def _short(name: str) -> str:
    return shorten(one_line(name), NAME_CELLS_MAX)


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
        *_coverage(report.actions),
        f"{report.rows:,} rows reached Python, {report.kept:,} kept",
    ]
    if report.at_fault:
        became = "kept" if report.on_error == "keep" else "dropped"
        paragraphs.append(
            f"{report.at_fault:,} rows that no predicate dropped, and on which one raised, were "
            f'{became} (on_error="{report.on_error}")'
        )
    paragraphs += [
        f"evaluations: {report.evaluations:,} done"
        f" ({sum(line.profiled for line in report.routed):,} of them to learn)"
        f" | about {report.evaluations_as_written:,} in the written order"
        f" | {report.evaluations_by_spark:,} in Spark's own filter",
        f"time of all workers together: in predicates {report.busy_us / 1e6:.2f} s, routing and "
        f"learning {report.overhead_us / 1e6:.2f} s ({report.overhead:.1%})",
    ]
    if report.orders:
        orders = [
            " → ".join(map(_short, order)) + (f" ({workers} workers)" if workers > 1 else "")
            for order, workers in report.orders[:ORDERS_SHOWN]
        ]
        paragraphs.append("order in use: " + "; ".join(orders))
    return paragraphs


def _coverage(actions: Sequence[ActionLine]) -> list[str]:
    """Return what the numbers cover, and what they do not."""
    streams = [line for line in actions if _is_stream(line)]
    batches = sum(line.runs for line in actions) - sum(line.runs for line in streams)
    covered = []
    if batches:
        covered.append(
            "the first action on 1 DataFrame"
            if batches == 1
            else f"the first action on each of {batches:,} DataFrames"
        )
    if streams:
        covered.append(f"{sum(line.runs for line in streams):,} micro-batches")
    if not covered:
        return []
    sentence = f"covers {' and '.join(covered)}"
    if batches:
        sentence += (
            ". Spark observes no later action on the same DataFrame: to have one counted, apply "
            "the filter again"
        )
    return [sentence]


def _conclusion(report: Report) -> list[str]:
    """Return what using the filter saved, or that it is not worth it here."""
    if not report.routed or report.rows == 0:
        return []
    spent, by_spark = _seconds(report.spent_us), _seconds(report.by_spark_us)
    spark_saves = report.saved_against_spark_us
    if len(report.routed) == 1:
        return [
            f"Not worth it here: there is one predicate and so nothing to order. It took {spent}, "
            f"about {by_spark} of it in the predicate: use {_instead(report)}."
        ]
    if spark_saves < WORTH_IT * report.spent_us:
        return [
            f"Not worth it here: the filter took {spent}, Spark's own would take about {by_spark} "
            f"(time of all workers together): use {_instead(report)}."
        ]
    saved, written = report.saved_us, _seconds(report.as_written_us)
    against_spark = f"about {_seconds(spark_saves)} against Spark's own filter ({by_spark})"
    if saved < WORTH_IT * report.spent_us:
        return [
            f"Saved {against_spark}, but nothing against the written order ({written}): the filter "
            f"took {spent} (time of all workers together)."
        ]
    return [
        f"Saved about {_seconds(saved)} against the written order ({written}) and {against_spark}: "
        f"the filter took {spent} (time of all workers together)."
    ]


def _instead(report: Report) -> str:
    """Return what Spark has for the same predicates."""
    kinds = {line.kind for line in report.routed}
    if kinds == {"lookup"}:
        return "a semi- or anti-join"
    return "df.filter and a join" if "lookup" in kinds else "df.filter"


def _seconds(us: float) -> str:
    return f"{us / 1e6:,.2f} s" if us >= 10_000 else f"{us / 1e3:,.1f} ms"


def action_table(actions: Sequence[ActionLine]) -> Table:
    """Return what each action and each stream came to, and the sum."""
    columns = (
        Column("observed", fit="wrap"),
        Column("rows", "right"),
        Column("kept", "right"),
        Column("evaluations", "right"),
        Column("time", "right"),
    )
    whole = functools.reduce(lambda sums, line: sums.plus(line), actions)
    whole = dataclasses.replace(whole, name="all")
    rows = [
        [
            _action_name(line),
            f"{line.rows:,}",
            f"{line.kept:,}",
            f"{line.evaluations:,}",
            _seconds(line.busy_us),
        ]
        for line in (*actions[-ACTIONS_SHOWN:], whole)
    ]
    last = f" (the last {ACTIONS_SHOWN})" if len(actions) > ACTIONS_SHOWN else ""
    return Table(columns, rows, title=f"actions{last} and their sum")


def _action_name(line: ActionLine) -> str:
    return f"{line.name}, {line.runs:,} micro-batches" if _is_stream(line) else line.name


def _is_stream(line: ActionLine) -> bool:
    return line.name.startswith("stream")


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
        return [one_line(line.name), "in Spark", "", "", "", "", ""]
    return [
        one_line(line.name),
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
    joins = [batch.joins for batch in batches if batch.joins is not None]
    if joins:
        paragraphs += _describe_joins(joins)
    tables: list[str | Table | Items] = operator_tables(report)
    if joins and any(own.indexes for own in joins):
        tables.append(index_table(joins))
    tables += _run_queries(report)
    return Document("run of the engine", [*paragraphs, *tables])


def operator_tables(report: RunReport) -> list[str | Table | Items]:
    """Return for each stream its operators in the order they are visited, with their work."""
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
        Column("operator", fit="shorten"),
        Column("visits", "right"),
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
        title = f"operators of {stream} in the order they are visited, with their share of visits"
        if len(rows) < len(names):
            title += f" (the {len(rows)} of {len(names):,} that took longest)"
        tables.append(Table(columns, rows, title))
    return tables


def _run_queries(report: RunReport) -> list[str | Table | Items]:
    """Return the queries of a run: all of them, or those that match most and that cost most."""
    states, costs = list(report.queries), report.costs
    if report.full or len(states) <= RUN_SHOWN:
        return [*query_blocks(states, _count(states), costs)]
    matching = sorted(states, key=lambda state: -state.matched)[:RUN_SHOWN]
    title = f"{len(states):,} queries: the {RUN_SHOWN} with the most matches"
    blocks: list[str | Table | Items] = [*query_blocks(matching, title, costs)[:1]]
    if costs:
        costly = sorted(states, key=lambda state: -costs.get(state.name, 0.0))[:RUN_SHOWN]
        title = f"the {RUN_SHOWN} queries whose conditions took longest"
        blocks += query_blocks(costly, title, costs)[:1]
    blocks += query_blocks([state for state in states if state.error][:RUN_SHOWN])[1:]
    paused = sum(state.error is not None for state in states)
    more = f"; {paused:,} are paused" if paused else ""
    blocks.append(f"run.report(full=True) shows all {len(states):,} queries{more}")
    return blocks


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


def query_blocks(
    states: Sequence[QueryState], title: str = "", costs: Mapping[str, float] | None = None
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

    """
    columns = [
        Column("query", fit="shorten"),
        Column("state"),
        Column("matched", "right"),
        Column("sink"),
        Column("SQL", fit="shorten"),
    ]
    rows = [
        [state.name, state.state, f"{state.matched:,}", state.sink, one_line(state.sql)]
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


def _count(states: Sequence[QueryState]) -> str:
    return "1 query" if len(states) == 1 else f"{len(states):,} queries"
