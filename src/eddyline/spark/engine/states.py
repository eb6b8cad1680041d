"""How queries are shown."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from eddyline.report.model import as_text

_HEADINGS = ("query", "state", "matched", "sink", "SQL", "error")


@dataclass(frozen=True)
class QueryState:
    """A query as it is now.

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
        """Return it as plain values."""
        return asdict(self)


class QueryStates(Sequence[QueryState]):
    """All queries of an engine; prints as a table.

    Examples
    --------
    >>> states = QueryStates([QueryState("hot", "SELECT ...", "parquet", "active", 12)])
    >>> states["hot"].matched, "cold" in states, len(states)
    (12, False, 1)

    """

    def __init__(self, states: Sequence[QueryState]) -> None:
        self._states = list(states)
        self._by_name = {state.name: state for state in states}

    def __getitem__(self, at: Any) -> Any:
        return self._by_name[at] if isinstance(at, str) else self._states[at]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or name in self._states

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[QueryState]:
        return iter(self._states)

    def _cells(self) -> list[list[str]]:
        return [
            [s.name, s.state, f"{s.matched:,}", s.sink, " ".join(s.sql.split()), s.error or ""]
            for s in self._states
        ]

    def __rich__(self) -> RenderableType:
        table = Table(title=f"{len(self)} queries", title_justify="left")
        for heading in _HEADINGS:
            table.add_column(heading, justify="right" if heading == "matched" else "left")
        for cells in self._cells():
            table.add_row(*cells)
        return table

    def __repr__(self) -> str:
        return as_text(self, width=120)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in self._cells()
        )
        return f"<table><tr>{head}</tr>{body}</table>"
