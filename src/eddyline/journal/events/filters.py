"""Decisions about filters: what routers learn, and what the driver of `el.where` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from eddyline.journal.events.event import Event, Names, Verdict, route_words


@dataclass(frozen=True, kw_only=True)
class KnowledgeRestored(Event):
    """A router starts from what another router has learnt.

    Parameters
    ----------
    order
        The order it starts with.

    """

    order: Names

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"started from earlier knowledge: {route_words(self.order)}"


@dataclass(frozen=True, kw_only=True)
class DriftDetected(Event):
    """The rows are no longer what they were; what was learnt from the old ones is discarded.

    Parameters
    ----------
    order
        The order in use, when its drop rates changed.
    row_class
        The class of rows whose cost changed, when a class did.
    expected_us, measured_us
        Cost of a row of the class, expected and measured.

    """

    _changes_routes = True
    order: Names = ()
    row_class: str = ""
    expected_us: float | None = None
    measured_us: float | None = None

    def sentence(self) -> str:
        """Return the event as one line for people."""
        if self.expected_us is None or self.measured_us is None:
            where = f" ({self.row_class})" if self.row_class else ""
            return f"the rows changed{where}; learning again"
        return (
            f"the rows of {self.row_class} changed "
            f"({self.expected_us:.2f} µs a row expected, {self.measured_us:.2f} measured); "
            f"learning again"
        )


@dataclass(frozen=True, kw_only=True)
class BudgetExhausted(Event):
    """Regular profiling pauses until useful work has earned more of its share.

    Parameters
    ----------
    share
        The budget: time for profiling as a share of the time inside predicates.

    """

    share: float | None

    def sentence(self) -> str:
        """Return the event as one line for people."""
        share = "" if self.share is None else f" of {self.share:.0%}"
        return f"the profiling budget{share} is used up; profiling pauses"


@dataclass(frozen=True, kw_only=True)
class OrderChanged(Event):
    """The policy changed the order of the predicates.

    Parameters
    ----------
    before, after
        The orders, as names of predicates.
    cost_us
        Measured cost of each predicate, in microseconds a row.
    cost_before_us, cost_after_us
        Expected cost of a dropped row in both orders, where the policy computes it.
    details
        Further numbers of the policy: profile tuples it decided on, positions, scans.

    """

    _changes_routes = True
    before: Names
    after: Names
    cost_us: Mapping[str, float] = field(default_factory=dict)
    cost_before_us: float | None = None
    cost_after_us: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        """Return the event as one line for people."""
        text = f"changed to {route_words(self.after)}"
        if self.cost_before_us is not None and self.cost_after_us is not None:
            text += f"  ({self.cost_before_us:.2f} → {self.cost_after_us:.2f} µs a dropped row)"
        return text


@dataclass(frozen=True, kw_only=True)
class DefaultRouteChanged(Event):
    """The policy changed the order of rows that belong to no class, while classes are in use.

    Parameters
    ----------
    before, after
        The orders, as names of predicates.

    """

    before: Names
    after: Names

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"default route changed to {route_words(self.after)}"


@dataclass(frozen=True, kw_only=True)
class TrialEnded(Event):
    """A change was compared with what it replaced, and kept or reverted.

    Parameters
    ----------
    subject
        What was on trial: an "order", "classes" of rows, or the "attribute" that classifies rows
        for a predicate.
    method
        How it was compared: "before_after" (new order against the expectation for the old one),
        "split" (each on half of the rows), "alternating" (one after the other), "counted" (by the
        evaluations that a row needs, where all cost the same).
    verdict
        "kept" and "reverted"; "interrupted" where something else ended the trial.
    before, after
        What was compared, in words.
    rows
        Rows of the trial.
    before_us, after_us
        Cost of a row without and with the change, counted and priced with the same costs.
    gain_ratio
        Of the attribute, where one was on trial.

    """

    subject: Literal["order", "classes", "attribute"]
    method: Literal["before_after", "split", "alternating", "counted"]
    verdict: Verdict
    before: Names
    after: Names
    rows: int
    before_us: float
    after_us: float
    gain_ratio: float | None = None

    @property
    def changes_routes(self) -> bool:
        """Whether rows may take other routes now: not where the order in use stays in use."""
        return self.subject != "order" or self.verdict == "reverted"

    def sentence(self) -> str:
        """Return the event as one line for people."""
        numbers = f"({self.before_us:.2f} → {self.after_us:.2f} µs a row)"
        if self.verdict == "interrupted":  # too few rows for the numbers to mean anything
            numbers = f"(after {self.rows:,} rows)"
        if self.subject == "order":
            if self.verdict == "reverted":
                return f"went back to {route_words(self.before)}  {numbers}"
            return f"trial of {route_words(self.after)} {self.verdict}  {numbers}"
        return f"{self.subject} {self.verdict}: {' | '.join(self.after)}  {numbers}"


@dataclass(frozen=True, kw_only=True)
class _ClassSearch(Event):
    """What the events about a finished search for classes of rows share.

    Parameters
    ----------
    rows
        Rows searched.
    saving_us, noise_us
        Saving of the best mesh found, for a row it was not made from, and its standard error.
    single_us
        Cost of a row in the best single order.
    explored
        Number of meshes whose cost was computed.
    seconds, stopped
        Duration of the search, and why it ended.
    rejected
        Columns that cannot classify rows, and why.
    order, cost_us
        The best single order of native conditions, and their costs.
    query
        The engine's query that the conditions belong to.

    """

    rows: int
    saving_us: float
    noise_us: float
    single_us: float
    explored: int
    seconds: float
    stopped: str
    rejected: Mapping[str, str] = field(default_factory=dict)
    order: Names = ()
    cost_us: Mapping[str, float] = field(default_factory=dict)
    query: str = ""

    def _numbers(self) -> str:
        if not self.explored:
            return f"({self.rows:,} rows; not searched: {self.stopped})"
        return (
            f"(saves {self.saving_us:z.2f} ± {self.noise_us:.2f} of {self.single_us:.2f} µs a row, "
            f"searched {self.rows:,} rows)"
        )


@dataclass(frozen=True, kw_only=True)
class ClassesFound(_ClassSearch):
    """A search found classes of rows for which routes of their own should pay.

    Parameters
    ----------
    classes
        In words: which rows, and their route.
    settled
        Native conditions whose order made no clear difference on the sample. Spark cannot choose
        among them row by row, so they keep the order that was the cheapest there.

    """

    _changes_routes = True
    classes: Names
    settled: Names = ()

    def sentence(self) -> str:
        """Return the event as one line for people."""
        fixed = f"; order fixed where it made no difference: {', '.join(self.settled)}"
        classes = " | ".join(self.classes) + (fixed if self.settled else "")
        return f"found classes: {classes}  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class ClassesConfirmed(_ClassSearch):
    """A search found the classes that are in use; there is nothing to try."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"the classes in use were found again  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class ClassesDoubted(_ClassSearch):
    """A search found no classes that pay although some are in use; they go on trial."""

    _changes_routes = True

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"the classes in use may no longer pay  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class NoClassesFound(_ClassSearch):
    """A search found no classes that pay; one order stays in use."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"no classes of rows that pay for themselves  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class ClassSearchFailed(Event):
    """A search for classes failed on these rows; the query goes on without it.

    Parameters
    ----------
    reason
        Type and message of the error.
    query
        The engine's query that the search was for.

    """

    reason: str
    query: str = ""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"searching for classes failed: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class ClassesDropped(Event):
    """The classes in use cannot be applied to the rows, or cost too much; one order is used.

    Parameters
    ----------
    reason
        Type and message of the error, or what a row costs.

    """

    _changes_routes = True
    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"classes dropped: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class AttributesScreened(Event):
    """Columns were screened for use in content-based routing.

    Parameters
    ----------
    rejected
        Columns that cannot classify rows, and why.

    """

    rejected: Mapping[str, str]

    def sentence(self) -> str:
        """Return the event as one line for people."""
        reasons = ", ".join(f"{name} ({why})" for name, why in self.rejected.items())
        return f"columns that cannot classify rows: {reasons or 'none'}"


@dataclass(frozen=True, kw_only=True)
class ClassifiersChosen(Event):
    """Content-Learns chose the classifier attributes of all predicates at once.

    Parameters
    ----------
    pairs
        The attribute that classifies rows for each predicate.
    rows
        Rows the choice was made on.

    """

    _changes_routes = True
    pairs: Mapping[str, str]
    rows: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        pairs = ", ".join(f"{predicate} by {column}" for predicate, column in self.pairs.items())
        return f"routes by content: {pairs or 'nothing'}  ({self.rows:,} rows)"


@dataclass(frozen=True, kw_only=True)
class ColumnsLeftOut(Event):
    """Columns that might classify rows do not cross into Python, because they would not pay.

    Parameters
    ----------
    columns
        Their names.
    reason
        Why they would not pay.

    """

    columns: Names
    reason: str

    def reasons(self) -> dict[str, str]:
        """Return for each column why it does not cross, and what lets it cross."""
        why = f"not sent to Python: {self.reason} (classify_by= names columns to send all the same)"
        return dict.fromkeys(self.columns, why)

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"rows are not classified by {', '.join(self.columns)}: {self.reason} "
            f"(classify_by= names columns to use all the same)"
        )


@dataclass(frozen=True, kw_only=True)
class PilotSkipped(Event):
    """No rows are read beforehand to find classes of rows in, because the predicates are cheap."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            "no rows are read beforehand: the predicates take less than a microsecond each, so "
            "classes of rows would save less than that costs (classify_by= names columns to find "
            "them by all the same)"
        )


@dataclass(frozen=True, kw_only=True)
class SampleMissing(Event):
    """There are no rows to learn from beforehand.

    Parameters
    ----------
    instead
        What happens instead.

    """

    instead: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"no sample: {self.instead}"


@dataclass(frozen=True, kw_only=True)
class NotReordered(Event):
    """A native condition keeps its written place.

    Parameters
    ----------
    predicate
        Its name.
    reason
        Why.

    """

    predicate: str
    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"{self.predicate} keeps its written place: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class NativeReordered(Event):
    """Native conditions are evaluated in another order than they were written in.

    Parameters
    ----------
    before, after
        The orders, as names of predicates.
    before_us, after_us
        Cost of a row in both orders, from the timed conditions and what they drop.
    rows
        Sampled rows that this was learnt from.

    """

    _changes_routes = True
    before: Names
    after: Names
    before_us: float
    after_us: float
    rows: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"native conditions reordered: {route_words(self.after)}  "
            f"({self.before_us:.2f} → {self.after_us:.2f} µs a row)"
        )


@dataclass(frozen=True, kw_only=True)
class PlanningStopped(Event):
    """The time for planning was used up before everything was learnt.

    Parameters
    ----------
    seconds_max
        The limit (`MeshOptions.planning_s_max`).
    instead
        What happens instead.

    """

    seconds_max: float
    instead: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        limit = f"{self.seconds_max:g} s (MeshOptions.planning_s_max)"
        return f"planning stopped after {limit}: {self.instead}"
