"""The one renderer of reports for notebooks and pages.

Every string of the document is escaped by `_escaped`, and by nothing else.
"""

from __future__ import annotations

import html

from eddyline.report.characters import printable
from eddyline.report.document import Column, Document, Items, Table


def fragment(document: Document) -> str:
    """Return a `div`, as a notebook shows it.

    Examples
    --------
    >>> "&lt;b&gt;" in fragment(Document("<b>", ["three rows"]))
    True

    """
    body = "".join(_block(block) for block in document.blocks)
    # Notebooks typeset what stands between two dollar signs, unless these classes forbid it.
    return (
        '<div class="eddyline tex2jax_ignore mathjax_ignore">'
        f"<h4>{_escaped(document.title)}</h4>{body}</div>"
    )


def page(document: Document) -> str:
    """Return a page that needs nothing else: no network, no other file."""
    return _PAGE.format(title=_escaped(document.title), style=_STYLE, body=fragment(document))


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _block(block: str | Table | Items) -> str:
    if isinstance(block, str):
        return f"<p>{_escaped(block)}</p>"
    if isinstance(block, Items):
        lines = "".join(f"<li>{_escaped(line)}</li>" for line in block.lines)
        return f"<h5>{_escaped(block.title)}</h5><ul>{lines}</ul>"
    return _table(block)


def _table(table: Table) -> str:
    styles = [_style(column) for column in table.columns]
    head = "".join(
        f'<th style="{style}">{_escaped(column.heading)}</th>'
        for style, column in zip(styles, table.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style}">{_escaped(cell)}</td>'
            for style, cell in zip(styles, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    title = f"<h5>{_escaped(table.title)}</h5>" if table.title else ""
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _style(column: Column) -> str:
    wrapping = "white-space:nowrap" if column.fit == "keep" else "overflow-wrap:anywhere"
    return f"text-align:{column.align};{wrapping}"


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
       color: #1c2733; background: #fff }
h4 { font-size: 1.3rem; margin: 0 0 .8rem } h5 { font-size: 1rem; margin: 1.4rem 0 .4rem }
p { margin: .5rem 0 }
table { border-collapse: collapse; width: 100% }
th, td { padding: .35rem .7rem; border-bottom: 1px solid #d8dfe6; vertical-align: top }
th { background: #f2f5f8 }
td { font-variant-numeric: tabular-nums }
ul { margin: 0; padding-left: 1.2rem }
li { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere }
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}</style></head><body>{body}</body></html>
"""
