"""One class for each kind of decision: its fields, whether it changes routes, and its sentence.

An event holds plain values only, so that it can travel as JSON from a worker to the driver and be
kept on disk. Reports, the dashboard and tests read the class and its fields, never a string.
"""

from __future__ import annotations

import abc
import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Names = tuple[str, ...]
Verdict = Literal["kept", "reverted", "interrupted"]

_CLASSES: dict[str, type[Event]] = {}


@dataclass(frozen=True, kw_only=True)
class Event(abc.ABC):
    """Base of all events. A subclass is registered by its name and declares its fields."""

    _changes_routes: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _CLASSES[cls.__name__] = cls

    @property
    def kind(self) -> str:
        """Name of the class."""
        return type(self).__name__

    @property
    def changes_routes(self) -> bool:
        """Whether rows may take other routes after this event than before it."""
        return self._changes_routes

    @abc.abstractmethod
    def sentence(self) -> str:
        """Return the event as one line for people."""

    def fields(self) -> dict[str, Any]:
        """Return the values of all fields, by name."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON, with the name of the class."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.fields().items()
        }
        return {"kind": self.kind, **plain}


def event_from_dict(plain: Mapping[str, Any]) -> Event:
    """Read what `Event.to_dict` wrote.

    Examples
    --------
    >>> event = DefaultRouteChanged(before=("a", "b"), after=("b", "a"))
    >>> event_from_dict(event.to_dict()) == event
    True

    """
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}
    return _CLASSES[str(values.pop("kind"))](**values)


def event_classes() -> list[type[Event]]:
    """Return every class of event that can be written."""
    return [cls for cls in _CLASSES.values() if not getattr(cls, "__abstractmethods__", None)]


# --- routers --------------------------------------------------------------------------------------


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
        return f"started from earlier knowledge: {_route(self.order)}"


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
            f"the rows of class {self.row_class} changed "
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
        text = f"changed to {_route(self.after)}"
        if self.cost_before_us is not None and self.cost_after_us is not None:
            text += f"  ({self.cost_before_us:.2f} → {self.cost_after_us:.2f} µs a dropped row)"
        return text


@dataclass(frozen=True, kw_only=True)
class ProbeOrderChanged(Event):
    """New rows of a stream ask the SteMs of other streams in another order.

    Parameters
    ----------
    role
        The stream of the new rows, with the key by which it is dealt out.
    before, after
        The orders, as names of probes.
    details
        Candidates compared and matches found in the micro-batch that ended with the change.

    """

    _changes_routes = True
    role: str
    before: Names
    after: Names
    details: Mapping[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"new rows of {self.role} now probe {_route(self.after)}"


@dataclass(frozen=True, kw_only=True)
class _ProbeClassesCompared(Event):
    """What the events about a trial of probe orders by class share.

    Parameters
    ----------
    role
        The stream of the new rows.
    classes
        In words: which rows, and the order in which they probe; empty for one order.
    rows
        Rows of the trial.
    before, after
        Probes and stored rows compared, for a row, without and with the change; the expected cost
        of classifying is included.

    """

    _changes_routes = True
    role: str
    classes: Names
    rows: int
    before: float
    after: float

    def _numbers(self) -> str:
        return f"({self.before:.2f} → {self.after:.2f} comparisons a row, {self.rows:,} rows)"


@dataclass(frozen=True, kw_only=True)
class ProbeClassesFound(Event):
    """A search found classes of new rows that should probe in orders of their own; on trial now.

    Parameters
    ----------
    role
        The stream of the new rows.
    classes
        In words: which rows, and the order in which they probe.
    rows
        Profiled rows that were searched.
    saving, single
        Comparisons that a row should save, and what it takes in one order, on rows that the
        classes were not made from.

    """

    _changes_routes = True
    role: str
    classes: Names
    rows: int
    saving: float
    single: float

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"found classes among new rows of {self.role}: {' | '.join(self.classes)}  "
            f"(saves {self.saving:.2f} of {self.single:.2f} comparisons a row, "
            f"searched {self.rows:,} rows)"
        )


@dataclass(frozen=True, kw_only=True)
class ProbeClassesAdopted(_ProbeClassesCompared):
    """New rows of a stream probe in the order of their class from now on."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        classes = " | ".join(self.classes)
        return f"new rows of {self.role} now probe by class: {classes}  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class ProbeClassesReverted(_ProbeClassesCompared):
    """A trial showed that what was in use before is better; it stays."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        tried = " | ".join(self.classes) or "one order"
        return f"new rows of {self.role} do not keep {tried}  {self._numbers()}"


@dataclass(frozen=True, kw_only=True)
class ProbeClassesDropped(Event):
    """New rows of a stream all probe in one order again.

    Parameters
    ----------
    role
        The stream of the new rows.
    reason
        Why.

    """

    _changes_routes = True
    role: str
    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"new rows of {self.role} probe in one order again: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class ClassProbeOrderChanged(Event):
    """New rows of one class ask the SteMs of other streams in another order.

    Parameters
    ----------
    role
        The stream of the new rows.
    row_class
        Which rows, in words.
    before, after
        The orders, as names of probes.

    """

    _changes_routes = True
    role: str
    row_class: str
    before: Names
    after: Names

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"new rows of {self.role} with {self.row_class} now probe {_route(self.after)}"


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
        return f"default route changed to {_route(self.after)}"


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
        "split" (each on half of the rows), "alternating" (one after the other).
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
    method: Literal["before_after", "split", "alternating"]
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
                return f"went back to {_route(self.before)}  {numbers}"
            return f"trial of {_route(self.after)} {self.verdict}  {numbers}"
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
            f"(saves {self.saving_us:.2f} ± {self.noise_us:.2f} of {self.single_us:.2f} µs a row, "
            f"searched {self.rows:,} rows)"
        )


@dataclass(frozen=True, kw_only=True)
class ClassesFound(_ClassSearch):
    """A search found classes of rows for which routes of their own should pay.

    Parameters
    ----------
    classes
        In words: which rows, and their route.

    """

    _changes_routes = True
    classes: Names

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"found classes: {' | '.join(self.classes)}  {self._numbers()}"


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
    """The classes in use cannot be applied to the rows any more; one order is used.

    Parameters
    ----------
    reason
        Type and message of the error.

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


# --- the driver of `el.where` ---------------------------------------------------------------------


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
    """Native conditions keep their written order.

    Parameters
    ----------
    reason
        Why.

    """

    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"native conditions keep their written order: {self.reason}"


# --- the engine -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EngineStarted(Event):
    """An engine started, or continued after a stop.

    Parameters
    ----------
    queries
        Number of queries.
    streams
        Names of the streams.

    """

    queries: int
    streams: Names

    def sentence(self) -> str:
        """Return the event as one line for people."""
        noun = "query" if self.queries == 1 else "queries"
        return f"started with {self.queries:,} {noun} over {', '.join(self.streams)}"


@dataclass(frozen=True, kw_only=True)
class EngineStopped(Event):
    """An engine was stopped."""

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return "stopped"


@dataclass(frozen=True, kw_only=True)
class QueryPaused(Event):
    """A query failed and was paused; the others continue.

    Parameters
    ----------
    query
        Its name.
    error
        What went wrong.
    batch
        The micro-batch in which it failed.

    """

    query: str
    error: str
    batch: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"query {self.query} paused in micro-batch {self.batch}: {self.error}"


@dataclass(frozen=True, kw_only=True)
class CatalogueRepaired(Event):
    """The catalogue was damaged; the state before the damage is used.

    Parameters
    ----------
    damage
        What was wrong, and where the damaged part was put.

    """

    damage: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return self.damage


@dataclass(frozen=True, kw_only=True)
class BatchLost(Event):
    """The results of a micro-batch were lost with its record, and the user accepted that.

    Parameters
    ----------
    reason
        Which file is missing or damaged.

    """

    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"results of a micro-batch are lost: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class StateLost(Event):
    """Rows that joins had stored were lost with their file, and the user accepted that.

    Parameters
    ----------
    reason
        Which file is missing or damaged.

    """

    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"rows that joins had stored are lost: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class StreamIdle(Event):
    """A stream has had no rows for longer than it may; joins go on without waiting for it.

    Parameters
    ----------
    stream
        The stream.
    newest_us
        Event time that it now counts as having reached, in microseconds since 1970.

    """

    stream: str
    newest_us: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        reached = datetime.timedelta(microseconds=self.newest_us)
        when = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + reached
        return f"stream {self.stream} is idle: joins go on as if it had reached {when.isoformat()}"


@dataclass(frozen=True, kw_only=True)
class JoinDealt(Event):
    """The streams of a query have no common key: rows are copied to several tasks, or one joins.

    Parameters
    ----------
    query
        Name of the query.
    tasks
        Number of tasks that join it.
    gain
        Rows of all streams for each row of one task, at best; if streams are equally large.

    """

    query: str
    tasks: int
    gain: float

    def sentence(self) -> str:
        """Return the event as one line for people."""
        begin = f"query {self.query} has no key common to all its streams"
        if self.tasks == 1:
            return f"{begin}: one task joins it, as several would gain {self.gain:.2f} times"
        return f"{begin}: {self.tasks} tasks join it, with a gain of {self.gain:.2f} times"


@dataclass(frozen=True, kw_only=True)
class JoinTaskSkewed(Event):
    """One join task has many more rows than the others.

    Parameters
    ----------
    stem
        The state that most of its rows go to.
    key, key_rows
        The key that most of them have, and how many do.
    task_rows, rows
        Rows of the task, and of all tasks.

    """

    stem: str
    key: str
    key_rows: int
    task_rows: int
    rows: int

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return (
            f"one join task has {self.task_rows:,} of {self.rows:,} rows: {self.key_rows:,} of "
            f"{self.stem} have the key {self.key}"
        )


@dataclass(frozen=True, kw_only=True)
class TidyingFailed(Event):
    """Files of an engine could not be merged or replaced by a snapshot; it will be tried again.

    Parameters
    ----------
    reason
        What went wrong.

    """

    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"files could not be merged and stay as they are: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class LookupNotShipped(Event):
    """The keys of a static table are not shipped to the workers; Spark alone joins it.

    Parameters
    ----------
    table
        Its name.
    reason
        Why.

    """

    table: str
    reason: str

    def sentence(self) -> str:
        """Return the event as one line for people."""
        return f"table {self.table} is joined by Spark only: {self.reason}"


def _route(names: Names) -> str:
    return " → ".join(names)
