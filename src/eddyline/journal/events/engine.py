"""What happens to an engine and to its queries."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.journal.events.event import Event, Names


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
