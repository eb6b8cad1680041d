"""Decisions about joins of streams."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eddyline.journal.events.event import Event, Names, route_words


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
        return f"new rows of {self.role} now probe {route_words(self.after)}"


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
        return f"new rows of {self.role} with {self.row_class} now probe {route_words(self.after)}"


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
