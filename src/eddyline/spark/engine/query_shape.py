"""The text of a query around its constants.

Queries of one shape differ in constants of the same kinds after WHERE. Lists of any length, as in
`a IN (1, 2)`, are one constant each. Only plain constants count: no escapes, no braces, no
exponents, at most 18 digits. A text with anything else, or with comments, has no shape.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from eddyline.sql.placeholders import RESERVED

#: Constants in one query.
CONSTANTS_MAX = 40
_SEPARATOR = "\0"
_LIST = "list of "
_WHERE = re.compile(r"\sWHERE\s", re.IGNORECASE)
#: What is read differently, depending on settings or on more than one token.
_UNUSUAL = re.compile(r"[^\t\n\r -~]|[\\\"{}]|--|/\*|\bINTERVAL\b|\bWINDOW\b", re.IGNORECASE)
_NUMBERS = {"whole": r"\d{1,18}", "decimal": r"\d{1,9}\.\d{1,9}"}
_NUMBER_END = r"(?![\w.])"
_DAY = r"\d{4}-\d\d-\d\d"
_TEXTS = {"day": _DAY, "time": rf"{_DAY} \d\d:\d\d:\d\d", "text": r"[^'\t\n\r]+"}


_QUOTED = {kind: f"'{text}'" for kind, text in _TEXTS.items()}


def _any_list() -> str:
    items = {kind: f"-?{number}" for kind, number in _NUMBERS.items()} | _QUOTED
    return "|".join(f"(?P<{kind}s>{item}(?:, ?{item})*)" for kind, item in items.items())


def _any_of(kinds: Mapping[str, str], end: str) -> str:
    return "|".join(f"(?P<{kind}>{pattern}){end}" for kind, pattern in kinds.items())


_TOKEN = re.compile(
    "|".join(
        (
            r"`[^`]*`",
            rf"\bIN ?\((?:{_any_list()})\)",
            r"(?:DATE|TIMESTAMP)(?=')",
            r"(?P<odd>[A-Z_]\w*')",
            r"[A-Z_]\w*",
            rf"'(?:{_any_of(_TEXTS, '')}|)'(?!')",
            rf"(?<![\w.])(?:{_any_of(_NUMBERS, _NUMBER_END)})",
            r"(?P<other>[\d'`])",
        )
    ),
    re.ASCII | re.IGNORECASE,
)
_ITEM = re.compile(r"'([^']*)'|(-?[\d.]+)")


class Constant(NamedTuple):
    """A constant of a query: its kind, itself as it is written without quotes, and its literals.

    A list has several literals, and is written with the quotes of its items.
    """

    kind: str
    written: str
    literals: tuple[str, ...]

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.kind.startswith(_LIST)

    @property
    def rendered(self) -> str:
        """The constant as the parser writes it."""
        if not self.is_list:
            return self.written
        is_text = self.written.startswith("'")
        return ", ".join([f"'{text}'" for text in self.literals] if is_text else self.literals)


class QueryShape(NamedTuple):
    """A query text around its constants, and the constants."""

    key: str
    constants: tuple[Constant, ...]

    @classmethod
    def of(cls, text: str) -> QueryShape | None:
        """Return the shape of a text; None if it has none.

        Examples
        --------
        >>> shape = QueryShape.of("SELECT a, 5 FROM s WHERE a > 5 AND b IN ('x', 'y') OR c < -2.5")
        >>> for constant in shape.constants:
        ...     print(*constant)
        whole 5 ('5',)
        list of text 'x', 'y' ('x', 'y')
        decimal 2.5 ('2.5',)
        >>> print(QueryShape.of("SELECT a FROM s WHERE a > 5 -- or 7"))
        None

        """
        where = _WHERE.search(text)
        if _UNUSUAL.search(text) or RESERVED in text.lower():
            return None
        key: list[str] = []
        constants: list[Constant] = []
        copied_to = 0
        for token in _TOKEN.finditer(text, len(text) if where is None else where.end()):
            kind = token.lastgroup
            if kind is None:
                continue
            if kind in ("odd", "other") or len(constants) == CONSTANTS_MAX:
                return None
            written, (begin, end) = token[kind], token.span(kind)
            literals: tuple[str, ...] = (written,)
            if kind[-1] == "s":
                kind = _LIST + kind[:-1]
                literals = tuple([text or number for text, number in _ITEM.findall(written)])
            constants.append(Constant(kind, written, literals))
            key += [text[copied_to:begin], kind]
            copied_to = end
        return cls(_SEPARATOR.join([*key, text[copied_to:]]), tuple(constants))

    def with_constants(self, constants: Sequence[Constant]) -> str:
        """Return the text with other constants."""
        pieces = self.key.split(_SEPARATOR)
        pieces[1::2] = [constant.written for constant in constants]
        return "".join(pieces)

    def probes(self, avoided: str, kept: Collection[int] = ()) -> tuple[Constant, ...]:
        """Return constants of the same kinds, whose literals stand neither elsewhere nor in a text.

        Parameters
        ----------
        avoided
            The text.
        kept
            Places of constants that are to stay as they are.

        """
        for start in itertools.count(step=2 * len(self.constants)):
            probes = [_probe(each, start + 2 * n) for n, each in enumerate(self.constants)]
            if not any(literal in avoided for probe in probes for literal in probe.literals):
                break
        for place in kept:
            probes[place] = self.constants[place]
        return tuple(probes)


def _probe(constant: Constant, number: int) -> Constant:
    """Return a constant of the same kind, whose literals have a number in them."""
    if not constant.is_list:
        literal = _literal(constant.kind, number)
        return Constant(constant.kind, literal, (literal,))
    kind = constant.kind.removeprefix(_LIST)
    literals = (_literal(kind, number), _literal(kind, number + 1))
    is_text = kind in _TEXTS
    items = [f"'{literal}'" if is_text else literal for literal in literals]
    # The parser writes a space: that tells a list as written from one that it wrote.
    return Constant(constant.kind, ",".join(items), literals)


def _literal(kind: str, number: int) -> str:
    if kind in ("day", "time"):
        day = (datetime.date(1987, 3, 1) + datetime.timedelta(number)).isoformat()
        return day if kind == "day" else f"{day} 04:05:06"
    plain = str(70_000 + number)
    return {"whole": plain, "decimal": f"{plain}.25", "text": f"zq{plain}qz"}[kind]
