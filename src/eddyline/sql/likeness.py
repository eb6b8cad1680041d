"""Whether conditions cost the same on any row, and what they cost at least, by their syntax trees.

Conditions that call the same functions on the same columns, and differ only in constants that
hardly matter to the time, need not be timed: how many of them a row needs decides
(`docs/decisions/0024`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from eddyline.sql.failures import column_parts

#: Least time of a call in microseconds, and nanoseconds for each character of its first argument.
_DIGEST, _PATTERN, _WHOLE_TEXT = (0.3, 2.0), (0.1, 0.0), (0.2, 1.0)
COSTLY: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("sha2", "sha", "sha1", "md5"), _DIGEST),
    **dict.fromkeys(
        ("rlike", "regexp", "regexp_like", "regexp_extract", "regexp_substr"), _PATTERN
    ),
    **dict.fromkeys(("regexp_count", "regexp_replace"), _WHOLE_TEXT),
    "regexp_instr": _PATTERN,
    "get_json_object": (0.3, 0.0),
}
#: Their arguments may differ in digits: the text they return is as long.
_JOINING = ("concat", "concat_ws")
#: Only the first argument is evaluated on every row.
_CHOOSING = ("if", "coalesce", "nvl", "ifnull", "nvl2")
_DIGIT = re.compile(r"\d")


def cost_alike(trees: Sequence[exp.Expression]) -> bool:
    """Whether conditions cost the same, because they are the same but for a few constants.

    These are constants that values are compared with, and digits in texts and in regular
    expressions (not in their repetition counts). A condition that calls a costly function only on
    some rows is not like another one.

    Examples
    --------
    >>> from eddyline.sql.failures import parse_condition
    >>> def alike(*conditions: str) -> bool:
    ...     return cost_alike([parse_condition(condition, False) for condition in conditions])
    >>> alike("md5(concat(a, 1)) < '3'", "md5(concat(a, 2)) < CASE WHEN c = 1 THEN '4' END")
    False
    >>> alike("md5(concat(a, 1)) < '3'", "md5(concat(a, 2)) < '4'")
    True
    >>> alike("a rlike 'x1'", "a rlike 'x2'"), alike("a rlike 'x{1}'", "a rlike 'x{2}'")
    (True, False)
    >>> alike("a rlike 'x'", "b rlike 'x'"), alike("repeat(a, 1) > 'x'", "repeat(a, 9) > 'x'")
    (False, False)
    >>> alike("a = 1 or b rlike 'x'", "a = 2 or b rlike 'x'")
    False

    """
    if any(_is_costly(node) for tree in trees for node in _sometimes_evaluated(tree)):
        return False
    return len({_shape(tree) for tree in trees}) == 1


def least_cost_us(tree: exp.Expression, text_lengths: Mapping[str, float]) -> float:
    """Return how long a condition takes at least on a row; 0 if it calls nothing costly.

    Parameters
    ----------
    tree
        The condition.
    text_lengths
        Mean length of the texts in each column.

    Examples
    --------
    >>> from eddyline.sql.failures import parse_condition
    >>> count = parse_condition("regexp_count(text, 'a') > 0 and n > 1", False)
    >>> least_cost_us(count, {}), least_cost_us(count, {"text": 1_000.0})
    (0.2, 1.2)

    """
    cost_us = 0.0
    for node in tree.walk():
        costs = COSTLY.get(_name(node))
        if costs is not None:
            first = next(_arguments(node), None)
            columns = [] if first is None else first.find_all(exp.Column)
            length = sum(text_lengths.get((column_parts(each) or ("",))[-1], 0) for each in columns)
            cost_us += costs[0] + costs[1] * length / 1_000
    return cost_us


def _name(node: exp.Expression) -> str:
    """Return the name of a function that is called; empty for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() if isinstance(node.this, str) else ""
    if isinstance(node, exp.If):
        return "" if isinstance(node.parent, exp.Case) else "if"
    return "rlike" if isinstance(node, exp.RegexpLike) else ""


def _arguments(node: exp.Expression) -> Iterator[exp.Expression]:
    return (each for each in node.iter_expressions() if isinstance(each, exp.Expression))


def _is_costly(node: exp.Expression) -> bool:
    return any(_name(each) in COSTLY for each in node.walk())


def _sometimes_evaluated(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the parts of a condition that are not evaluated on every row."""
    for node in tree.walk():
        if isinstance(node, exp.And | exp.Or):
            yield node.expression
        elif isinstance(node, exp.In):
            yield from node.expressions
        elif isinstance(node, exp.Case):
            yield from _parts_of_case(node)
        elif _name(node) in _CHOOSING:
            yield from list(_arguments(node))[1:]


def _parts_of_case(case: exp.Case) -> Iterator[exp.Expression]:
    first, *others = case.args["ifs"]
    yield first.args["true"]
    yield from others
    if case.args.get("default") is not None:
        yield case.args["default"]


def _shape(tree: exp.Expression) -> str:
    """Return a condition without the constants that hardly matter to its cost."""
    copied = tree.copy()
    for literal in list(copied.find_all(exp.Literal)):
        text = _without_value(literal)
        if literal is copied:
            return text
        literal.replace(exp.Literal.string(text))
    return str(copied.sql(normalize=False))


def _without_value(literal: exp.Literal) -> str:
    """Return what a constant leaves in the shape of the condition."""
    caller = literal.parent
    while caller is not None and not _is_call(caller):
        caller = caller.parent
    if caller is None:
        return "?"
    name, text = _name(caller), str(literal.this)
    is_pattern = name in COSTLY and literal.is_string and "{" not in text
    return _DIGIT.sub("0", text) if is_pattern or name in _JOINING else text


def _is_call(node: exp.Expression) -> bool:
    """Whether a node calls a function whose time may depend on its arguments."""
    is_choice = isinstance(node, exp.Case | exp.If | exp.And | exp.Or) or _name(node) in _CHOOSING
    return isinstance(node, exp.Func) and not is_choice and not isinstance(node, exp.Cast)
