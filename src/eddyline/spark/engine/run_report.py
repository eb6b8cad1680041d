"""What a run of an engine did, for terminals, notebooks and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eddyline.report.model import as_text
from eddyline.spark.engine.states import QueryStates


@dataclass(frozen=True)
class MicroBatch:
    """What one micro-batch came to.

    Parameters
    ----------
    batch
        Spark's number of it.
    rows, matches
        Rows read, and how often one of them matched a query.
    seconds
        From beginning to end, sinks included.
    visits
        How often a row visited an operator that queries share.
    tickets
        The share of tickets that each of these operators held in the end.
    busy_s
        Seconds that the workers spent on matching.
    late
        Rows that came later than the delay of their stream allows; they count all the same.

    """

    batch: int
    rows: int
    matches: int
    seconds: float
    visits: int = 0
    tickets: dict[str, float] = field(default_factory=dict)
    busy_s: float = 0.0
    late: int = 0

    def __str__(self) -> str:
        return (
            f"micro-batch {self.batch}: {self.rows:,} rows, {self.matches:,} matches, "
            f"{self.seconds:.2f} s"
        )


class RunReport:
    """Prints as a summary and a table of queries; `to_dict` has all the numbers.

    Examples
    --------
    >>> report = RunReport([MicroBatch(0, 100, 7, 0.5, visits=120)], QueryStates([]))
    >>> report.rows, report.visits_per_row
    (100, 1.2)

    """

    def __init__(self, batches: Sequence[MicroBatch], queries: QueryStates) -> None:
        self.batches = list(batches)
        self.queries = queries

    @property
    def rows(self) -> int:
        """Rows read."""
        return sum(batch.rows for batch in self.batches)

    @property
    def visits_per_row(self) -> float:
        """How many shared operators a row visited on average."""
        return sum(batch.visits for batch in self.batches) / max(self.rows, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "rows": self.rows,
            "visits_per_row": self.visits_per_row,
            "batches": [asdict(batch) for batch in self.batches],
            "queries": [state.to_dict() for state in self.queries],
        }

    def _summary(self) -> list[str]:
        seconds = sum(batch.seconds for batch in self.batches)
        matches = sum(batch.matches for batch in self.batches)
        lines = [
            f"{len(self.batches)} micro-batches, {self.rows:,} rows, {matches:,} matches, "
            f"{seconds:.1f} s; a row visited {self.visits_per_row:.2f} shared operators"
        ]
        late = sum(batch.late for batch in self.batches)
        if late:
            lines.append(f"{late:,} rows came late")
        if self.batches and self.batches[-1].tickets:
            tickets = sorted(self.batches[-1].tickets.items(), key=lambda item: -item[1])
            shares = ", ".join(f"{name} {share:.0%}" for name, share in tickets[:8])
            lines.append(f"tickets: {shares}")
        return lines

    def __rich__(self) -> RenderableType:
        return Group(*[Text(line) for line in self._summary()], self.queries)

    def __repr__(self) -> str:
        return as_text(self, width=120)

    def _repr_html_(self) -> str:
        summary = "".join(f"<p>{line}</p>" for line in self._summary())
        return summary + self.queries._repr_html_()
