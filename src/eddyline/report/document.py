"""The neutral form of a report: what the reports produce and the renderers take.

All strings are as they came from the user. Escaping is the business of the renderers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    heading
        Text above the column.
    align
        Side at which the cells are aligned.
    fit
        What happens to cells where the width does not suffice: "keep" them (numbers), "shorten"
        them with an ellipsis, or "wrap" them into several lines.

    """

    heading: str
    align: Literal["left", "right"] = "left"
    fit: Literal["keep", "shorten", "wrap"] = "keep"


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings, with an optional title."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    title: str = ""


@dataclass(frozen=True)
class Items:
    """A list with a title."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Document:
    """A title and what follows it; a plain string is a paragraph.

    Examples
    --------
    >>> table = Table([Column("query"), Column("matched", "right")], [["hot", "12"]])
    >>> Document("1 query", ["Nothing is paused.", table]).blocks[1].rows
    [['hot', '12']]

    """

    title: str
    blocks: Sequence[str | Table | Items]
