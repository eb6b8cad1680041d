"""What an engine reports: its micro-batches, its queries, and a summary of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eddyline.report.describe_run import describe_queries, describe_run
from eddyline.report.document import Document
from eddyline.report.view import View


@dataclass(frozen=True)
class IndexNumbers:
    """What the indexes over one state did in one micro-batch.

    Parameters
    ----------
    searches
        Number of searches by access pattern (the columns that are searched), then by index.
    configurations
        Number of partitions by configuration: columns with their bits, high ones first.
    frequencies
        Share of the searches by access pattern, as last assessed; empty before that.
    bytes, rows
        Memory of the indexes, and rows that they are over.
    build_s
        Seconds that building indexes took.

    """

    searches: dict[str, dict[str, int]] = field(default_factory=dict)
    configurations: dict[str, int] = field(default_factory=dict)
    frequencies: dict[str, float] = field(default_factory=dict)
    bytes: int = 0
    rows: int = 0
    build_s: float = 0.0


@dataclass(frozen=True)
class JoinNumbers:
    """What joining streams came to in one micro-batch.

    Parameters
    ----------
    results
        Combinations of rows that are results of some query.
    candidates, matches
        Stored rows that were compared with probing rows, and those of them that were equal.
    busy_s, opening_s
        Seconds that workers spent joining, and those of them in which they mapped state that
        other workers had written.
    rows, late
        Rows that queries wanted, and by stream those that were too late for all that did.
    copies
        To how many tasks and SteMs a row went on average.
    bytes_written
        Join state written, compaction included.
    state_rows, state_bytes, state_files
        Join state after the micro-batch.
    indexes
        By state, what its indexes did.
    tuning_s
        Seconds of `busy_s` that assessing searches and selecting configurations took.

    """

    results: int = 0
    candidates: int = 0
    matches: int = 0
    busy_s: float = 0.0
    opening_s: float = 0.0
    rows: int = 0
    late: dict[str, int] = field(default_factory=dict)
    bytes_written: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    state_files: int = 0
    copies: float = 1.0
    indexes: dict[str, IndexNumbers] = field(default_factory=dict)
    tuning_s: float = 0.0


@dataclass(frozen=True)
class OperatorNumbers:
    """What one operator that queries share did in one micro-batch.

    Parameters
    ----------
    visits
        Rows that visited it.
    busy_s
        Seconds that these visits took.
    tickets
        Share of the tickets of its stream that it held at the end; None under other policies.

    """

    visits: int = 0
    busy_s: float = 0.0
    tickets: float | None = None


@dataclass(frozen=True)
class MicroBatch:
    """The numbers of one micro-batch.

    Parameters
    ----------
    batch
        Spark's number of the micro-batch.
    rows, matches
        Rows read, and matches between a row and a query.
    seconds
        From beginning to end, sinks included.
    visits
        Visits of rows to operators that queries share.
    operators
        By stream and name, these operators in the order in which rows visited them at the end. The
        name of an operator is a column, for all comparisons with it, or a condition.
    busy_s
        Seconds that the workers spent on matching.
    late
        Rows that arrived later than the delay of their stream allows. Filters process them all the
        same; joins leave them out.
    joins
        What joining streams came to; None if no query joins streams.

    """

    batch: int
    rows: int
    matches: int
    seconds: float
    visits: int = 0
    operators: dict[str, dict[str, OperatorNumbers]] = field(default_factory=dict)
    busy_s: float = 0.0
    late: int = 0
    joins: JoinNumbers | None = None

    def __str__(self) -> str:
        return (
            f"micro-batch {self.batch}: {self.rows:,} rows, {self.matches:,} matches, "
            f"{self.seconds:.2f} s"
        )


@dataclass(frozen=True)
class QueryState:
    """A query at the time of asking.

    Parameters
    ----------
    name, sql, sink
        As it was added.
    state
        "active" or "paused".
    matched
        Rows of its stream that matched, in all finished micro-batches.
    error
        Why it was paused.

    """

    name: str
    sql: str
    sink: str
    state: str
    matched: int
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class QueryStates(View, Sequence[QueryState]):
    """All queries of an engine, by position or by name; prints as a table.

    Examples
    --------
    >>> states = QueryStates([QueryState("hot", "SELECT ...", "parquet", "active", 12)])
    >>> states["hot"].matched, "cold" in states, len(states)
    (12, False, 1)

    """

    def __init__(self, states: Sequence[QueryState]) -> None:
        self._states = list(states)
        self._by_name = {state.name: state for state in states}

    def __getitem__(self, key: Any) -> Any:
        return self._by_name[key] if isinstance(key, str) else self._states[key]

    def __contains__(self, key: object) -> bool:
        return key in self._by_name if isinstance(key, str) else key in self._states

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[QueryState]:
        return iter(self._states)

    def document(self) -> Document:
        """Return what is to be shown, without any markup."""
        return describe_queries(self._states)


@dataclass(frozen=True, repr=False)
class RunReport(View):
    """What a run of an engine did. Print it, show it in a notebook, or read its numbers.

    Parameters
    ----------
    batches
        The micro-batches of the run, oldest first.
    queries
        The queries of the engine.
    costs
        By query, seconds that workers spent on its conditions; what several queries share counts
        in equal parts.
    full
        Whether to show all queries and operators, however many there are.

    Examples
    --------
    >>> report = RunReport([MicroBatch(0, 100, 7, 0.5, visits=120)], QueryStates([]))
    >>> report.rows, report.visits_per_row
    (100, 1.2)

    """

    batches: Sequence[MicroBatch]
    queries: QueryStates
    costs: Mapping[str, float] = field(default_factory=dict)
    full: bool = False

    @property
    def rows(self) -> int:
        """Rows read."""
        return sum(batch.rows for batch in self.batches)

    @property
    def visits_per_row(self) -> float:
        """Average number of shared operators that a row visited."""
        return sum(batch.visits for batch in self.batches) / max(self.rows, 1)

    def document(self) -> Document:
        """Return what is to be shown, without any markup."""
        return describe_run(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "rows": self.rows,
            "visits_per_row": self.visits_per_row,
            "batches": [asdict(batch) for batch in self.batches],
            "queries": [
                {**state.to_dict(), "cost_s": self.costs.get(state.name, 0.0)}
                for state in self.queries
            ],
        }
