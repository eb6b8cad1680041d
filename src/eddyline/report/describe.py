"""From numbers to sentences and tables: what the report of a filter says."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
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

ACTIONS_SHOWN = 8
CHANGES_SHOWN = 12
WORTH_IT = 0.01  # a saving below this share of the time spent is none
ORDERS_SHOWN = 3
NAME_CELLS_MAX = 40  # of a predicate's name in a sentence; tables of pages have the whole name


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
    if not report.routed:
        return _native_conclusion(report.native_orders)
    if report.rows == 0:
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


def _native_conclusion(lines: Sequence[NativeOrderLine]) -> list[str]:
    """Return what another order of native conditions saves, as far as sampled rows tell."""
    written_us = sum(line.written_us for line in lines)
    if not written_us:
        return []
    saving = sum(line.written_us * line.saving for line in lines) / written_us
    if saving < WORTH_IT:
        return [
            "Not worth it here: no other order was found to be faster, and df.filter evaluates the "
            "same."
        ]
    return [
        f"Saves about {saving:.0%} of the time in native conditions against the written order, "
        f"which is that of df.filter (sampled rows; Spark counts no rows of native conditions)."
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
        f"order in Spark: {order} ({'; '.join(costs)}; saves {line.saving:z.0%}, "
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
    others = 1.0 - sum(line.share for line in classes)
    has_others = others >= 0.0005 and len({line.where for line in classes}) == 1
    words = f"; the other {others:.1%} of the rows took one order" if has_others else ""
    return Table(columns, rows, title=f"classes of rows{words}")
