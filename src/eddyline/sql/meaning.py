"""Conditions that are true if Spark reads a query as the parser does.

Spark must give the query as written and the query as parsed the same meaning
(`docs/decisions/0012`). Comparing two plans takes Spark several round trips. For most queries
over one stream it is enough to compare the condition and the items of SELECT as expressions, and
Spark compares those of many queries in one plan (`docs/decisions/0029`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from eddyline.sql.dialect import quoted
from eddyline.sql.query import Query

#: What has other tokens, such as comments, escapes and double quotes, is not taken apart.
_TOKEN = re.compile(
    r"\s+|\w+|'[^'\\{}]*'|`[^`{}]*`|\{rows\}|<=>|<>|!=|<=|>=|\|\||[=<>+*%(),.]|-(?!-)|/(?![*/])",
    re.ASCII,
)
_STREAM = re.compile(r"\s*\{rows\}(?:\s+AS)?\s+(?:\w+|`[^`]*`)\s*", re.ASCII | re.IGNORECASE)
_COLUMN = re.compile(r"(?:(?:\w+|`[^`]*`)\s*\.\s*)?(?:(\w+)|`([^`]*)`)", re.ASCII)
_NAMED = re.compile(r"(.+)\sAS\s+(?:(\w+)|`([^`]*)`)", re.ASCII | re.IGNORECASE | re.DOTALL)
#: Clauses, and functions of several rows: what expressions alone do not show.
_REFUSED = frozenset("over select distinct all with union group having order limit".split())


#: Plain constants, and quoted names, which may look like them.
CONSTANT = re.compile(
    r"`[^`]*`|'[ -&(-\[\]-z|~]*'|(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?![\w.])", re.ASCII
)

_UNUSUAL = re.compile(r"\d{10}")
_QUOTED = re.compile(r"`[^`]*`|'[^']*'?")
_PLAIN = re.compile(r"'[ -&(-\[\]-z|~]*'", re.ASCII)
_DAY = re.compile(r"'\d{4}-\d\d-\d\d")


class _Item(NamedTuple):
    """An item of SELECT and its name in the result."""

    expression: str
    name: str


class _Parts(NamedTuple):
    """A query over one stream: the items of SELECT, and the condition or an empty text."""

    items: list[_Item]
    condition: str


def same_meaning(query: Query, with_others: bool = False) -> list[str] | None:
    """Return conditions over the stream that Spark simplifies to TRUE if it reads a query alike.

    Parameters
    ----------
    query
        A query that was parsed.
    with_others
        Return those of a query that has other constants.

    Returns
    -------
    Conditions in which the stream has its alias; None if only plans can be compared.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "string"}})
    >>> query = parse("SELECT a, upper(b) AS c FROM s WHERE b LIKE 'x%'", schemas)
    >>> for condition in same_meaning(query):
    ...     print(condition)
    equal_null(a, `s`.`a`)
    equal_null(upper(b), upper(`s`.`b`))
    equal_null(b LIKE 'x%', `s`.`b` LIKE 'x%')
    >>> print(same_meaning(parse("SELECT a FROM s /* all of them */", schemas)))
    None

    """
    is_simple = query.join is None and not query.tables and not query.generates_rows
    if not is_simple or query.has_lateral_aliases:
        return None
    written, understood = _take_apart(query.written), _take_apart(query.understood)
    if written is None or understood is None:
        return None
    if [item.name for item in written.items] != [item.name for item in understood.items]:
        return None
    pairs = [
        (ours.expression, theirs.expression)
        for ours, theirs in zip(written.items, understood.items, strict=True)
        if ours.expression != "*" or theirs.expression != "*"
    ]
    if bool(written.condition) != bool(understood.condition):
        return None
    alternatives = [*query.accepts, *query.predicates]
    alternatives += [name for clause in query.clauses for name in clause.operators]
    if written.condition and not alternatives:  # a constant, which may be no condition at all
        return None
    if written.condition:
        pairs.append((written.condition, understood.condition))
    if with_others:
        pairs = [tuple(map(_with_other_constants, pair)) for pair in pairs]  # type: ignore[misc]
    return [f"equal_null({ours}, {theirs})" for ours, theirs in pairs]


def _with_other_constants(text: str) -> str:
    """Return SQL in which all constants are different ones of the same type.

    Examples
    --------
    >>> _with_other_constants("a > 5 AND `b 5` = 'x' AND a < '5' AND d = '2024-01-28'")
    "a > 70011 AND `b 5` = 'zq2' AND a < '703' AND d = '1987-03-05'"

    """
    place = 0

    def other(constant: re.Match[str]) -> str:
        nonlocal place
        written = constant[0]
        if written[0] == "`":
            return written
        place += 1
        if written[0] != "'":
            whole, point, digits = written.partition(".")  # the digits are its type
            return f"{place % 9 + 1:0<{len(whole)}}.{digits}" if point else f"70{place:02}1"
        if _DAY.match(written):
            return f"'1987-03-{place % 28 + 1:02}{written[11:]}"
        return f"'70{place}'" if written[1:-1].isdigit() else f"'zq{place}'"

    return CONSTANT.sub(other, text)


def with_alias(text: str, alias: str, other: str) -> str:
    """Return an expression that `same_meaning` gave, with another alias of the stream.

    Examples
    --------
    >>> print(with_alias("equal_null(E.a, `e`.`a`) AND 'e.a' <> b", "`e`", "`s`"))
    equal_null(`s`.a, `s`.`a`) AND 'e.a' <> b

    """
    tokens, alias = list(_tokens(text)), alias.lower()
    for place, token in enumerate(tokens[:-1]):
        is_qualifier = tokens[place + 1] == "." and (place == 0 or tokens[place - 1] != ".")
        if is_qualifier and token.lower() in (alias, alias[1:-1]):
            tokens[place] = other
    return "".join(tokens)


def shape_of(query: Query) -> tuple[str, str] | None:
    """Return the texts of a query without its constants; None if these could matter to a reader.

    Whether Spark reads a query as the parser does cannot depend on numbers and plain strings: of
    queries that differ in nothing else, both read all alike.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "string"}})
    >>> shape_of(parse("SELECT a FROM s WHERE b LIKE 'x%' AND a > 5", schemas))[0]
    "SELECT a FROM {rows} AS `s` WHERE b LIKE '' AND a > 0"

    """
    constants = [
        [constant for constant in CONSTANT.findall(text) if constant[0] != "`"]
        for text in (query.written, query.understood)
    ]
    written, understood = without_constants(query.written), without_constants(query.understood)
    if written is None or understood is None or constants[0] != constants[1]:
        return None
    return written, understood


def without_constants(text: str) -> str | None:
    """Return SQL in which constants of the same type are equal; None if it has unusual ones.

    Examples
    --------
    >>> without_constants("length(`name 5`) > 70 AND b <> 'x' AND c < 2.50")
    "length(`name 5`) > 0 AND b <> '' AND c < 0.00"
    >>> print(without_constants("a > 5000000000"), without_constants("b = 'it''s'"))
    None None

    """
    return None if has_unusual_constants(text) else CONSTANT.sub(blank, text)


def has_unusual_constants(text: str) -> bool:
    """Whether SQL has constants that `CONSTANT` does not find, or finds in part.

    Examples
    --------
    >>> [has_unusual_constants(text) for text in ("a = '' OR b = '1'", "a = 'it''s'", "a = 'é'")]
    [False, True, True]

    """
    if "\\" in text or '"' in text or _UNUSUAL.search(text):
        return True
    end = -1  # of the last string: one that follows at once is the rest of it
    for quoted_text in _QUOTED.finditer(text):
        if quoted_text[0][0] == "'":
            if quoted_text.start() == end or not _PLAIN.fullmatch(quoted_text[0]):
                return True
            end = quoted_text.end()
    return False


def blank(constant: re.Match[str]) -> str:
    """Return a match of `CONSTANT` without its value; names stay."""
    if constant[0][0] in "`'":
        return constant[0] if constant[0][0] == "`" else "''"
    # The digits of a decimal number are its type.
    return re.sub(r"\d", "0", constant[0]) if "." in constant[0] else "0"


def alias_of(query: Query) -> str:
    """Return the name of the stream in these conditions, as SQL."""
    return quoted(query.stream_source.alias)


def _take_apart(text: str) -> _Parts | None:
    """Return the parts of `SELECT items FROM {rows} AS alias WHERE condition`."""
    tokens = _tokens(text)
    if not tokens or tokens[0].upper() != "SELECT":
        return None
    depth, begin = 0, 1
    items: list[str] = []
    clauses: dict[str, int] = {}
    for place, token in enumerate(tokens):
        word = token.upper()
        if token in ("(", ")"):
            depth += 1 if token == "(" else -1
        elif depth == 0 and word == "FROM" and "FROM" not in clauses:
            items.append("".join(tokens[begin:place]))
            clauses["FROM"] = place
        elif depth == 0 and word == "WHERE" and "WHERE" not in clauses:
            clauses["WHERE"] = place
        elif depth == 0 and token == "," and "FROM" not in clauses:
            items.append("".join(tokens[begin:place]))
            begin = place + 1
        if depth < 0 or (place > 0 and token.lower() in _REFUSED):
            return None
    if depth != 0 or "FROM" not in clauses:
        return None
    end = clauses.get("WHERE", len(tokens))
    if not _STREAM.fullmatch("".join(tokens[clauses["FROM"] + 1 : end])):
        return None
    named = [_named(item.strip()) for item in items]
    condition = "".join(tokens[end + 1 :]).strip()
    return _Parts([item for item in named if item], condition) if all(named) else None


def _tokens(text: str) -> Sequence[str]:
    """Return the tokens of a text; none if it has one that is not known."""
    tokens, place = [], 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            return ()
        tokens.append(token[0])
        place = token.end()
    return tokens


def _named(item: str) -> _Item | None:
    """Return an item of SELECT with its name; None if Spark makes its name."""
    if item == "*":
        return _Item(item, "")
    column = _COLUMN.fullmatch(item)
    if column is not None:
        return _Item(item, column[1] or column[2])
    named = _NAMED.fullmatch(item)
    return _Item(named[1].strip(), named[2] or named[3]) if named is not None else None
