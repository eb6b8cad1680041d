"""Characters that a terminal or a browser would act on instead of showing them."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"


def printable(text: str) -> str:
    r"""Return the text with every character that cannot be shown written as an escape.

    These are control characters, line breaks, characters that change the direction of writing,
    and lone surrogates, which cannot even be encoded.

    Examples
    --------
    >>> print(printable("a\x1b[2J\nb\ud800"))
    a\x1b[2J\nb\ud800

    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def one_line(text: str) -> str:
    """Return the text with each run of spaces, tabs and line breaks replaced by one space.

    Examples
    --------
    >>> one_line("SELECT *\\n  FROM light")
    'SELECT * FROM light'

    """
    return " ".join(text.split())


def shorten(text: str, cells: int) -> str:
    """Return the text, cut to a number of terminal cells and ended by an ellipsis if too long.

    Examples
    --------
    >>> shorten("is_written_in_english", 10), shorten("calm", 10)
    ('is_writte…', 'calm')

    """
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, max(cells - 1, 0)).rstrip() + ELLIPSIS
