"""The one renderer of reports for terminals.

Text from users never reaches Rich as a plain string, which Rich would read as markup: `[a-z]` in a
regular expression would vanish and `[/docs]` would fail.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from eddyline.report.characters import printable, shorten
from eddyline.report.document import Column, Document, Items, Table

WIDTH = 80
_GAP = 2
_CELLS_MIN = 4


def plain(text: str, style: str = "") -> Text:
    """Return text that Rich shows as it is.

    Examples
    --------
    >>> str(plain("name RLIKE '[a-z]+'"))
    "name RLIKE '[a-z]+'"

    """
    return Text(printable(text), style=style)


def render(document: Document) -> RenderableType:
    """Return what a Rich console can print: a blank line around every table and list."""
    parts: list[RenderableType] = [plain(document.title, "bold")]
    before: str | Table | Items = document.title
    for block in document.blocks:
        if not (isinstance(before, str) and isinstance(block, str)):
            parts.append(Text())
        parts.append(render_block(block))
        before = block
    return Group(*parts)


def render_block(block: str | Table | Items) -> RenderableType:
    """Return one block of a document as something a Rich console can print."""
    if isinstance(block, str):
        return plain(block)
    shown = _FittedTable(block) if isinstance(block, Table) else _bulleted(block.lines)
    return Group(plain(block.title, "bold"), shown) if block.title else shown


def _bulleted(lines: Sequence[str]) -> RenderableType:
    grid = RichTable.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text("-"), plain(line))
    return grid


def to_text(document: Document, width: int = WIDTH) -> str:
    """Return what a terminal of this width would show, without colours.

    Examples
    --------
    >>> print(to_text(Document("demo", ["three rows"])))
    demo
    three rows

    """
    buffer = io.StringIO()
    # In a notebook, a console that is not told otherwise writes to the cell and not to its file.
    console = Console(
        file=buffer, width=width, force_terminal=False, force_jupyter=False, color_system=None
    )
    console.print(render(document))
    return "\n".join(line.rstrip() for line in buffer.getvalue().rstrip().split("\n"))


class _FittedTable:
    """A table whose widths are computed here; Rich would cut numbers as well as names."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table
        rows = [[printable(cell) for cell in row] for row in table.rows]
        widths = column_widths(table.columns, rows, options.max_width)
        # The box adds a blank divider to the padding: together they are the gap.
        shown = RichTable(
            box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False
        )
        for column, width in zip(table.columns, widths, strict=True):
            shown.add_column(
                plain(column.heading), justify=column.align, width=width, overflow="fold"
            )
        for row in rows:
            shown.add_row(
                *(
                    Text(shorten(cell, width) if column.fit == "shorten" else cell)
                    for column, cell, width in zip(table.columns, row, widths, strict=True)
                )
            )
        yield shown


def column_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> list[int]:
    """Return the width of each column, in cells, so that the table fits.

    Columns of numbers get what they need. The others share the rest: a narrow one gets what it
    needs, and what it leaves goes to the wider ones.

    Examples
    --------
    >>> columns = [Column("name", fit="shorten"), Column("seen"), Column("SQL", fit="wrap")]
    >>> column_widths(columns, [["calm", "1,000", "SELECT " * 20]], width=40)
    [4, 5, 27]

    """
    needed = [
        max([cell_len(column.heading), *(cell_len(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]
    widths = list(needed)
    flexible = [index for index, column in enumerate(columns) if column.fit != "keep"]
    rest = width - _GAP * (len(columns) - 1)
    rest -= sum(needed[index] for index in range(len(columns)) if index not in flexible)
    for sharing, index in enumerate(sorted(flexible, key=lambda index: needed[index])):
        widths[index] = max(_CELLS_MIN, min(needed[index], rest // (len(flexible) - sharing)))
        rest -= widths[index]
    return widths
