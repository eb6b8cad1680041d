"""The report of `el.where`: its numbers. `describe` says how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eddyline.journal import Record
from eddyline.report.describe import describe_filter
from eddyline.report.document import Document
from eddyline.report.view import View


@dataclass(frozen=True, slots=True)
class PredicateLine:
    """The numbers of one predicate.

    Parameters
    ----------
    name
        Name of the predicate.
    kind
        "row", "lookup" and so on; "spark" for a native condition.
    seen, passed, failed
        Rows that it was evaluated on, that it answered with True, and that it raised an error on.
    profiled, profiled_us
        Further evaluations that served only to learn, and their time. They are of rows that had
        not reached the predicate, picked at random.
    busy_us
        Time inside the predicate, without profiling.
    written_seen
        Estimate of the rows it would have seen in the written order.
    in_order_seen, in_order_us
        Rows that it did see in the written order, and their time.

    """

    name: str
    kind: str
    seen: int = 0
    passed: int = 0
    failed: int = 0
    profiled: int = 0
    busy_us: float = 0.0
    written_seen: float = 0.0
    profiled_us: float = 0.0
    in_order_seen: int = 0
    in_order_us: float = 0.0

    @property
    def is_routed(self) -> bool:
        """Whether Eddyline evaluates it; Spark evaluates the other native conditions itself."""
        return self.kind != "spark" or self.seen > 0

    @property
    def selectivity(self) -> float | None:
        """Share of the rows seen that it answered with True."""
        return self.passed / self.seen if self.seen else None

    @property
    def cost_us(self) -> float | None:
        """Microseconds a row, of the rows that reached it."""
        return self.busy_us / self.seen if self.seen else None

    @property
    def unseen_us(self) -> float:
        """Microseconds a row, of the rows that did not reach it; those may be quite different.

        A predicate that is called with whole columns is not taken to cost more on the few rows of
        a profile: most of that is the cost of a call.
        """
        reached_us = self.cost_us or 0.0
        if not self.profiled:
            return reached_us
        profiled_us = self.profiled_us / self.profiled
        return profiled_us if self.kind == "row" else min(profiled_us, reached_us or profiled_us)

    def on_all_us(self, rows: int) -> float:
        """Return the time for all rows, those included that did not reach it."""
        return self.busy_us + max(rows - self.seen, 0) * self.unseen_us

    def as_written_us(self, rows: int) -> float:
        """Return the time in the written order: as measured, where rows did take that order.

        The other rows that would have reached it are taken to be like all rows.
        """
        others = max(self.written_seen - self.in_order_seen, 0.0)
        return self.in_order_us + others * self.on_all_us(rows) / max(rows, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "seen": self.seen,
            "passed": self.passed,
            "failed": self.failed,
            "profiled": self.profiled,
            "selectivity": self.selectivity,
            "cost_us": self.cost_us,
        }


@dataclass(frozen=True, slots=True)
class ClassLine:
    """A class of rows: which rows belong to it, their route, and what the route saves.

    Parameters
    ----------
    rows_in_words
        The conditions on columns that define the class.
    route
        The predicates in the order they are visited; `a|b` where either may come first.
    where
        Whether the rows are routed "in Spark" or "in Python".
    share
        Share of all rows: counted, or expected from the sample.
    cost_us, single_us
        Cost of a row of the class on its route, and in the best single order.

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


@dataclass(frozen=True, slots=True)
class ActionLine:
    """What was observed of one action, or of one stream.

    Parameters
    ----------
    name
        What was run, in words.
    runs
        Number of actions or of micro-batches that the numbers are sums of.
    rows, kept
        Rows that reached Python, and rows that passed every predicate.
    evaluations
        Evaluations of routed predicates, those for learning included.
    busy_us
        Time inside predicates, for routing and for learning, in all workers together.

    """

    name: str
    runs: int = 0
    rows: int = 0
    kept: int = 0
    evaluations: int = 0
    busy_us: float = 0.0

    def plus(self, other: ActionLine) -> ActionLine:
        """Return the sum, under the name of this one."""
        return ActionLine(
            self.name,
            self.runs + other.runs,
            self.rows + other.rows,
            self.kept + other.kept,
            self.evaluations + other.evaluations,
            self.busy_us + other.busy_us,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "runs": self.runs,
            "rows": self.rows,
            "kept": self.kept,
            "evaluations": self.evaluations,
            "busy_us": self.busy_us,
        }


@dataclass(frozen=True, slots=True)
class NativeOrderLine:
    """What was learnt about native conditions that may be reordered.

    Parameters
    ----------
    written, order
        Names of the predicates, as written and in the best single order.
    rows
        Sampled rows that this was learnt from.
    written_us, order_us, classes_us
        Cost of a row in both orders, and with classes of rows where some were found.
    has_classes
        Whether the classes are in use.
    is_timed
        Whether these were timed; else they are computed from the cost of each condition and what
        it drops.

    """

    written: Sequence[str]
    order: Sequence[str]
    rows: int
    written_us: float
    order_us: float
    classes_us: float | None = None
    has_classes: bool = False
    is_timed: bool = False

    @property
    def saving(self) -> float:
        """Share of the written order's cost that is saved."""
        cost_us = self.order_us
        if self.has_classes and self.classes_us is not None:
            cost_us = self.classes_us
        elif tuple(self.order) == tuple(self.written):
            return 0.0
        return 1.0 - cost_us / self.written_us if self.written_us else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "written": list(self.written),
            "order": list(self.order),
            "rows": self.rows,
            "written_us": self.written_us,
            "order_us": self.order_us,
            "classes_us": self.classes_us,
            "has_classes": self.has_classes,
            "is_timed": self.is_timed,
            "saving": self.saving,
        }


@dataclass(frozen=True, repr=False)
class Report(View):
    """What a filter learnt and saved. Print it, show it in a notebook, or read its numbers.

    Parameters
    ----------
    name, policy
        Names of the filter and of its policy.
    lines
        One for each predicate, in written order.
    rows, kept
        Rows that reached Python, and rows that passed every predicate.
    orders
        The orders in use, most used first, each with the number of workers that use it.
    changes
        The records of the journal after which rows took other routes.
    profiling_us, deciding_us, routing_us
        Time for evaluations that served only to learn, for drawing conclusions from them, and for
        classifying rows and sending them along their routes.
    budget
        Limit of the time for profiling, as a share of the time inside predicates.
    classes
        Classes of rows with routes of their own.
    rejected
        Columns that cannot classify rows, and why.
    pairs
        In content-based routing: the column that classifies rows for each predicate.
    at_fault, on_error
        Rows that nothing drops and on which a predicate raised, and what becomes of them.
    actions
        What was observed: one line for each action and each stream. All other numbers are sums
        over these.
    native_orders
        What was learnt about the order of native conditions.
    not_reordered
        Native conditions that keep their written place, and why.
    native_as_written
        Why all native conditions are evaluated in their written order, where the policy does not
        order them; empty if it does, or if there is only one.

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
    at_fault: int = 0
    on_error: str = "raise"
    actions: Sequence[ActionLine] = ()
    native_orders: Sequence[NativeOrderLine] = ()
    not_reordered: Mapping[str, str] = field(default_factory=dict)
    native_as_written: str = ""

    @property
    def routed(self) -> list[PredicateLine]:
        """The predicates that Eddyline evaluates."""
        return [line for line in self.lines if line.is_routed]

    @property
    def evaluations(self) -> int:
        """Evaluations of routed predicates, those for learning included."""
        return sum(line.seen + line.profiled for line in self.routed)

    @property
    def evaluations_as_written(self) -> int:
        """Estimate of the evaluations that the written order would have needed."""
        return round(sum(line.written_seen for line in self.routed))

    @property
    def evaluations_by_spark(self) -> int:
        """Evaluations that Spark's own filter needs: every predicate on every row."""
        return self.rows * len(self.routed)

    @property
    def busy_us(self) -> float:
        """Time inside predicates, without profiling."""
        return sum(line.busy_us for line in self.routed)

    @property
    def overhead_us(self) -> float:
        """Time for routing, profiling and learning."""
        return self.profiling_us + self.deciding_us + self.routing_us

    @property
    def overhead(self) -> float:
        """Share of the time that went into routing, profiling and learning."""
        whole_us = self.busy_us + self.overhead_us
        return self.overhead_us / whole_us if whole_us else 0.0

    @property
    def spent_us(self) -> float:
        """Time inside predicates, for routing and for learning, in all workers together."""
        return self.busy_us + self.overhead_us

    @property
    def as_written_us(self) -> float:
        """Estimate of the time inside predicates that the written order would have needed."""
        return sum(line.as_written_us(self.rows) for line in self.routed)

    @property
    def by_spark_us(self) -> float:
        """Estimate of the time inside predicates that Spark's own filter would have needed."""
        return sum(line.on_all_us(self.rows) for line in self.routed)

    @property
    def saved_us(self) -> float:
        """Time saved against the written order; negative if it would have been cheaper."""
        return self.as_written_us - self.spent_us

    @property
    def saved_against_spark_us(self) -> float:
        """Time saved against Spark's own filter; negative if it would have been cheaper."""
        return self.by_spark_us - self.spent_us

    def document(self) -> Document:
        """Return what is to be shown, without any markup."""
        return describe_filter(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "name": self.name,
            "policy": self.policy,
            "rows": self.rows,
            "kept": self.kept,
            "evaluations": self.evaluations,
            "evaluations_as_written": self.evaluations_as_written,
            "evaluations_by_spark": self.evaluations_by_spark,
            "at_fault": self.at_fault,
            "on_error": self.on_error,
            "busy_us": self.busy_us,
            "as_written_us": self.as_written_us,
            "by_spark_us": self.by_spark_us,
            "saved_us": self.saved_us,
            "saved_against_spark_us": self.saved_against_spark_us,
            "profiling_us": self.profiling_us,
            "deciding_us": self.deciding_us,
            "routing_us": self.routing_us,
            "overhead": self.overhead,
            "budget": self.budget,
            "orders": [{"order": order, "workers": workers} for order, workers in self.orders],
            "predicates": [line.to_dict() for line in self.lines],
            "changes": [record.to_dict() for record in self.changes],
            "classes": [line.to_dict() for line in self.classes],
            "rejected": dict(self.rejected),
            "pairs": dict(self.pairs),
            "actions": [line.to_dict() for line in self.actions],
            "native_orders": [line.to_dict() for line in self.native_orders],
            "not_reordered": dict(self.not_reordered),
            "native_as_written": self.native_as_written,
        }
