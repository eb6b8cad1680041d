"""Windows in the text of a query: of the whole query, and of single streams in FROM.

`WINDOW 30 SECONDS` at the end holds for all streams. `light [RANGE 30 SECONDS]` and
`temp [ROWS 1000]` hold for one stream, before or after its alias, and take precedence. Neither is
Spark SQL, so both are taken out of the text before it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokens import Token

from eddyline.errors import QueryError
from eddyline.sql.specs import UNITS_US, Window

_UNITS = tuple(unit.removesuffix("s").upper() for unit in UNITS_US)
_CLAUSE = re.compile(
    rf"\s+WINDOW\s+(\d+)\s+({'|'.join(_UNITS)}|ROW)S?\s*;?\s*$", re.IGNORECASE | re.DOTALL
)
#: After some of these words come sources, after the others conditions and expressions.
_OF_SOURCES = ("FROM", "JOIN")
_CLAUSES = ("SELECT", "WHERE", "ON", "USING", *_OF_SOURCES)
_MAYBE_IN_FROM = re.compile(r"\[\s*(RANGE|ROWS)\s", re.IGNORECASE)


@dataclass(frozen=True)
class WindowClauses:
    """The windows of a query.

    Parameters
    ----------
    of_query
        The window of every stream that has none of its own.
    of_sources
        Windows of single streams, each with its position in the text, ascending.

    """

    of_query: Window | None = None
    of_sources: tuple[tuple[int, Window], ...] = ()

    def between(self, begin: int, end: int | None) -> Window | None:
        """Return the window of the source that is written between two positions."""
        own = [w for at, w in self.of_sources if begin < at and (end is None or at < end)]
        if len(own) > 1:
            raise QueryError("a stream in FROM has two windows; give it one")
        return own[0] if own else None


def split_windows(text: str, dialect: Dialect) -> tuple[str, WindowClauses]:
    """Return the query without its windows, and the windows.

    Examples
    --------
    >>> from eddyline.sql.dialect import dialect
    >>> split_windows("SELECT a FROM s WINDOW 5 minutes", dialect(False))
    ('SELECT a FROM s', WindowClauses(of_query=Window(size=5, unit='minutes'), of_sources=()))
    >>> body, windows = split_windows("SELECT a FROM s [ROWS 9] AS b, t", dialect(False))
    >>> body, windows.of_sources
    ('SELECT a FROM s          AS b, t', ((16, Window(size=9, unit='rows')),))

    """
    clause = _CLAUSE.search(text)
    window = None if clause is None else _window(clause[1], clause[2])
    body = text.strip().rstrip(";") if clause is None else text[: clause.start()].strip()
    of_sources: list[tuple[int, Window]] = []
    if _MAYBE_IN_FROM.search(body):
        for first, last, own in _in_from(body, dialect):
            body = body[:first] + " " * (last + 1 - first) + body[last + 1 :]
            of_sources.append((first, own))
    return body, WindowClauses(window, tuple(of_sources))


def _in_from(body: str, dialect: Dialect) -> list[tuple[int, int, Window]]:
    """Return the windows in brackets, with their first and last position."""
    try:
        tokens = dialect.tokenize(body)
    except TokenError:
        return []  # parsing will say what is wrong
    found = []
    is_in_from = False
    for number, token in enumerate(tokens[:-2]):
        if token.text.upper() in _CLAUSES:
            is_in_from = token.text.upper() in _OF_SOURCES
        kind = tokens[number + 1].text.upper()
        if token.text == "[" and kind in ("RANGE", "ROWS") and tokens[number + 2].text != "]":
            if not is_in_from:
                raise QueryError(
                    f"the window {body[token.start :][:30]!r} does not belong to a stream in FROM; "
                    f"write it behind the name of the stream"
                )
            end = number + (4 if kind == "RANGE" else 3)
            found.append((token.start, *_read_bracket(tokens, number, end, body)))
    return found


def _read_bracket(tokens: Sequence[Token], begin: int, end: int, body: str) -> tuple[int, Window]:
    """Return the last position of a window in brackets, and the window."""
    words = [token.text.upper() for token in tokens[begin : end + 1]]
    size = words[2] if len(words) > 2 else ""
    unit = words[3].removesuffix("S") if len(words) == 5 else "ROW"
    if words[-1] != "]" or not size.isdecimal() or unit not in (*_UNITS, "ROW"):
        written = body[tokens[begin].start :][:30]
        raise QueryError(
            f"cannot read the window {written!r}; write [RANGE 30 SECONDS] (or MILLISECONDS, "
            f"MINUTES, HOURS, DAYS) or [ROWS 1000]"
        )
    return tokens[end].end, _window(size, unit)


def _window(size: str, unit: str) -> Window:
    if int(size) == 0:
        raise QueryError("a window of 0 has no rows in it; give it a size of at least 1")
    return Window(int(size), unit.lower() + "s")
