"""The report: what a filter has seen, learnt and saved, for a terminal, a notebook or a file."""

from __future__ import annotations

import html
import io
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from eddyline.journal import Record

CHANGES_SHOWN = 12


def as_text(shown: RenderableType, width: int = 110) -> str:
    """Return what a terminal of this width would show, without colours.

    Examples
    --------
    >>> as_text("three rows")
    'three rows'

    """
    buffer = io.StringIO()
    Console(file=buffer, width=width, force_terminal=False).print(shown)
    return buffer.getvalue().rstrip()


@dataclass(frozen=True, slots=True)
class PredicateLine:
    """The numbers of one predicate. `kind` is "spark" for those that Spark evaluates itself."""

    name: str
    kind: str
    seen: int = 0
    passed: int = 0
    failed: int = 0
    profiled: int = 0
    busy_us: float = 0.0
    written_seen: float = 0.0

    @property
    def selectivity(self) -> float | None:
        """The share of rows that it let through, of those that reached it."""
        return self.passed / self.seen if self.seen else None

    @property
    def cost_us(self) -> float | None:
        """Microseconds a row."""
        return self.busy_us / self.seen if self.seen else None


@dataclass(frozen=True, slots=True)
class ClassLine:
    """A class of rows: which rows are in it, the way they go, and what that saves.

    Parameters
    ----------
    rows_in_words
        The tests that lead to it.
    route
        The predicates in the order they are visited; `a|b` where either may come first.
    where
        Whether Spark or Python routes these rows.
    share
        Of all rows: as counted, or as expected from the sample.
    cost_us, single_us
        What a row of it costs on its route, and would in the best single order.
    """

    rows_in_words: str
    route: str
    where: str
    share: float
    cost_us: float
    single_us: float

    @property
    def saving(self) -> float:
        """Share of the best single order's cost that the class saves."""
        return 1.0 - self.cost_us / self.single_us if self.single_us else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "rows": self.rows_in_words,
            "route": self.route,
            "where": self.where,
            "share": self.share,
            "cost_us": self.cost_us,
            "single_us": self.single_us,
            "saving": self.saving,
        }


@dataclass(frozen=True)
class Report:
    """What was learnt and saved. Print it, show it in a notebook, or take the numbers from it.

    Parameters
    ----------
    name, policy
        Of the filter.
    lines
        One for each predicate, in written order.
    rows, kept
        Rows that reached Python, and rows that passed everything.
    orders
        The orders in use, most used first, each with the number of workers that use it.
    changes
        The journal's records of changes of the order.
    profiling_us, deciding_us, routing_us
        Time spent on evaluating rows only to learn from, on drawing conclusions, and on telling
        rows apart and sending them on their way.
    budget
        What profiling may take, as a share of the time inside predicates.
    classes
        Classes of rows with routes of their own.
    rejected
        Columns that were considered to tell classes apart, and why they do not.
    pairs
        With content-based routing: which column classifies rows for which predicate.

    Examples
    --------
    >>> report = Report("where", "agreedy",
    ...     [PredicateLine("calm", "row", seen=100, passed=10, busy_us=200.0, written_seen=100),
    ...      PredicateLine("short", "row", seen=10, passed=5, busy_us=10.0, written_seen=10)],
    ...     rows=100, kept=5)
    >>> report.evaluations, report.evaluations_by_spark
    (110, 200)

    """

    name: str
    policy: str
    lines: Sequence[PredicateLine]
    rows: int
    kept: int
    orders: Sequence[tuple[list[str], int]] = ()
    changes: Sequence[Record] = field(default_factory=list)
    profiling_us: float = 0.0
    deciding_us: float = 0.0
    routing_us: float = 0.0
    budget: float | None = None
    classes: Sequence[ClassLine] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)

    @property
    def _routed(self) -> list[PredicateLine]:
        return [line for line in self.lines if line.kind != "spark" or line.seen]

    @property
    def evaluations(self) -> int:
        """Evaluations of Python predicates and lookups, those for learning included."""
        return sum(line.seen + line.profiled for line in self._routed)

    @property
    def evaluations_as_written(self) -> int:
        """An estimate of what the written order would have needed."""
        return round(sum(line.written_seen for line in self._routed))

    @property
    def evaluations_by_spark(self) -> int:
        """What Spark's own filter does: every predicate on every row."""
        return self.rows * len(self._routed)

    @property
    def busy_us(self) -> float:
        """Time inside predicates, for rows that had to be judged."""
        return sum(line.busy_us for line in self._routed)

    @property
    def overhead(self) -> float:
        """Share of the time that went into routing, profiling and learning."""
        whole_us = self.busy_us + self._overhead_us
        return self._overhead_us / whole_us if whole_us else 0.0

    @property
    def _overhead_us(self) -> float:
        return self.profiling_us + self.deciding_us + self.routing_us

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "name": self.name,
            "policy": self.policy,
            "rows": self.rows,
            "kept": self.kept,
            "evaluations": self.evaluations,
            "evaluations_as_written": self.evaluations_as_written,
            "evaluations_by_spark": self.evaluations_by_spark,
            "busy_us": self.busy_us,
            "profiling_us": self.profiling_us,
            "deciding_us": self.deciding_us,
            "routing_us": self.routing_us,
            "overhead": self.overhead,
            "budget": self.budget,
            "orders": [{"order": order, "workers": workers} for order, workers in self.orders],
            "predicates": [
                {
                    "name": line.name,
                    "kind": line.kind,
                    "seen": line.seen,
                    "passed": line.passed,
                    "failed": line.failed,
                    "profiled": line.profiled,
                    "selectivity": line.selectivity,
                    "cost_us": line.cost_us,
                }
                for line in self.lines
            ],
            "changes": [record.to_dict() for record in self.changes],
            "classes": [line.to_dict() for line in self.classes],
            "rejected": dict(self.rejected),
            "pairs": dict(self.pairs),
        }

    # --- views -------------------------------------------------------------------------------

    def _summary(self) -> list[str]:
        if not self._routed and self.classes:
            return ["Spark evaluates all predicates itself, each class of rows in its own order."]
        if not self._routed:
            return ["Spark evaluates all predicates itself; there is nothing to route."]
        if self.rows == 0:
            return ["No rows seen yet. Run an action on the filtered DataFrame, or start a stream."]
        lines = [
            f"{self.rows:,} rows reached Python, {self.kept:,} kept",
            f"evaluations: {self.evaluations:,} done"
            f" | about {self.evaluations_as_written:,} in the written order"
            f" | {self.evaluations_by_spark:,} in Spark's own filter",
            f"time in predicates {self.busy_us / 1e6:.2f} s, routing and learning "
            f"{self._overhead_us / 1e6:.2f} s ({self.overhead:.1%})",
        ]
        if self.orders:
            shown = [
                f"{' → '.join(order)}" + (f" ({workers} workers)" if workers > 1 else "")
                for order, workers in self.orders[:3]
            ]
            lines.append("order in use: " + "; ".join(shown))
        return lines

    def _class_lines(self) -> list[str]:
        lines = [
            f"{own.share:>7.1%}  {own.rows_in_words} → {own.route}  "
            f"({own.cost_us:.2f} µs a row; one order for all: {own.single_us:.2f}, "
            f"saves {own.saving:.0%}) [{own.where}]"
            for own in self.classes
        ]
        if self.pairs:
            by_column = ", ".join(f"{name} by {column}" for name, column in self.pairs.items())
            lines.append(f"routed by content: {by_column}")
        if self.rejected:
            considered = ", ".join(f"{name} ({why})" for name, why in self.rejected.items())
            lines.append(f"columns that do not tell rows apart: {considered}")
        return lines

    def _change_lines(self) -> list[str]:
        return [str(record) for record in list(self.changes)[-CHANGES_SHOWN:]]

    def _cells(self, line: PredicateLine) -> list[str]:
        if line.kind == "spark" and not line.seen:
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

    _HEADINGS = ("predicate", "kind", "seen", "passed", "share", "µs a row", "raised on")

    def __rich__(self) -> RenderableType:
        table = Table(title=f"{self.name} (policy {self.policy})", title_justify="left")
        for number, heading in enumerate(self._HEADINGS):
            table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
        for line in self.lines:
            table.add_row(*[Text(cell) for cell in self._cells(line)])
        parts: list[RenderableType] = [table, *[Text(line) for line in self._summary()]]
        classes = self._class_lines()
        if self.classes:
            parts.append(Text("classes of rows:"))
        parts += [Text(line) for line in classes]
        changes = self._change_lines()
        if changes:
            more = len(self.changes) - len(changes)
            heading = f"order changes ({len(self.changes):,}"
            parts.append(Text(heading + (f", the last {len(changes)}):" if more else "):")))
            parts += [Text(line) for line in changes]
        return Group(*parts)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in self._HEADINGS)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{"left" if number < 2 else "right"}">'
                f"{html.escape(cell)}</td>"
                for number, cell in enumerate(self._cells(line))
            )
            + "</tr>"
            for line in self.lines
        )
        summary = "".join(f"<p>{html.escape(line)}</p>" for line in self._summary())
        classes = "".join(f"<li>{html.escape(line)}</li>" for line in self._class_lines())
        changes = "".join(f"<li>{html.escape(line)}</li>" for line in self._change_lines())
        return (
            f"<div class='eddyline'><h4>{html.escape(self.name)} "
            f"(policy {html.escape(self.policy)})</h4>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{summary}"
            + (f"<ul>{classes}</ul>" if classes else "")
            + (f"<ul>{changes}</ul>" if changes else "")
            + "</div>"
        )

    def to_html(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the report as a page that needs nothing else; return where it is."""
        target = pathlib.Path(path)
        target.write_text(_PAGE.format(title=html.escape(self.name), body=self._repr_html_()))
        return target


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; color: #1c2733 }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: .35rem .7rem; border-bottom: 1px solid #d8dfe6 }}
td {{ font-variant-numeric: tabular-nums }}
th {{ text-align: left; background: #f2f5f8 }}
li {{ font-family: ui-monospace, monospace; font-size: 13px; white-space: pre-wrap }}
</style></head><body>{body}</body></html>
"""
