"""Which constants of an expression cannot change whether Spark accepts it, or its type.

Spark computes the parts of an expression that have no column when it plans it: `5 / 0` is refused,
and so is `a > CAST('b' AS INT)`. A constant that is compared with a column, added to one or
searched for in one is not computed with before there are rows: whatever it is, Spark says the same
of the expression. Casts that Spark adds to constants are not seen here, but by
`spark/engine/expressions.py`.
"""

from __future__ import annotations

import functools
import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eddyline.sql.dialect import dialect
from eddyline.sql.meaning import CONSTANT, blank, has_unusual_constants

_SHAPES_MAX = 10_000
#: Functions whose answer depends on a column if one of their arguments does, and is of the same
#: type whatever the constants among them are.
_TAKE_ANY = frozenset(
    "substring substr left right instr locate position lpad rpad repeat replace translate concat "
    "concat_ws startswith endswith contains levenshtein trim ltrim rtrim btrim overlay".split()
)
#: Those that take a regular expression: numbers among their arguments are checked by Spark.
_TAKE_TEXT = frozenset(
    "regexp regexp_like rlike regexp_extract regexp_extract_all regexp_replace regexp_count "
    "regexp_instr regexp_substr split".split()
)
#: Other functions that may stand in such an expression.
_KNOWN = frozenset(
    "length char_length character_length octet_length bit_length lower upper lcase ucase initcap "
    "reverse ascii coalesce nvl ifnull nullif isnull isnotnull isnan greatest least if abs sign "
    "floor ceil ceiling sqrt hour minute second year month day dayofmonth dayofweek dayofyear "
    "weekday weekofyear quarter md5 sha sha1 crc32 soundex size equal_null".split()
)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_WRAPPERS = (exp.Paren, exp.Neg)
#: What the parser knows by other means than its name.
_NAMELESS = (exp.Case, exp.If, exp.Cast, exp.RegexpLike, exp.Substring, exp.Trim)


def shape_without_free_constants(text: str) -> str | None:
    """Return an expression without its free constants; None if it cannot be judged.

    Expressions of one shape are accepted by Spark, or refused, together.

    Examples
    --------
    >>> shape_without_free_constants("`a` / 5 > 70 AND length(`b`) > 3 + 4")
    '`a` / 0 > 0 AND length(`b`) > 3 + 4'
    >>> shape_without_free_constants("regexp_extract(`b`, 'x(.)', 1) = 'y' OR `a` + 1 + 2 > 3")
    "regexp_extract(`b`, '', 1) = '' OR `a` + 1 + 2 > 0"
    >>> print(shape_without_free_constants("own_function(`a`) > 5"))
    None

    """
    if has_unusual_constants(text):
        return None
    free = _free_places(CONSTANT.sub(blank, text))
    if free is None:
        return None
    place = -1

    def blank_free(constant: re.Match[str]) -> str:
        nonlocal place
        if constant[0][0] == "`":
            return constant[0]
        place += 1
        return blank(constant) if free[place] else constant[0]

    return CONSTANT.sub(blank_free, text)


@functools.lru_cache(maxsize=_SHAPES_MAX)
def _free_places(blanked: str) -> tuple[bool, ...] | None:
    """Return for each constant of an expression whether it is free; None if something is unknown.

    Parameters
    ----------
    blanked
        The expression, in which all constants of a type are equal.

    """
    marks: list[str] = []

    def mark(constant: re.Match[str]) -> str:
        if constant[0][0] == "`":
            return constant[0]
        number = f"70{len(marks):04}"
        is_text = constant[0][0] == "'"
        marks.append(number if is_text or "." not in constant[0] else f"{number}.5")
        return f"'{number}'" if is_text else marks[-1]

    try:
        (select,) = dialect(double_quoted_identifiers=False).parse(
            f"SELECT {CONSTANT.sub(mark, blanked)}"
        )
    except (SqlglotError, ValueError):
        return None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return None
    calls = [call for call in select.find_all(exp.Func) if not isinstance(call, exp.Connector)]
    if any(not _is_known(call) for call in calls):
        return None
    free = {literal.name: _is_free(literal) for literal in select.find_all(exp.Literal)}
    return tuple(free.get(mark, False) for mark in marks)


def _is_known(call: exp.Func) -> bool:
    if not isinstance(call, exp.Anonymous):
        return isinstance(call, _NAMELESS)
    return str(call.this).lower() in _TAKE_ANY | _TAKE_TEXT | _KNOWN


def _is_free(literal: exp.Literal) -> bool:
    node, parent = _unwrapped(literal)
    if parent is None or not _has_column(parent):
        return False
    if isinstance(parent, _COMPARISONS):
        return True
    if isinstance(parent, exp.Between | exp.In | exp.Substring):
        return node is not parent.this and _has_column(parent.this)
    if isinstance(parent, _PATTERNS):
        return node is parent.expression and not isinstance(parent.parent, exp.Escape)
    if isinstance(parent, _ARITHMETIC):
        return _is_alone_in_arithmetic(literal, parent)
    if isinstance(parent, exp.Anonymous):
        name = str(parent.this).lower()
        return name in _TAKE_ANY or (name in _TAKE_TEXT and literal.is_string)
    return False


def _unwrapped(node: exp.Expression) -> tuple[exp.Expression, exp.Expression | None]:
    """Return a node with the brackets and signs around it, and what it then stands in."""
    while isinstance(node.parent, _WRAPPERS):
        node = node.parent
    return node, node.parent


def _is_alone_in_arithmetic(literal: exp.Literal, parent: exp.Expression) -> bool:
    """Whether all other terms have columns: Spark adds up constants, also across brackets."""
    top = parent
    while isinstance(top.parent, (*_ARITHMETIC, *_WRAPPERS)):
        top = top.parent
    pending, terms = [top], []
    while pending:
        node = pending.pop()
        if isinstance(node, _ARITHMETIC):
            pending += [node.this, node.expression]
        elif isinstance(node, _WRAPPERS):
            pending.append(node.this)
        else:
            terms.append(node)
    return all(term is literal or _has_column(term) for term in terms)


def _has_column(node: exp.Expression) -> bool:
    return node.find(exp.Column) is not None
